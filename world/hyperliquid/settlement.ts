import type { Resting } from '#world/venue-core/book.ts'
import { notional, one, power, sizeText, unitsText } from './decimal.ts'
import { builderFeeOf, feeOf, spotFeeInBase } from './fees.ts'
import { availableMargin, leverageOf } from './margin.ts'
import type { Market, Perp, Spot } from './markets.ts'
import { cancelSibling, endOrder, reduceOthers } from './order-lifecycle.ts'
import { applyTrade, closable } from './positions.ts'
import type { Account, Fill, Order } from './state.ts'
import { accountOf, type MatchRules, makerAddress, spotOf, stateOf, type Venue } from './venue.ts'

type Side = { account: Account; order: Order | undefined; buy: boolean; crossed: boolean }

const marks = (venue: Venue) => (asset: number) => stateOf(venue, asset).mark

/** Lots as token units of 1e-8. */
export const tokenUnits = (lots: number, sizeDecimals: number): bigint =>
  BigInt(lots) * power(8 - sizeDecimals)

const perpSide = (
  venue: Venue,
  market: Perp,
  side: Side,
  { price, size }: { price: number; size: number },
) => {
  const { account, order, buy, crossed } = side
  const value = notional(price, size, market.sizeDecimals)
  const change = applyTrade(account, market, buy ? size : -size, price)
  const base = account.isMarketMaker ? 0n : feeOf('perp', { crossed }, value)
  const extra = order?.builder ? builderFeeOf(value, order.builder.tenths) : 0n
  account.raw -= base + extra
  venue.state.fees.perp += base
  return { value, base, extra, change }
}

const spotSide = (
  venue: Venue,
  market: Spot,
  side: Side,
  { price, size }: { price: number; size: number },
) => {
  const { account, order, buy, crossed } = side
  const value = notional(price, size, market.sizeDecimals)
  const units = tokenUnits(size, market.sizeDecimals)
  const base = spotOf(account, market.base.index)
  const quote = spotOf(account, market.quote.index)
  const start = base.total
  const fee = account.isMarketMaker
    ? 0n
    : buy
      ? spotFeeInBase(units, { crossed })
      : feeOf('spot', { crossed }, value)
  let closedPnl = 0n
  if (buy) {
    quote.total -= value
    base.total += units - fee
    base.entry += value
  } else {
    const cost = base.total > 0n ? (base.entry * units) / base.total : 0n
    base.entry -= cost
    closedPnl = value - cost
    base.total -= units
    quote.total += value - fee
  }
  const token = buy ? market.base.index : market.quote.index
  venue.state.fees.spot.set(token, (venue.state.fees.spot.get(token) ?? 0n) + fee)
  // A resting order has a hold for its fill; a taker has none.
  if (order && !crossed) {
    if (buy) quote.hold -= notional(order.price, size, market.sizeDecimals)
    else base.hold -= units
  }
  return { value, fee, start, closedPnl }
}

const creditBuilder = (venue: Venue, order: Order | undefined, fee: bigint): void => {
  if (!order?.builder || fee === 0n) return
  const { address } = order.builder
  venue.state.builderFees.set(address, (venue.state.builderFees.get(address) ?? 0n) + fee)
}

const outcome = (
  venue: Venue,
  market: Market,
  side: Side,
  { price, size }: { price: number; size: number },
) => {
  if (market.kind === 'perp') {
    const { value, base, extra, change } = perpSide(venue, market, side, { price, size })
    creditBuilder(venue, side.order, extra)
    return {
      value,
      fee: base + extra,
      builderFee: extra,
      feeToken: 'USDC',
      startPosition: sizeText(change.start, market.sizeDecimals),
      dir: change.dir,
      closedPnl: change.closedPnl,
    }
  }
  const { value, fee, start, closedPnl } = spotSide(venue, market, side, { price, size })
  return {
    value,
    fee,
    builderFee: 0n,
    feeToken: side.buy ? market.base.name : market.quote.name,
    startPosition: unitsText(start),
    dir: side.buy ? 'Buy' : 'Sell',
    closedPnl,
  }
}

const fillsMax = 20_000

const settleSide = (
  venue: Venue,
  market: Market,
  side: Side,
  trade: { price: number; size: number; tid: number; liquidation: Fill['liquidation'] },
): void => {
  const { account, order, buy, crossed } = side
  const { price, size, tid, liquidation } = trade
  const { value, fee, builderFee, feeToken, startPosition, dir, closedPnl } = outcome(venue, market, side, {
    price,
    size,
  })
  if (!order) return
  account.volume += value
  order.left -= size
  order.spent += value
  const fill: Fill = {
    user: account.address,
    coin: market.coin,
    asset: market.asset,
    price,
    size,
    buy,
    timeMs: venue.state.nowMs,
    startPosition,
    dir,
    closedPnl,
    hash: venue.hash,
    oid: order.oid,
    crossed,
    fee,
    builderFee,
    feeToken,
    tid,
    cloid: order.cloid,
    liquidation,
    ...(order.twapId === undefined ? {} : { twapId: order.twapId }),
  }
  account.fills.push(fill)
  if (account.fills.length > fillsMax) account.fills.shift()
  venue.events.push({ kind: 'fill', user: account.address, fill })
}

const recentTradesMax = 500

const recordTrade = (
  venue: Venue,
  market: Market,
  { buy }: { buy: boolean },
  { price, size, users }: { price: number; size: number; users: [string, string] },
) => {
  const state = stateOf(venue, market.asset)
  const tid = venue.state.nextTid
  venue.state.nextTid += 1
  const trade = {
    coin: market.coin,
    buy,
    price,
    size,
    timeMs: venue.state.nowMs,
    hash: venue.hash,
    tid,
    users,
  }
  state.last = price
  state.trades.push(trade)
  if (state.trades.length > recentTradesMax) state.trades.splice(0, state.trades.length - recentTradesMax)
  venue.events.push({ kind: 'trade', trade })
  return tid
}

const takerOf = (
  venue: Venue,
): { account: Account; order: Order | undefined; liquidation: Fill['liquidation'] } => {
  const context = venue.takerContext
  if (!context) throw new Error('A book matched without a taker')
  if ('systemAddress' in context)
    return { account: accountOf(venue, context.systemAddress), order: undefined, liquidation: null }
  return {
    account: accountOf(venue, context.order.user),
    order: context.order,
    liquidation: context.liquidation,
  }
}

const filled = (
  venue: Venue,
  market: Market,
  maker: Resting,
  { price, size }: { price: number; size: number },
): void => {
  const { account, order, liquidation } = takerOf(venue)
  const resting = venue.state.orders.get(maker.id)
  const makerAccount = accountOf(venue, String(maker.owner))
  const users: [string, string] = maker.buy
    ? [makerAccount.address, account.address]
    : [account.address, makerAccount.address]
  const tid = recordTrade(venue, market, { buy: !maker.buy }, { price, size, users })
  const trade = { price, size, tid, liquidation }
  settleSide(venue, market, { account, order, buy: !maker.buy, crossed: true }, trade)
  settleSide(venue, market, { account: makerAccount, order: resting, buy: maker.buy, crossed: false }, trade)
  cancelSibling(venue, order)
  cancelSibling(venue, resting)
  if (resting?.left === 0) endOrder(venue, resting, 'filled')
  if (market.kind === 'perp') reduceOthers(venue, market, [account, makerAccount])
}

/** The resting side is checked again at every fill. */
const allow = (venue: Venue, market: Market, maker: Resting, size: number): number => {
  const order = venue.state.orders.get(maker.id)
  if (!order || market.kind === 'spot') return size
  const account = accountOf(venue, order.user)
  const closing = closable(account, market.asset, { buy: order.buy })
  if (order.reduceOnly) return Math.min(size, closing)
  const opening = Math.max(0, size - closing)
  if (opening === 0) return size
  const needed =
    notional(maker.price, opening, market.sizeDecimals) / BigInt(leverageOf(account, market).value)
  return availableMargin(account, marks(venue)) >= needed ? size : 0
}

const removed = (venue: Venue, _market: Market, maker: Resting, why: 'self' | 'refused'): void => {
  const order = venue.state.orders.get(maker.id)
  if (!order) return
  if (why === 'self') endOrder(venue, order, 'selfTradeCanceled')
  else endOrder(venue, order, order.reduceOnly ? 'reduceOnlyCanceled' : 'marginCanceled')
}

export const matchRules: MatchRules = { allow, filled, removed }

/** Conservation: every sum must be zero. */
export const conservation = (
  venue: Venue,
): { perp: bigint; spot: Record<string, bigint>; open: Record<string, number> } => {
  const { state } = venue
  let perp = state.fees.perp + state.fees.bridge + state.fees.rounding - state.flows.perp
  for (const fee of state.builderFees.values()) perp += fee
  const spot = new Map<number, bigint>()
  const open = new Map<number, number>()
  for (const [token, fee] of state.fees.spot) spot.set(token, (spot.get(token) ?? 0n) + fee)
  for (const [token, flow] of state.flows.spot) spot.set(token, (spot.get(token) ?? 0n) - flow)
  for (const account of state.accounts.values()) {
    perp += account.raw
    for (const position of account.positions.values()) {
      perp += position.raw
      open.set(position.asset, (open.get(position.asset) ?? 0) + position.size)
    }
    for (const [token, { total }] of account.spot) spot.set(token, (spot.get(token) ?? 0n) + total)
  }
  return {
    perp,
    spot: Object.fromEntries(spot),
    open: Object.fromEntries(open),
  }
}

export const isMarketMaker = (address: string): boolean => address === makerAddress
export const dollars = (usd: number): bigint => BigInt(Math.round(usd * one))
