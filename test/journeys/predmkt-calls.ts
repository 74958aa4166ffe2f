/** What a user of prediction markets calls, and the controls of the venue in the world. */
import assert from 'node:assert/strict'
import type pg from 'pg'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { eventually, http } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { polygon, type World } from './world.ts'

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
/** Calls an operation without waiting for the end of its task. */
export const accept = async (person: Person, route: string, body: object): Promise<Ended> => {
  const reply = await person.call<Ended>(`POST ${route}`, { body })
  assert.ok(reply.status === 200 || reply.status === 202, JSON.stringify(reply.body))
  return reply.body
}
export const executed = async (person: Person, route: string, body: object = {}): Promise<Ended> => {
  const task = await run(person, route, body)
  assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
  return task
}
/** Reads of the own account have a budget of ten in ten seconds, for which this waits. */
const accountRead = <B extends object>(person: Person, route: string): Promise<B> =>
  eventually(async () => {
    const { status, body } = await person.call<B>(route)
    return status === 429 ? undefined : body
  }, `the budget of ${route}`)
export const statusOf = (person: Person) => accountRead<Status>(person, 'GET /predmkt/setup/status')
export const cashOf = async (person: Person) => micros((await statusOf(person)).spendable_cash_usd)
export const positionOf = async (person: Person, outcomeId: string) =>
  (await person.call<{ positions: Position[] }>('GET /predmkt/positions')).body.positions.find(
    ({ outcome_id }) => outcome_id === outcomeId,
  )
export const openOrdersOf = async (person: Person) =>
  (await accountRead<{ orders: Order[] }>(person, 'GET /predmkt/orders/open')).orders
export const outcomeOf = ({ outcomes }: Market, index = 0): string => outcomes[index]!.outcome_id
/** A purchase at market price. */
export const buyTerms = (market: Market, amount = '4') => ({
  outcome_id: outcomeOf(market),
  side: 'BUY',
  order_type: 'FOK',
  amount_usd: amount,
})
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

/** Creates a user whose set-up is complete, with so many dollars as cash at the venue. */
export async function createTrader({ url }: { url: string }, world: World, usd: string): Promise<Person> {
  const person = await createFundedPerson(url)
  await setUp(person)
  await world.fund(polygon, person.evm, 'USDC', usd)
  await executed(person, '/predmkt/fund-safe', { amount_usd: usd })
  return person
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

type WalletCall = { from: string; to: string; data: string }
/** Sends a call from a wallet at the venue without the gateway, as if the key were used elsewhere. */
export async function sendAs({ rpc, manifest }: World, call: WalletCall): Promise<void> {
  const url = manifest.urls.evm[polygon]
  await rpc('anvil_setBalance', [call.from, '0xde0b6b3a7640000'], url)
  await rpc('anvil_impersonateAccount', [call.from], url)
  const hash = await rpc('eth_sendTransaction', [call], url)
  const mined = async () => (await rpc('eth_getTransactionReceipt', [hash], url)) ?? undefined
  const receipt = await eventually(mined, 'the call has run')
  assert.equal((receipt as { status: string }).status, '0x1')
}

/** A hex number as one word of call data. */
export const word = (hex: string): string => hex.replace('0x', '').toLowerCase().padStart(64, '0')

type Move = { from: string; to: string; market: Pick<Market, 'protocol'>; outcomeId: string; units: bigint }
/** Moves shares between wallets at the venue without the gateway. */
export async function moveOutcomeShares(
  world: World,
  { from, to, market, outcomeId, units }: Move,
): Promise<void> {
  const number = (value: string | bigint) => word(BigInt(value).toString(16))
  const data = `0xf242432a${word(from)}${word(to)}${number(outcomeId)}${number(units)}${number(160n)}${number(0n)}`
  const token = market.protocol === 'v2' ? contracts.positionManager : contracts.conditionalTokens
  await sendAs(world, { from, to: token, data })
}

type Forgetting = {
  venue: ReturnType<typeof predictionVenue>
  database: pg.Pool
  taskId: string
  hasRun: () => Promise<boolean>
}
/** Makes the relayer lose its record of a task's action, once the action has run. */
export async function forgetRelayed({ venue, database, taskId, hasRun }: Forgetting): Promise<void> {
  const isKnown = `select from task where id = $1 and data ->> 'relay_id' is not null`
  await eventually(
    async () => (await database.query(isKnown, [taskId])).rowCount === 1 || undefined,
    'it is sent',
  )
  await venue('POST', '/faults', { effect: 'status', status: 503, endpoint: 'relayer' })
  await eventually(async () => (await hasRun()) || undefined, 'it has run')
  const lost = `update task set data = data || '{"relay_id": "lost"}' where id = $1`
  const ended = `update effect set valid_until = now() - interval '1 hour' where task_id = $1 and kind = 'prediction_relay'`
  for (const sql of [lost, ended, 'update task_queue set run_at = now() where task_id = $1'])
    await database.query(sql, [taskId])
  await venue('DELETE', '/faults')
}
