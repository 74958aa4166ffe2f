/** Payments for credits, as users make them. */
import assert from 'node:assert/strict'
import type { Person, TaskBody } from './users.ts'

type RechargeResult = {
  pack_id: string
  credits: number
  chain_id: string
  tx_hash: string
  paid: string
  native_price_usd: string
}
export type RechargeTask = Omit<TaskBody, 'result'> & {
  result: RechargeResult
  task_ids: string[]
  credits_pending: number
}
type Options = { key?: string; wait?: boolean }

export const recharge = <B = RechargeTask>(
  person: Person,
  body: object,
  { key, wait = true }: Options = {},
) =>
  person.call<B>(`POST /credits/onchain-recharge?wait=${wait}`, { body, ...(key !== undefined && { key }) })

type Bucket = { kind: string; credits: number; expires_at: string | null }
export const purchased = async (person: Person): Promise<number> => {
  const { body } = await person.call<{ buckets: Bucket[] }>('GET /v1/credits')
  return body.buckets.find(({ kind }) => kind === 'purchased')?.credits ?? 0
}
export const assertExecuted = ({ status, body }: { status: number; body: RechargeTask }) =>
  assert.deepEqual([status, body.status, body.outcome], [200, 'completed', 'executed'], JSON.stringify(body))
