import { maximum, notional, one } from './decimal.ts'
import { type OrderError, orderError, spotMinimum, tooLarge } from './errors.ts'
import { feeOf } from './fees.ts'
import { availableMargin, initialMargin, isolatedValue, leverageOf } from './margin.ts'
import { type Market, maxOrderUsd, type Perp, usdc } from './markets.ts'
import { spotHold } from './order-lifecycle.ts'
import { closable } from './positions.ts'
import type { Account, Order } from './state.ts'
import { isOnTick } from './ticks.ts'
import { freeUsd } from './unified.ts'
import { spotOf, stateOf, type Venue } from './venue.ts'

const minimumUsd = 10n * BigInt(one)

/** The expected execution price of an order: its own, unless the mark is better for the account. */
const reference = (order: Order, mark: number): number => (order.buy ? Math.min(order.price, mark) : mark)

const marginNeeded = (account: Account, market: Perp, order: Order, mark: number): bigint => {
  const { cross, value: leverage } = leverageOf(account, market)
  const position = account.positions.get(market.asset)
  const old = position?.size ?? 0
  const next = old + (order.buy ? order.left : -order.left)
  const price = reference(order, mark)
  if (cross) {
    const opening = Math.max(0, Math.abs(next) - Math.abs(old))
    return initialMargin(notional(price, opening, market.sizeDecimals), leverage)
  }
  const isFlip = old !== 0 && Math.sign(old) !== Math.sign(next)
  const opening = isFlip ? Math.abs(next) : Math.max(0, Math.abs(next) - Math.abs(old))
  if (opening === 0) return 0n
  const value = notional(price, opening, market.sizeDecimals)
  const freed = isFlip && position ? isolatedValue(position, mark) : 0n
  return maximum(0n, initialMargin(value, leverage) - freed) + feeOf('perp', { crossed: true }, value)
}

export const lacksMargin = (venue: Venue, account: Account, market: Perp, order: Order): boolean => {
  const mark = stateOf(venue, market.asset).mark
  const needed = marginNeeded(account, market, order, mark)
  return needed > 0n && availableMargin(account, (asset) => stateOf(venue, asset).mark) < needed
}

export const lacksBalance = (venue: Venue, account: Account, market: Market, order: Order): boolean => {
  const share = spotHold(order, market)
  if (!share) return false
  if (share.token === usdc.index) return freeUsd(venue, account) < share.units
  const { total, hold } = spotOf(account, share.token)
  return total - hold < share.units
}

const isTooSmall = (account: Account, market: Market, order: Order): boolean => {
  if (notional(order.price, order.left, market.sizeDecimals) >= minimumUsd) return false
  if (market.kind === 'spot' || !order.reduceOnly) return true
  // A protective order and a full close may be of any size: otherwise dust could never be closed.
  return !order.trigger && order.left < closable(account, market.asset, { buy: order.buy })
}

/** Side of the mark on which the order triggers. */
export const triggersAbove = ({ trigger, buy }: Order): boolean => (trigger?.tpsl === 'tp') !== buy

const isWrongSide = (order: Order, reference: number): boolean =>
  order.trigger !== null &&
  (triggersAbove(order) ? order.trigger.price <= reference : order.trigger.price >= reference)

/** The exits of a bracket are checked against the price of the parent. */
const expectedEntry = ({ buy, price }: Order, mark: number): number =>
  buy ? Math.min(price, mark) : Math.max(price, mark)

/** The largest order of the market in dollars, where this one is above it. */
const exceededMaxUsd = (market: Market, order: Order): number | undefined => {
  if (market.kind === 'spot' || order.reduceOnly) return undefined
  const maxUsd = maxOrderUsd(market, {
    isMarketOrder: order.tif === 'FrontendMarket' || order.trigger?.market === true,
  })
  const value = notional(order.price, order.left, market.sizeDecimals)
  return value > BigInt(maxUsd) * BigInt(one) ? maxUsd : undefined
}

const isFarFromReference = (order: Order, price: number): boolean =>
  Math.abs(order.price - price) > 0.8 * price

/** Every check of an order before it reaches the book. */
export const checkOrder = (
  venue: Venue,
  account: Account,
  market: Market,
  { order, parent }: { order: Order; parent?: Order },
): OrderError | undefined => {
  const { asset } = market
  const state = stateOf(venue, asset)
  if (market.kind === 'perp' && market.delisted) return orderError('delisted', asset)
  if (!isOnTick(order.price, market)) return orderError('tick', asset)
  if (order.trigger && !isOnTick(order.trigger.price, market)) return orderError('tick', asset)
  if (isWrongSide(order, parent ? expectedEntry(parent, state.mark) : state.mark))
    return orderError('trigger', asset)
  if (!order.trigger && isFarFromReference(order, state.oracle)) return orderError('oracle', asset)
  if (!order.positionTpsl && isTooSmall(account, market, order))
    return market.kind === 'spot' ? spotMinimum(market.quote.name, asset) : orderError('minimum', asset)
  const maxUsd = exceededMaxUsd(market, order)
  if (maxUsd !== undefined) return tooLarge(maxUsd)
  if (parent) return undefined
  if (market.kind === 'perp' && order.reduceOnly && closable(account, asset, { buy: order.buy }) === 0)
    return orderError('reduceOnly', asset)
  if (order.trigger) return undefined
  if (market.kind === 'spot')
    return lacksBalance(venue, account, market, order) ? orderError('spot', asset) : undefined
  return !order.reduceOnly && lacksMargin(venue, account, market, order)
    ? orderError('margin', asset)
    : undefined
}
