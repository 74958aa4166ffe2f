/** Users of prediction markets with cash, and what the venue and its chain have of them. */
import assert from 'node:assert/strict'
import type { Effects } from '../../world/conformance/prediction/prediction-world.ts'
import { http, newAgent } from '../harness/gateway.ts'
import { micros, type predictionVenue, setUp, statusOf } from '../journeys/predmkt-calls.ts'
import { type Person, personOf } from '../journeys/users.ts'

export type Venue = ReturnType<typeof predictionVenue>
export type PredictionTrader = { person: Person; wallet: string }

/** A market of the catalogue, as the control port of the venue lists it. */
export type VenueMarket = {
  conditionId: string
  slug: string
  tokens: [string, string]
  protocol: string
  negRisk: boolean
  tick: string
  fair: string
  secondsDelay: number
  fee: object | null
}

/** Set-ups that run at once. */
const atOnce = 10

/** New users whose set-up is complete, each with pUSD in the wallet at the venue. */
export async function newTraders(
  url: string,
  venue: Venue,
  { count, usd }: { count: number; usd: (number: number) => string },
): Promise<PredictionTrader[]> {
  const newTrader = async (number: number): Promise<PredictionTrader> => {
    const person = await personOf(url, await newAgent(url))
    await setUp(person)
    const wallet = (await statusOf(person)).safe_address.toLowerCase()
    await venue('POST', '/credit', { wallet, amount: usd(number) })
    return { person, wallet }
  }
  const traders: PredictionTrader[] = []
  for (let at = 0; at < count; at += atOnce) {
    const numbers = Array.from({ length: Math.min(atOnce, count - at) }, (_, index) => at + index)
    traders.push(...(await Promise.all(numbers.map(newTrader))))
  }
  return traders
}

export type RecordedTrade = Effects['trades'][number]
export type RecordedLeg = RecordedTrade['legs'][number] & { trade: RecordedTrade; role: 'taker' | 'maker' }

export const effectsOf = (venue: Venue, wallet?: string): Promise<Effects> =>
  venue<Effects>('GET', `/effects${wallet ? `?wallet=${wallet}` : ''}`)

/** The parts of a wallet in the trades of the venue, in the order of their matches. */
export const legsOf = ({ trades }: Pick<Effects, 'trades'>, wallet: string): RecordedLeg[] =>
  trades.flatMap((trade) =>
    trade.legs.flatMap((leg, at) =>
      leg.wallet === wallet
        ? [{ ...leg, trade, role: at === 0 ? ('taker' as const) : ('maker' as const) }]
        : [],
    ),
  )

export type ChainHoldings = { pusd: bigint; shares: Map<string, bigint> }

export async function chainOf(
  venue: Venue,
  wallet: string,
  tokens: readonly string[],
): Promise<ChainHoldings> {
  const { pusd, shares } = await venue<{ pusd: string; shares: Record<string, string> }>(
    'GET',
    `/balances?wallet=${wallet}&tokens=${tokens.join()}`,
  )
  return {
    pusd: micros(pusd),
    shares: new Map(Object.entries(shares).map(([token, units]) => [token, micros(units)])),
  }
}

/** The best bid of an outcome, by the venue's own book. */
export async function bestBid(clob: string, token: string): Promise<bigint | undefined> {
  const { status, body } = await http<{ bids: { price: string }[] }>(`${clob}/book?token_id=${token}`)
  assert.equal(status, 200, JSON.stringify(body))
  const best = body.bids.at(-1)
  return best && micros(best.price)
}

export type UserEvent = { seq: string; type: string; data: Record<string, string | null> }

/** All events of a user, the oldest first. */
export async function eventsOf({ call }: Pick<Person, 'call'>): Promise<UserEvent[]> {
  const all: UserEvent[] = []
  for (let after = '0'; ; ) {
    const { body } = await call<{ events: UserEvent[]; next_after: string }>(
      `GET /v1/notifications?limit=100&after=${after}`,
    )
    all.push(...body.events)
    if (body.events.length === 0) return all
    after = body.next_after
  }
}
