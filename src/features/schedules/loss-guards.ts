import type { GuardsInput } from '#engines/strategy-terms/strategy-schemas.ts'

/** The guards of which a live strategy needs at least one. */
export const lossGuards = ['max_loss_usd', 'max_drawdown_pct', 'daily_loss_usd'] as const
export const hasLossGuard = (guards: GuardsInput): boolean =>
  lossGuards.some((name) => guards[name] !== undefined)
