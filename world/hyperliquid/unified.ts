import { crossSummary, isolatedValue, type Marks, withdrawable } from './margin.ts'
import { usdc } from './markets.ts'
import type { Account } from './state.ts'
import { spotOf, stateOf, type Venue } from './venue.ts'

/**
 * Accounts in the modes unified and portfolio margin have one balance of dollars: it is margin, buys tokens and can be
 * withdrawn. It is stored on the perpetual side and shown on the spot side; only the holds of resting spot orders are
 * separate.
 */
export const isUnified = ({ abstraction }: Account): boolean =>
  abstraction === 'unifiedAccount' || abstraction === 'portfolioMargin'

const marks =
  (venue: Venue): Marks =>
  (asset) =>
    stateOf(venue, asset).mark

const toPerp = ({ state }: Venue, account: Account, units: bigint): void => {
  spotOf(account, usdc.index).total -= units
  account.raw += units
  state.flows.perp += units
  state.flows.spot.set(usdc.index, (state.flows.spot.get(usdc.index) ?? 0n) - units)
}

/** Adds dollars without a hold to the one balance. */
export const poolUsd = (venue: Venue, account: Account): void => {
  const { total, hold } = spotOf(account, usdc.index)
  if (isUnified(account) && total > hold) toPerp(venue, account, total - hold)
}

/** Dollars that can buy tokens or be withdrawn. */
export const freeUsd = (venue: Venue, account: Account): bigint => {
  const { total, hold } = spotOf(account, usdc.index)
  return total - hold + (isUnified(account) ? withdrawable(account, marks(venue)) : 0n)
}

/** Takes the dollars of a spot order or transfer from the one balance. */
export const fundSpot = (venue: Venue, account: Account, units: bigint): void => {
  const { total, hold } = spotOf(account, usdc.index)
  const missing = units - (total - hold)
  if (isUnified(account) && missing > 0n && freeUsd(venue, account) >= units) toPerp(venue, account, -missing)
}

/** The one balance as the spot state shows it: the total, the held part, and the part that spot orders hold. */
export const unifiedUsd = (
  venue: Venue,
  account: Account,
): { total: bigint; hold: bigint; spotHold: bigint } => {
  const { total, hold } = account.spot.get(usdc.index) ?? { total: 0n, hold: 0n }
  let value = crossSummary(account, marks(venue)).value
  for (const position of account.positions.values())
    if (!position.leverage.cross) value += isolatedValue(position, marks(venue)(position.asset))
  return {
    total: total + value,
    hold: hold + value - withdrawable(account, marks(venue)),
    spotHold: hold,
  }
}

/** An account that leaves the mode has its dollars on the perpetual side. */
export const setMode = (venue: Venue, account: Account, mode: Account['abstraction']): void => {
  account.abstraction = mode
  poolUsd(venue, account)
}
