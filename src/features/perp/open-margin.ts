import { collateralFor, transferFor } from '#engines/venue/orders/collateral-shortfall.ts'
import type { Spendings } from '#engines/venue/orders/pending-spends.ts'
import { fromUnits, mulDiv, toMicros, usdDecimals } from '#kernel/money/money.ts'
import type { BalanceAttempt } from '#kernel/task/admission.ts'
import type { Account, Hyperliquid, Position } from '#upstreams/hyperliquid/hyperliquid.ts'

const spareShare = 500n

export type Margin = {
  account: string
  notional: bigint
  leverage: number
  isBuy: boolean
  position: Position | undefined
  state: Account
  spendings: Spendings
}

export function marginText(notional: bigint, leverage: number): string {
  const cents = mulDiv(notional, 1n, BigInt(leverage) * 10n ** BigInt(usdDecimals - 2), 'up')
  return fromUnits(cents, 2)
}

/** The margin of the order, plus the extra margin of the open position if the leverage changes. */
export function marginOf({ notional, leverage, position }: Margin): bigint {
  const own = mulDiv(notional, 1n, BigInt(leverage), 'up')
  if (!position || position.leverage === leverage) return own
  const value = toMicros(position.valueUsd)
  const extra =
    mulDiv(value, 1n, BigInt(leverage), 'up') - mulDiv(value, 1n, BigInt(position.leverage), 'down')
  return own + (extra > 0n ? extra : 0n)
}

/** Returns the free margin; an order against the position may use that margin twice, to close and to open. */
function freeFor({ isBuy, position, state }: Margin): bigint {
  const free = toMicros(state.crossFreeUsd)
  const isOpposite = position !== undefined && position.signedSize.startsWith('-') === isBuy
  const total = free + (isOpposite ? 2n * toMicros(position.marginUsedUsd) : 0n)
  return total > 0n ? total : 0n
}

/** Transfers a little more than the shortfall, because the fee is paid from the same balance. */
export const transferForMargin = (
  venue: Pick<Hyperliquid, 'spotBalances' | 'accountMode'>,
  margin: Margin,
  { isLast }: BalanceAttempt,
) =>
  transferFor(
    {
      what: `The margin of the order at leverage ${margin.leverage}`,
      required: marginOf(margin),
      available: freeFor(margin),
      pendingSpend: margin.spendings.perpCash(margin.state),
      spareMicros: margin.notional / spareShare,
      isLast,
    },
    (shortfall) => collateralFor(venue, margin.account, shortfall, margin.spendings),
  )
