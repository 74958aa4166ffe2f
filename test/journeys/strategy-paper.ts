/** Strategies on paper over HTTP, by the clock of the world. */
import assert from 'node:assert/strict'
import { type Agent, bearer, eventually, http } from '../harness/gateway.ts'
import { worldOf } from './world.ts'

export type Schedule = {
  schedule_id: string
  version: number
  type: string
  mode: string
  status: string
  next_run_at: string | null
}
export type Execution = {
  execution_id: string
  number: number
  scheduled_for: string | null
  execution_type: string
  mode: string
  status: string
  outcome: string | null
  skip_reason: string | null
  decision: { action: string; reason: string } | null
  error: object | null
}
export type Page<Item> = { items: Item[]; total: number }

export async function paperTrader(gateway: { url: string; world: string }, agent: Agent) {
  const { advance } = await worldOf(gateway.world)
  const call = async <B = Schedule>(route: string, body?: object): Promise<B> => {
    const [method = '', path = ''] = route.split(' ')
    const answer = await http<B>(`${gateway.url}${path}`, {
      method,
      headers: bearer(agent),
      ...(body && { body }),
    })
    assert.equal(answer.status, 200, `${route}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const nowMs = async () => (await http<{ now_ms: number }>(`${gateway.world}/time`)).body.now_ms
  const executions = async ({ schedule_id: id }: Schedule) =>
    (await call<Page<Execution>>(`GET /schedule-chat/schedule/${id}/executions?limit=100`)).items
  /** Returns the first slot that is to come, once those that were skipped are recorded. */
  const nextSlot = ({ schedule_id: id }: Schedule): Promise<string> =>
    eventually(async () => {
      const { next_run_at: next } = await call(`GET /schedule-chat/schedule/${id}`)
      return next !== null && Date.parse(next) > (await nowMs()) ? next : undefined
    }, 'the next slot')
  return {
    call,
    nowMs,
    executions,
    create: (fields: object) => call('POST /schedule_chat', { status: 'active', mode: 'paper', ...fields }),
    async advanceTo(ms: number) {
      await advance(Math.max(1, Math.ceil((ms - (await nowMs())) / 1_000)))
    },
    nextSlot,
    /** Passes the next slot, and returns the ended run of it. */
    async passSlot(schedule: Schedule): Promise<Execution> {
      const next = await nextSlot(schedule)
      await advance(Math.max(1, Math.ceil((Date.parse(next) - (await nowMs())) / 1_000) + 1))
      return eventually(async () => {
        const run = (await executions(schedule)).find(({ scheduled_for: slot }) => slot === next)
        return run && run.status !== 'pending' && run.status !== 'running' ? run : undefined
      }, 'the run of the slot')
    },
  }
}
