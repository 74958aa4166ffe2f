/** What a user of prediction markets calls, and the controls of the venue in the world. */
import assert from 'node:assert/strict'
import { http } from '../harness/gateway.ts'
import type { Person, TaskBody } from './users.ts'

export type Ended = Omit<TaskBody, 'result'> & {
  result: Record<string, string> & Record<string, unknown>
  detail?: unknown
}
export type Market = {
  condition_id: string
  slug: string
  protocol: string
  neg_risk: boolean
  outcomes: { outcome_id: string; outcome: string; price: string }[]
}
export type Quote = {
  quote_id: string
  shares: string
  total_usd: string
  fee_usd: string
  worst_price: string
  complete: boolean
}
export type Position = {
  outcome_id: string
  size: string
  unsettled_buy: string
  cost_usd: string | null
  unrealized_usd: string | null
  realized_usd: string
  redeemable: boolean
}
export type Order = { id: string; status: string; size_matched: string; price: string; leg: string }
export type Status = {
  setup_complete: boolean
  safe_address: string
  spendable_cash_usd: string
  wrappable: { token: string; wallet: string; amount: string }[]
  steps: { key: string; done: boolean; waiting_until: string | null }[]
  protocols: { v1: boolean; v2: boolean }
  trading: string
  trading_until: string | null
  last_error: string | null
}
export type VenueRecord = {
  orders: {
    id: string
    wallet: string
    side: string
    conditionId: string
    status: string
    size: string
    matched: string
  }[]
  trades: { id: string; status: string }[]
}

export const micros = (usd: string): bigint => {
  const [whole = '0', fraction = ''] = usd.split('.')
  return BigInt(whole + fraction.padEnd(6, '0'))
}

/** The venue takes sales of whole hundredths of a share. */
export const sellable = (shares: string): bigint => (micros(shares) / 10_000n) * 10_000n

/** Calls the controls of the prediction market in the world. */
export const predictionVenue =
  (control: string) =>
  async <B = object>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${control}/venues/polymarket${path}`, {
      method,
      ...(body && { body }),
    })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }

export const run = async (
  person: Person,
  route: string,
  body: object = {},
  msMax?: number,
): Promise<Ended> => {
  const { status, body: task } = await person.call<Ended>(`POST ${route}?wait=true&timeout=60`, { body })
  assert.ok(status === 200 || status === 202, JSON.stringify(task))
  const last = async () => JSON.stringify((await person.call(`GET /v1/tasks/${task.task_id}`)).body)
  return (await person.ended(task.task_id, msMax).catch(async (error: Error) => {
    throw new Error(`${error.message}: ${await last()}`, { cause: error })
  })) as unknown as Ended
}
export const executed = async (person: Person, route: string, body: object = {}): Promise<Ended> => {
  const task = await run(person, route, body)
  assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
  return task
}
export const statusOf = async (person: Person) =>
  (await person.call<Status>('GET /predmkt/setup/status')).body
export const cashOf = async (person: Person) => micros((await statusOf(person)).spendable_cash_usd)
export const positionOf = async (person: Person, outcomeId: string) =>
  (await person.call<{ positions: Position[] }>('GET /predmkt/positions')).body.positions.find(
    ({ outcome_id }) => outcome_id === outcomeId,
  )
export const openOrdersOf = async (person: Person) =>
  (await person.call<{ orders: Order[] }>('GET /predmkt/orders/open')).body.orders
export const marketBy = async (person: Person, slug: string): Promise<Market> => {
  const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=50')
  const found = body.markets.find((market) => market.slug === slug)
  assert.ok(found, JSON.stringify(body.markets.map((market) => market.slug)))
  return found
}
/** Acknowledges the disclaimer, and sets the account up. */
export const setUp = async (person: Person): Promise<void> => {
  await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
  await executed(person, '/predmkt/setup')
}

export type Holding = Record<'kind' | 'symbol' | 'amount' | 'balance' | 'token_address', string> & {
  protocol: string | null
  outcome_id: string | null
  cost_basis_usd: string | null
  value_usd: string | null
  as_of_block: number
  price_as_of: string | null
  unrealized_pnl_usd: string | null
  realized_pnl_usd: string | null
}
/** The holdings in the wallet at the venue. */
export const atVenue = async (person: Person): Promise<Holding[]> => {
  const { body } = await person.call<{ holdings: Holding[] }>('GET /v1/holdings?event=wallet-refresh')
  return body.holdings.filter(({ protocol }) => protocol === 'polymarket')
}
