/** Two users who trade through a gateway whose prediction market lags, fails, and keeps its prices where they are put. */
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  createTrader,
  executed,
  type Market,
  marketBy,
  micros,
  type Order,
  openOrdersOf,
  outcomeOf,
  predictionVenue,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import type { Person } from './users.ts'
import { worldOf } from './world.ts'

export type InjectedFault = { fault: { type?: string }; struck: number }
type Events = { events: { type: string; data: { order_id?: string; leg?: string; reason?: string } }[] }

/** The venue takes sales of whole hundredths of a share. */
export const whole = (units: bigint): bigint => (units / 10_000n) * 10_000n
export const text = (units: bigint): string => String(Number(units) / 1e6)
export const always = (ms: number) => ({ rate: 1, minMs: ms, maxMs: ms })

export type ExitApp = Awaited<ReturnType<typeof openExitApp>>

export async function openExitApp() {
  const gateway = await freshGateway(
    { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
    { ownWorld: 'its venue lags and fails, and its prices stay where they are put' },
  )
  const world = await worldOf(gateway.world)
  const venue = predictionVenue(gateway.world)
  const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
  const dial = (settings: object) => venue('POST', '/realism', settings)
  const newTrader = (usd: string) => createTrader(gateway, world, usd)
  const [ada, bob] = await Promise.all([newTrader('400'), newTrader('400')])
  /** The market, whose price stays where it is put. */
  const marketAt = async (slug: string, price = 0.4): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price })
    return marketBy(ada, slug)
  }
  const buy = async (person: Person, market: Market, more: object = {}, usd = '8') => {
    const order = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: usd }
    const { result } = await executed(person, '/predmkt/order', { ...order, ...more })
    return micros(result.settled_shares!)
  }
  const sharesOf = async (person: Person, market: Market): Promise<bigint> => {
    const [id, { safe_address: wallet }] = [outcomeOf(market), await statusOf(person)]
    const path = `/balances?wallet=${wallet}&tokens=${id}`
    return micros((await venue<{ shares: Record<string, string> }>('GET', path)).shares[id]!)
  }
  const exitsOf = async (person: Person, market: Market) =>
    (await openOrdersOf(person)).filter(
      (order) =>
        (order as Order & { market: string }).market === market.condition_id && order.leg !== 'order',
    )
  const exitWith = (person: Person, market: Market, leg: string, status: string) =>
    eventually(
      async () => (await exitsOf(person, market)).find((each) => each.leg === leg && each.status === status),
      `the ${leg} is ${status}`,
    )
  const noExits = (person: Person, market: Market) =>
    eventually(
      async () => ((await exitsOf(person, market)).length === 0 ? true : undefined),
      'no exit is left',
    )
  const countOf = async (sql: string, values: unknown[] = []): Promise<number> =>
    Number((await database.query<{ count: string }>(sql, values)).rows[0]!.count)
  const userOf = async (person: Person): Promise<string> =>
    (await database.query<{ id: string }>('select id from app_user where agent_id = $1', [person.agentId]))
      .rows[0]!.id
  const salesOf = async (person: Person, market: Market) => {
    const { safe_address: wallet } = await statusOf(person)
    return (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter(
      (each) => each.side === 'SELL' && each.conditionId === market.condition_id,
    )
  }
  const eventsOf = async (person: Person, type: string) =>
    (await person.call<Events>(`GET /v1/notifications?types=${type}&limit=100`)).body.events.filter(
      (each) => each.type === type,
    )

  return {
    gateway,
    world,
    venue,
    database,
    ada,
    bob,
    dial,
    newTrader,
    marketAt,
    buy,
    sharesOf,
    exitsOf,
    exitWith,
    noExits,
    countOf,
    userOf,
    salesOf,
    eventsOf,
    async calm() {
      await dial({ preset: 'quiet' })
      await venue('DELETE', '/faults')
    },
    async [Symbol.asyncDispose]() {
      await database.end()
      await gateway[Symbol.asyncDispose]()
    },
  }
}
