import { decimalText } from '#market/decimal-text.ts'
import type { Windows } from './candle-columns.ts'
import { defaultSlippageBps, entryRefusal, isMore, sizeEntry } from './entry.ts'
import { type DcaConfig, type Decision, type DecisionConfig, hold, type StrategyState } from './strategy.ts'
import { closesOf } from './window-indicators.ts'

/** Buys for the same amount each time, and never for a smaller one unless the caller allows it. */
export function decideDca(
  windows: Windows,
  state: StrategyState,
  { strategy, markets }: DecisionConfig & { strategy: DcaConfig },
): Decision {
  const { asset, amount_usd, max_price, partial = false } = strategy
  const [window, rules] = [windows[asset], markets[asset]]
  if (!window || !rules) return hold('market_closed')
  const { now: price } = closesOf(window)
  const shown = { price: decimalText(price) ?? '0' }
  if (max_price !== undefined && isMore(shown.price, max_price))
    return hold('price_above_maximum', { ...shown, max_price })
  const refusal = entryRefusal(state, asset, 'buy')
  if (refusal) return refusal
  const entry = sizeEntry(
    {
      asset,
      side: 'buy',
      price,
      slippageBps: defaultSlippageBps,
      leverage: 1,
      rules,
      wanted: { usd: amount_usd },
      partial,
    },
    state,
  )
  if ('action' in entry) return entry
  return {
    action: 'enter',
    reason: 'due',
    figures: shown,
    orders: [
      {
        asset,
        side: 'buy',
        order_type: 'market',
        size: entry.size,
        ...(entry.usdMax !== undefined && { usd_max: entry.usdMax }),
        reduce_only: false,
        ...(rules.kind === 'perp' && { leverage: 1 }),
      },
    ],
  }
}
