import { rejectRequest } from '#world/venue-core/request-error.ts'
import { lacksBalance, lacksMargin } from './checks.ts'
import { notional, one, parseUnits, sizeText, unitsText } from './decimal.ts'
import { marketOf } from './markets.ts'
import { matchOrder, registerOrder } from './place-order.ts'
import { closable } from './positions.ts'
import type { Account, Order, Twap } from './state.ts'
import { toTick } from './ticks.ts'
import { accountOf, marketFor, midOf, stateOf, type Venue } from './venue.ts'
import type { Json } from './views.ts'

export type TwapWire = { a: number; b: boolean; s: string; r: boolean; m: number; t: boolean }

const sliceMs = 30_000
/** A slice that filled too little is made up for, but never by more than this. */
const catchUpMax = 3
const slippage = 0.03
const minutesMin = 5
const minutesMax = 1_440
const twapsMax = 2_000

const twapsOf = ({ state }: Venue): Twap[] => {
  state.twaps ??= []
  return state.twaps
}

export const placeTwap = (venue: Venue, account: Account, wire: TwapWire): Json => {
  const market = marketOf(wire.a) ?? rejectRequest(`Invalid asset: ${wire.a}`)
  const lots = parseUnits(wire.s, market.sizeDecimals)
  if (wire.m < minutesMin || wire.m > minutesMax) return { error: `Invalid TWAP duration: ${wire.m} min(s)` }
  if (lots === undefined || lots <= 0n || lots > 9_000_000_000_000_000n)
    return { error: 'Order has invalid size.' }
  const value = notional(stateOf(venue, market.asset).mark, Number(lots), market.sizeDecimals)
  if (value < 100n * BigInt(one)) return { error: 'TWAP order value too small. Min is $100.' }
  const twaps = twapsOf(venue)
  const twap: Twap = {
    id: (twaps.at(-1)?.id ?? 0) + 1,
    user: account.address,
    asset: market.asset,
    buy: wire.b,
    size: Number(lots),
    executed: 0,
    spent: 0n,
    reduceOnly: wire.r,
    minutes: wire.m,
    randomize: wire.t,
    startMs: venue.state.nowMs,
    slices: 0,
    status: 'activated',
    statusMs: venue.state.nowMs,
  }
  twaps.push(twap)
  if (twaps.length > twapsMax) {
    const at = twaps.findIndex(({ status }) => status !== 'activated')
    if (at >= 0) twaps.splice(at, 1)
  }
  runTwap(venue, twap)
  return { running: { twapId: twap.id } }
}

const endTwap = (venue: Venue, twap: Twap, status: Twap['status']): void => {
  twap.status = status
  twap.statusMs = venue.state.nowMs
}

export const cancelTwap = (venue: Venue, account: Account, wire: { a: number; t: number }): Json => {
  const twap = twapsOf(venue).find(({ id, user }) => id === wire.t && user === account.address)
  if (twap?.status !== 'activated' || twap.asset !== wire.a)
    return { error: 'TWAP was never placed, already canceled, or filled.' }
  endTwap(venue, twap, 'terminated')
  return 'success'
}

const sliceOrder = (venue: Venue, twap: Twap, size: number, mid: number): Order => {
  const bound = twap.buy ? mid * (1 + slippage) : mid * (1 - slippage)
  return {
    oid: 0,
    user: twap.user,
    asset: twap.asset,
    buy: twap.buy,
    price: toTick(Math.round(bound), marketFor(twap.asset)),
    size,
    left: size,
    tif: 'Ioc',
    reduceOnly: twap.reduceOnly,
    trigger: null,
    positionTpsl: false,
    cloid: null,
    placedMs: venue.state.nowMs,
    status: 'open',
    statusMs: venue.state.nowMs,
    phase: 'waiting',
    parent: null,
    children: [],
    sibling: null,
    builder: null,
    spent: 0n,
    twapId: twap.id,
  }
}

const sliceSize = (account: Account, twap: Twap, count: number): number => {
  const due = Math.floor((twap.size * (twap.slices + 1)) / count) - twap.executed
  const lotsMax = Math.ceil((twap.size / count) * catchUpMax)
  const room = twap.reduceOnly ? closable(account, twap.asset, { buy: twap.buy }) : Number.MAX_SAFE_INTEGER
  return Math.min(due, lotsMax, room)
}

const runTwap = (venue: Venue, twap: Twap): void => {
  const count = twap.minutes * 2
  const account = accountOf(venue, twap.user)
  const market = marketFor(twap.asset)
  while (twap.slices < count && twap.startMs + twap.slices * sliceMs <= venue.state.nowMs) {
    const size = sliceSize(account, twap, count)
    const mid = midOf(venue, twap.asset)
    twap.slices += 1
    if (mid === undefined || size <= 0) continue
    const order = sliceOrder(venue, twap, size, mid)
    const isUnfunded =
      market.kind === 'spot'
        ? lacksBalance(venue, account, market, order)
        : !order.reduceOnly && lacksMargin(venue, account, market, order)
    if (isUnfunded) {
      endTwap(venue, twap, 'terminated')
      return
    }
    registerOrder(venue, account, order)
    matchOrder(venue, order)
    twap.executed += order.size - order.left
    twap.spent += order.spent
  }
  if (twap.slices >= count || twap.executed >= twap.size) endTwap(venue, twap, 'finished')
}

export const runTwaps = (venue: Venue): void => {
  for (const twap of twapsOf(venue)) if (twap.status === 'activated') runTwap(venue, twap)
}

const stateView = (twap: Twap): Json => {
  const { coin, sizeDecimals } = marketFor(twap.asset)
  return {
    coin,
    executedNtl: unitsText(twap.spent),
    executedSz: sizeText(twap.executed, sizeDecimals),
    minutes: twap.minutes,
    randomize: twap.randomize,
    reduceOnly: twap.reduceOnly,
    side: twap.buy ? 'B' : 'A',
    stopPx: null,
    sz: sizeText(twap.size, sizeDecimals),
    timestamp: twap.startMs,
    trigger: null,
    user: twap.user,
  }
}

const twapsOfUser = ({ state }: Venue, user: string): Twap[] =>
  (state.twaps ?? []).filter((twap) => twap.user === user)

/** Newest first; one that has ended is preceded by its start. */
export const twapHistory = (venue: Venue, user: string): Json[] =>
  twapsOfUser(venue, user)
    .flatMap((twap) => {
      const began = { ...twap, executed: 0, spent: 0n }
      const records = [
        {
          time: Math.floor(twap.startMs / 1000),
          state: stateView(began),
          status: { status: 'activated' },
          twapId: twap.id,
        },
      ]
      if (twap.status !== 'activated')
        records.push({
          time: Math.floor(twap.statusMs / 1000),
          state: stateView(twap),
          status: { status: twap.status },
          twapId: twap.id,
        })
      return records
    })
    .reverse()

export const twapStates = (venue: Venue, user: string): Json[] =>
  twapsOfUser(venue, user)
    .filter(({ status }) => status === 'activated')
    .map((twap) => [twap.id, stateView(twap)])
