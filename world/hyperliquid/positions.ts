import { absolute, notional } from './decimal.ts'
import { initialMargin, leverageOf } from './margin.ts'
import type { Perp } from './markets.ts'
import type { Account, Position } from './state.ts'

/** Effect of one fill on one side. */
export type PositionChange = { start: number; closedPnl: bigint; dir: string }

const createPosition = (account: Account, market: Perp): Position => {
  const position: Position = {
    asset: market.asset,
    size: 0,
    cost: 0n,
    leverage: { ...leverageOf(account, market) },
    raw: 0n,
    funding: { allTime: 0n, sinceOpen: 0n, sinceChange: 0n },
  }
  account.positions.set(market.asset, position)
  return position
}

export const direction = (start: number, signed: number): string => {
  const end = start + signed
  if (start === 0) return signed > 0 ? 'Open Long' : 'Open Short'
  if (Math.sign(start) === Math.sign(signed)) return start > 0 ? 'Open Long' : 'Open Short'
  if (end === 0 || Math.sign(end) === Math.sign(start)) return start > 0 ? 'Close Long' : 'Close Short'
  return start > 0 ? 'Long > Short' : 'Short > Long'
}

/** Adds to a position. Isolated ones take their margin from the account. */
const increase = (
  account: Account,
  market: Perp,
  position: Position,
  { signed, price }: { signed: number; price: number },
): void => {
  const size = Math.abs(signed)
  const value = notional(price, size, market.sizeDecimals)
  const paid = signed > 0 ? value : -value
  position.size += signed
  position.cost += value
  if (position.leverage.cross) account.raw -= paid
  else {
    const margin = initialMargin(value, position.leverage.value)
    account.raw -= margin
    position.raw += margin - paid
  }
}

/** Reduces a position; an isolated one returns its share of the equity to the account. */
const reduce = (
  account: Account,
  market: Perp,
  position: Position,
  { signed, price }: { signed: number; price: number },
): bigint => {
  const size = Math.abs(signed)
  const open = Math.abs(position.size)
  const value = notional(price, size, market.sizeDecimals)
  const cost = (position.cost * BigInt(size)) / BigInt(open)
  const closedPnl = position.size > 0 ? value - cost : cost - value
  const paid = signed > 0 ? value : -value
  if (position.leverage.cross) account.raw -= paid
  else {
    const equity = position.raw + notional(price, position.size, market.sizeDecimals)
    const released = (equity * BigInt(size)) / BigInt(open)
    position.raw -= paid + released
    account.raw += released
  }
  position.size += signed
  position.cost -= cost
  return closedPnl
}

export const applyTrade = (account: Account, market: Perp, signed: number, price: number): PositionChange => {
  const position = account.positions.get(market.asset) ?? createPosition(account, market)
  const start = position.size
  const opposite = start !== 0 && Math.sign(start) !== Math.sign(signed)
  const closing = opposite ? Math.sign(signed) * Math.min(Math.abs(signed), Math.abs(start)) : 0
  let closedPnl = 0n
  if (closing !== 0) closedPnl = reduce(account, market, position, { signed: closing, price })
  const opening = signed - closing
  if (opening !== 0) {
    if (position.size === 0) position.funding = { ...position.funding, sinceOpen: 0n }
    increase(account, market, position, { signed: opening, price })
  }
  position.funding.sinceChange = 0n
  if (position.size === 0) {
    account.leverage.set(market.asset, position.leverage)
    // Rounding leaves at most a few units of 1e-8, which are credited to the account.
    account.raw += position.raw
    account.positions.delete(market.asset)
  }
  return { start, closedPnl, dir: direction(start, signed) }
}

/** The size that a reduce-only order may trade now. */
export const closable = (account: Account, asset: number, { buy }: { buy: boolean }): number => {
  const size = account.positions.get(asset)?.size ?? 0
  return buy ? Math.max(0, -size) : Math.max(0, size)
}

export const entryPrice = (position: Position, sizeDecimals: number): bigint =>
  position.size === 0
    ? 0n
    : (position.cost * 10n ** BigInt(sizeDecimals) * 2n + BigInt(Math.abs(position.size))) /
      (2n * BigInt(Math.abs(position.size)))

export const unrealized = (position: Position, mark: number, sizeDecimals: number): bigint => {
  const value = absolute(notional(mark, position.size, sizeDecimals))
  return position.size > 0 ? value - position.cost : position.cost - value
}
