/** Orders of two users that meet: one rests, and the other crosses it, mints pairs with it or merges pairs with it. */
import assert from 'node:assert/strict'
import { eventually } from '../harness/gateway.ts'
import { type Ended, micros, run } from '../journeys/predmkt-calls.ts'
import { text } from './prediction-ledger.ts'
import { chainOf, type PredictionTrader, type Venue, type VenueMarket } from './prediction-traders.ts'

const dollar = 1_000_000n
const cent = 10_000n
/** The smallest order of each market. */
const minimumUnits = 5n * dollar
type Side = 'BUY' | 'SELL'

/** How two orders meet: shares change hands, or a pair of them comes into being, or goes. */
export const meetings = ['crossing', 'minting', 'merging'] as const
export type Meeting = (typeof meetings)[number]
/** Two users who trade with each other on one market. */
export type Pairing = {
  venue: Venue
  market: VenueMarket
  pair: [PredictionTrader, PredictionTrader]
  random: () => number
  counts: Record<Meeting, number>
}
type Part = { trader: PredictionTrader; outcome: 0 | 1; side: Side }
type Plan = { meeting: Meeting; maker: Part; taker: Part; sharesUnits: bigint }

const tickOf = ({ tick }: VenueMarket): bigint => micros(tick)
const hundredths = (units: bigint): bigint => units - (units % cent)

/** The meetings that the shares of both sides allow; of these one that was rarer so far. */
async function planOf({ venue, market, pair, random, counts }: Pairing): Promise<Plan> {
  const [one, other] = random() < 0.5 ? pair : ([pair[1], pair[0]] as const)
  const held = await Promise.all([one, other].map(({ wallet }) => chainOf(venue, wallet, market.tokens)))
  const outcome = random() < 0.5 ? (0 as const) : (1 as const)
  const opposite = outcome === 0 ? (1 as const) : (0 as const)
  const sharesOf = (at: 0 | 1, of: 0 | 1) => hundredths(held[at]!.shares.get(market.tokens[of]) ?? 0n)
  const wanted = minimumUnits + BigInt(Math.floor(random() * 3_000)) * cent
  const draft = (meeting: Meeting, makerSide: Side, takerOutcome: 0 | 1, takerSide: Side): Plan => {
    const limits = [wanted]
    if (makerSide === 'SELL') limits.push(sharesOf(0, outcome))
    if (takerSide === 'SELL') limits.push(sharesOf(1, takerOutcome))
    return {
      meeting,
      maker: { trader: one, outcome, side: makerSide },
      taker: { trader: other, outcome: takerOutcome, side: takerSide },
      sharesUnits: limits.reduce((least, each) => (each < least ? each : least)),
    }
  }
  const possible = [
    draft('crossing', 'BUY', outcome, 'SELL'),
    draft('crossing', 'SELL', outcome, 'BUY'),
    draft('minting', 'BUY', opposite, 'BUY'),
    draft('merging', 'SELL', opposite, 'SELL'),
  ].filter(({ sharesUnits }) => sharesUnits >= minimumUnits)
  const fewest = Math.min(...possible.map(({ meeting }) => counts[meeting]))
  const rare = possible.filter(({ meeting }) => counts[meeting] === fewest)
  return rare[Math.floor(random() * rare.length)]!
}

/** One order of the size, or two, so that one trade can have two parts of a maker. */
const split = (sharesUnits: bigint, random: () => number): bigint[] => {
  if (sharesUnits < 2n * minimumUnits || random() < 0.7) return [sharesUnits]
  const first = hundredths(sharesUnits / 2n)
  return [first, sharesUnits - first]
}

const held = ['insufficient_balance', 'no_position', 'shares_not_settled']

/** An order that rested holds its shares until its fills are read, which comes a little later. */
async function place({ person }: PredictionTrader, body: object): Promise<Ended> {
  const task = await eventually(async () => {
    const reply = await person.call<Ended>('POST /predmkt/order?wait=true&timeout=60', { body })
    if (held.includes(reply.body.code ?? '')) return undefined
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }, 'the shares are free')
  assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
  return task
}

const rest = ({ trader, outcome, side }: Part, market: VenueMarket, price: bigint, shares: bigint) =>
  place(trader, {
    outcome_id: market.tokens[outcome],
    side,
    price: text(price),
    size: text(shares),
    post_only: true,
  })

/** Up to the price of the resting orders, or some ticks beyond, where the quotes of the venue's own maker are. */
function take({ taker, sharesUnits }: Plan, { market, random }: Pairing, price: bigint): Promise<Ended> {
  const { trader, outcome, side } = taker
  const beyond = random() < 0.3 ? 3n * tickOf(market) : 0n
  const worst = side === 'BUY' ? price + beyond : price - beyond
  const part = BigInt(40 + Math.floor(random() * 90))
  const shares = (sharesUnits * part) / 100n
  const amount =
    side === 'BUY'
      ? { amount_usd: text(hundredths((shares * price) / dollar) + 2n * dollar) }
      : { amount_shares: text(hundredths(shares < sharesUnits ? shares : sharesUnits)) }
  const terms = { outcome_id: market.tokens[outcome], side, order_type: 'FAK', worst_price: text(worst) }
  return place(trader, { ...terms, ...amount })
}

/** A price with room for the quotes on both sides. */
async function movePrice({ venue, market, random }: Pairing): Promise<bigint> {
  const tick = tickOf(market)
  const ticks = dollar / tick
  const price = (ticks / 5n + BigInt(Math.floor(random() * Number((ticks * 3n) / 5n)))) * tick
  await venue('POST', '/price', { market: market.slug, price: Number(price) / Number(dollar) })
  return price
}

/** Lets one order rest and the other take of it, and cancels what is left. */
export async function meet(pairing: Pairing): Promise<void> {
  const { market, random, counts } = pairing
  const fair = await movePrice(pairing)
  const priceOf = ({ outcome }: Part) => (outcome === 0 ? fair : dollar - fair)
  const plan = await planOf(pairing)
  const { maker, taker, meeting, sharesUnits } = plan
  const resting: string[] = []
  for (const shares of split(sharesUnits, random)) {
    const { result } = await rest(maker, market, priceOf(maker), shares)
    resting.push(result.order_id!)
  }
  await take(plan, pairing, priceOf(taker))
  counts[meeting] += 1
  const { outcome } = await run(maker.trader.person, '/predmkt/order/cancel', { order_ids: resting })
  assert.ok(outcome === 'executed' || outcome === 'partial', `the cancel: ${outcome}`)
}
