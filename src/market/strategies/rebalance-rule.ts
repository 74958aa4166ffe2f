import {
  fromUnits,
  toFixedPoint,
  toMicros,
  unitsWorth,
  usdDecimals,
  valueMicros,
} from '#kernel/money/money.ts'
import { decimalText } from '#market/decimal-text.ts'
import type { Windows } from './candle-columns.ts'
import { defaultSlippageBps, entryRefusal, sizeEntry } from './entry.ts'
import {
  type Decision,
  type DecisionConfig,
  hold,
  type OrderIntent,
  type RebalanceConfig,
  type StrategyState,
} from './strategy.ts'
import { closesOf } from './window-indicators.ts'

type Drift = { asset: string; price: number; heldMicros: bigint; targetMicros: bigint; heldUnits: bigint }
type Rebalance = DecisionConfig & { strategy: RebalanceConfig }

const whole = 10_000n

/**
 * Brings shares back to their targets where one is off by the band. It sells first; what a sale frees is bought with at
 * the next time, because only fills say what it has freed.
 */
export function decideRebalance(windows: Windows, state: StrategyState, config: Rebalance): Decision {
  const { strategy, markets } = config
  const drifts: Drift[] = []
  const equity = toMicros(state.equity_usd)
  if (equity <= 0n) return hold('insufficient_balance')
  for (const { asset, share_bps } of strategy.targets) {
    const [window, rules] = [windows[asset], markets[asset]]
    if (!window || !rules) return hold('market_closed')
    const { now: price } = closesOf(window)
    const held = state.positions[asset]
    const heldUnits = held ? (toFixedPoint(held.size) * 10n ** BigInt(rules.size_decimals)) / 10n ** 18n : 0n
    const heldMicros = valueMicros(heldUnits, rules.size_decimals, decimalText(price) ?? '0')
    drifts.push({ asset, price, heldUnits, heldMicros, targetMicros: (equity * BigInt(share_bps)) / whole })
  }
  const isOff = ({ heldMicros, targetMicros }: Drift) =>
    (heldMicros > targetMicros ? heldMicros - targetMicros : targetMicros - heldMicros) * whole >=
    equity * BigInt(strategy.band_bps)
  const off = drifts.filter(isOff)
  const figures = Object.fromEntries(
    drifts.map(({ asset, heldMicros }) => [`${asset}_share`, fromUnits((heldMicros * whole) / equity, 4)]),
  )
  if (off.length === 0) return hold('within_band', figures)
  const sales = off.flatMap((drift) => saleOf(drift, state, config))
  if (sales.length > 0) return { action: 'adjust', reason: 'share_above_target', figures, orders: sales }
  return purchases(off, state, config, figures)
}

function saleOf(drift: Drift, { foreign }: StrategyState, { markets }: Rebalance): OrderIntent[] {
  const { asset, price, heldMicros, targetMicros, heldUnits } = drift
  const rules = markets[asset]
  if (!rules || heldMicros <= targetMicros || foreign.includes(asset)) return []
  const units = unitsWorth(heldMicros - targetMicros, rules.size_decimals, decimalText(price) ?? '0')
  const sold = units > heldUnits ? heldUnits : units
  if (valueMicros(sold, rules.size_decimals, decimalText(price) ?? '0') < toMicros(rules.min_order_usd))
    return []
  const size = fromUnits(sold, rules.size_decimals)
  return [{ asset, side: 'sell', order_type: 'market', size, reduce_only: true }]
}

function purchases(
  off: readonly Drift[],
  state: StrategyState,
  { markets }: Rebalance,
  figures: Decision['figures'],
): Decision {
  const orders: OrderIntent[] = []
  let left = state
  let refusal: Decision | undefined
  for (const { asset, price, heldMicros, targetMicros } of off) {
    const rules = markets[asset]
    if (!rules || targetMicros <= heldMicros) continue
    const usd = fromUnits(targetMicros - heldMicros, usdDecimals)
    const refused = entryRefusal(left, asset, 'buy')
    const entry =
      refused ??
      sizeEntry(
        {
          asset,
          side: 'buy',
          price,
          slippageBps: defaultSlippageBps,
          leverage: 1,
          rules,
          wanted: { usd },
          partial: true,
        },
        left,
      )
    if ('action' in entry) {
      refusal ??= entry
      continue
    }
    orders.push({
      asset,
      side: 'buy',
      order_type: 'market',
      size: entry.size,
      ...(entry.usdMax !== undefined && { usd_max: entry.usdMax }),
      reduce_only: false,
      ...(rules.kind === 'perp' && { leverage: 1 }),
    })
    left = spent(left, entry.micros)
  }
  if (orders.length > 0) return { action: 'adjust', reason: 'share_below_target', figures, orders }
  return refusal ?? hold('below_minimum', figures)
}

/** The state after a purchase, so that several together stay within what is there. */
function spent(state: StrategyState, micros: bigint): StrategyState {
  const without = (usd: string) =>
    fromUnits(toMicros(usd) - micros - (micros * 450n) / 1_000_000n - 1n, usdDecimals)
  return {
    ...state,
    available_usd: without(state.available_usd),
    budget_left_usd:
      state.budget_left_usd === null
        ? null
        : fromUnits(toMicros(state.budget_left_usd) - micros, usdDecimals),
  }
}
