import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { fromUnits, toMicros, toUnits, usdDecimals } from '#kernel/money/money.ts'
import type { GuardConfig } from '#market/strategies/guards.ts'
import type { GuardsInput } from './strategy-schemas.ts'

/** Reads the guards of a strategy, and compares those of two versions. */

/** Percents have two places, so hundredths of a percent are whole. */
export const bpsOf = (percent: string): number => Number(toUnits(percent, 2))
const usdText = (usd: string): string => fromUnits(toMicros(usd), usdDecimals)

/** Returns the guards as every mode reads them: equal guards are equal JSON, however their amounts are written. */
export function guardsOf({ max_drawdown_pct, on_trip = 'flatten', ...guards }: GuardsInput): GuardConfig {
  const { max_loss_usd, daily_loss_usd, ...counts } = guards
  const given = Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== undefined))
  return {
    ...given,
    ...(max_loss_usd !== undefined && { max_loss_usd: usdText(max_loss_usd) }),
    ...(daily_loss_usd !== undefined && { daily_loss_usd: usdText(daily_loss_usd) }),
    ...(max_drawdown_pct !== undefined && { max_drawdown_bps: bpsOf(max_drawdown_pct) }),
    on_trip,
  }
}

/** A longer pause is stricter; of every other guard a smaller bound is. */
const longerIsStricter: ReadonlySet<string> = new Set(['cooldown_seconds'])

/** Whether guards allow nothing that the guards before them did not. */
export function areNoLooser(guards: GuardConfig, { on_trip: onTrip, ...before }: GuardConfig): boolean {
  const now = guards as Readonly<Record<string, string | number | undefined>>
  return (
    guards.on_trip === onTrip &&
    Object.entries(before).every(([name, bound]) => {
      const value = now[name]
      if (bound === undefined) return true
      if (value === undefined) return false
      const order = compareDecimals(String(value), String(bound))
      return longerIsStricter.has(name) ? order >= 0 : order <= 0
    })
  )
}
