import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'

/** The venue reports the profit of a fill before fees, and the fee separately. */

export type RealizedPnl = { realized_pnl_gross_usd: string; realized_pnl_net_usd: string | null }

const scale = 18
const units = (text: string): bigint => toUnits(text, scale)

/** Net is null where a fee was taken in another token than USDC. */
export function realizedPnlOf(
  fills: readonly Pick<Fill, 'closedPnlUsd' | 'feeUsd' | 'feeToken'>[],
): RealizedPnl {
  let [gross, fees] = [0n, 0n]
  for (const { closedPnlUsd, feeUsd } of fills) {
    gross += units(closedPnlUsd)
    fees += units(feeUsd)
  }
  const isInUsd = fills.every(({ feeToken, feeUsd }) => feeToken === 'USDC' || units(feeUsd) === 0n)
  return {
    realized_pnl_gross_usd: fromUnits(gross, scale),
    realized_pnl_net_usd: isInUsd ? fromUnits(gross - fees, scale) : null,
  }
}
