import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'

/** The venue reports the profit of a fill before fees, and the fee separately. */

export type RealizedPnl = { realized_pnl_gross_usd: string; realized_pnl_net_usd: string | null }

/** Returns the profit of fills; the net profit is null if a fee was taken in another token than USDC. */
export function realizedPnlOf(
  fills: readonly Pick<Fill, 'closedPnlUsd' | 'feeUsd' | 'feeToken'>[],
): RealizedPnl {
  let [gross, fees] = [0n, 0n]
  for (const { closedPnlUsd, feeUsd } of fills) {
    gross += toFixedPoint(closedPnlUsd)
    fees += toFixedPoint(feeUsd)
  }
  const isInUsd = fills.every(({ feeToken, feeUsd }) => feeToken === 'USDC' || toFixedPoint(feeUsd) === 0n)
  return {
    realized_pnl_gross_usd: fromFixedPoint(gross),
    realized_pnl_net_usd: isInUsd ? fromFixedPoint(gross - fees) : null,
  }
}
