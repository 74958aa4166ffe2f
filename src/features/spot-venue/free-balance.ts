import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { decimalPlaces, fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'

/** What an order may spend or sell of a balance, and the fault of a balance that is too small. */

type Balance = { coin: string; total: string; hold: string }

/** Returns the total of a balance minus the amount that open orders reserve. */
export function freeOf(balances: readonly Balance[], coin: string): string {
  const balance = balances.find((each) => each.coin === coin)
  if (!balance) return '0'
  const free = toFixedPoint(balance.total) - toFixedPoint(balance.hold)
  return free > 0n ? fromFixedPoint(free) : '0'
}

export const lesser = (a: string, b: string): string => (compareDecimals(a, b) < 0 ? a : b)

type HoldingShortage = { what: string; required: string; free: string; note?: string }

/** Returns the fault of a missing balance; free dust may have more decimals than a size, so all are shown. */
export function insufficientHolding(
  { symbol, sizeDecimals }: SpotMarket,
  { free, ...shortage }: HoldingShortage,
): Fault {
  const decimals = Math.max(sizeDecimals, decimalPlaces(free))
  return insufficientBalance({ symbol, decimals }, { ...shortage, available: free })
}

export const smallestLot = (lot: string): string => `the smallest lot is ${lot}`
