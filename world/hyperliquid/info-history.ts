import { rateText } from './decimal.ts'
import { fundingRate, hourMs, rateOne } from './funding.ts'
import { accountOrEmpty } from './info-account.ts'
import { candlesOf } from './info-market.ts'
import { marketNamed, type Perp } from './markets.ts'
import type { Account, MarketState, Order } from './state.ts'
import { stateOf, type Venue } from './venue.ts'
import { fillView, frontendOrder, fundingView, type Json, openOrder } from './views.ts'

const fillsMax = 2_000
const recordsMax = 500
const ordersMax = 2_000

type Window = { fromMs: number; toMs: number }

const always: Window = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

const within = (timeMs: number, { fromMs, toMs }: Window): boolean => timeMs >= fromMs && timeMs <= toMs

const openOf = (venue: Venue, account: Account): Order[] =>
  [...account.open]
    .map((oid) => venue.state.orders.get(oid) as Order)
    .filter(({ phase }) => phase !== 'waiting')

export const openOrders = (venue: Venue, address: string): Json[] =>
  openOf(venue, accountOrEmpty(venue, address)).map(openOrder).reverse()

export const frontendOpenOrders = (venue: Venue, address: string): Json[] =>
  openOf(venue, accountOrEmpty(venue, address))
    .map((order) => frontendOrder(venue.state, order))
    .reverse()

const statusView = (venue: Venue, order: Order): Json => ({
  order: frontendOrder(venue.state, order),
  status: order.phase === 'done' || order.status === 'triggered' ? order.status : 'open',
  statusTimestamp: order.statusMs,
})

export const orderStatus = (venue: Venue, address: string, oid: number | string): Json => {
  const account = accountOrEmpty(venue, address)
  const id = typeof oid === 'string' ? account.cloids.get(oid) : oid
  const order = id === undefined ? undefined : venue.state.orders.get(id)
  return order?.user === account.address
    ? { status: 'order', order: statusView(venue, order) }
    : { status: 'unknownOid' }
}

export const historicalOrders = (venue: Venue, address: string): Json[] =>
  accountOrEmpty(venue, address)
    .orders.slice(-ordersMax)
    .reverse()
    .map((oid) => statusView(venue, venue.state.orders.get(oid) as Order))

export const userFills = (venue: Venue, address: string): Json[] =>
  accountOrEmpty(venue, address).fills.slice(-fillsMax).reverse().map(fillView)

/** Oldest first, because a caller pages forward by time. */
export const userFillsByTime = (venue: Venue, address: string, window: Window): Json[] =>
  accountOrEmpty(venue, address)
    .fills.filter(({ timeMs }) => within(timeMs, window))
    .slice(0, fillsMax)
    .map(fillView)

export const twapSliceFills = (venue: Venue, address: string, window: Window = always): Json[] =>
  accountOrEmpty(venue, address)
    .fills.filter(({ twapId, timeMs }) => twapId !== undefined && within(timeMs, window))
    .slice(-fillsMax)
    .reverse()
    .map((fill) => ({ fill: fillView(fill), twapId: fill.twapId }))

export const userFunding = (venue: Venue, address: string, window: Window): Json[] =>
  accountOrEmpty(venue, address)
    .fundings.filter(({ timeMs }) => within(timeMs, window))
    .slice(0, recordsMax)
    .map((funding) => {
      const { time, ...rest } = fundingView(funding)
      return { time, hash: `0x${'0'.repeat(64)}`, delta: { type: 'funding', ...rest } }
    })

export const ledgerUpdates = (venue: Venue, address: string, window: Window): Json[] =>
  accountOrEmpty(venue, address)
    .ledger.filter(({ timeMs }) => within(timeMs, window))
    .slice(0, recordsMax)
    .map(({ timeMs, hash, delta }) => ({ time: timeMs, hash, delta }))

/** Share of an hour's price move that counts as the premium of that hour. */
const premiumShare = 0.25

/** Funding rates from before this venue began, computed from the candles of that time. */
const pastRates = (venue: Venue, market: Perp, { fromMs, toMs }: Window): MarketState['rates'] => {
  const { genesisMs } = venue.state
  if (fromMs > genesisMs) return []
  return candlesOf(venue, market, '1h', { fromMs: fromMs - hourMs, toMs: Math.min(toMs, genesisMs) })
    .map(({ startMs, open, close }) => {
      const premium = BigInt(Math.round(((close - open) / open) * premiumShare * Number(rateOne)))
      return { timeMs: startMs + hourMs, rate: fundingRate(premium), premium }
    })
    .filter(({ timeMs }) => timeMs <= genesisMs)
}

export const fundingHistory = (venue: Venue, coin: string, window: Window): Json[] => {
  const market = marketNamed(coin)
  if (market?.kind !== 'perp') return []
  return [...pastRates(venue, market, window), ...stateOf(venue, market.asset).rates]
    .filter(({ timeMs }) => within(timeMs, window))
    .slice(0, recordsMax)
    .map(({ timeMs, rate, premium }) => ({
      coin,
      fundingRate: rateText(rate),
      premium: rateText(premium),
      time: timeMs,
    }))
}

export const predictedFunding = (venue: Venue, { asset, coin }: Perp): Json => [
  coin,
  [
    [
      'HlPerp',
      {
        fundingRate: rateText(stateOf(venue, asset).rate),
        nextFundingTime: venue.state.next.fundingMs,
        fundingIntervalHours: 1,
      },
    ],
  ],
]
