import { collateralFor, transferFor } from '#engines/venue/orders/collateral-shortfall.ts'
import type { Spendings } from '#engines/venue/orders/pending-spends.ts'
import { fromUnits, mulDiv, toMicros, usdDecimals } from '#kernel/money/money.ts'
import type { BalanceAttempt } from '#kernel/task/admission.ts'
import type { Account, Hyperliquid, Position } from '#upstreams/hyperliquid/hyperliquid.ts'

const spareShare = 500n

type Leveraged = { notional: bigint; leverage: { value: number }; position: Position | undefined }
export type OpenOrder = Leveraged & {
  account: string
  margin: bigint
  isBuy: boolean
  state: Account
  spendings: Spendings
}

export function marginText(notional: bigint, { value }: Leveraged['leverage']): string {
  const cents = mulDiv(notional, 1n, BigInt(value) * 10n ** BigInt(usdDecimals - 2), 'up')
  return fromUnits(cents, 2)
}

/** The margin of the order, plus the extra margin of the open position if the leverage changes. */
export function marginOf({ notional, leverage, position }: Leveraged): bigint {
  const own = mulDiv(notional, 1n, BigInt(leverage.value), 'up')
  if (!position || position.leverage === leverage.value) return own
  const value = toMicros(position.valueUsd)
  const extra =
    mulDiv(value, 1n, BigInt(leverage.value), 'up') - mulDiv(value, 1n, BigInt(position.leverage), 'down')
  return own + (extra > 0n ? extra : 0n)
}

/** Returns the free margin; an order against the position may use that margin twice, to close and to open. */
function freeFor({ isBuy, position, state }: OpenOrder): bigint {
  const free = toMicros(state.crossFreeUsd)
  const isOpposite = position !== undefined && position.signedSize.startsWith('-') === isBuy
  const total = free + (isOpposite ? 2n * toMicros(position.marginUsedUsd) : 0n)
  return total > 0n ? total : 0n
}

/** Transfers a little more than the shortfall, because the fee is paid from the same balance. */
export const transferForMargin = (
  venue: Pick<Hyperliquid, 'spotBalances' | 'accountMode'>,
  order: OpenOrder,
  { isLast }: BalanceAttempt,
) =>
  transferFor(
    {
      what: `The margin of the order at leverage ${order.leverage.value}`,
      required: order.margin,
      available: freeFor(order),
      pendingSpend: order.spendings.perpCash(order.state),
      spareMicros: order.notional / spareShare,
      isLast,
    },
    (shortfall) => collateralFor(venue, order.account, shortfall, order.spendings),
  )
