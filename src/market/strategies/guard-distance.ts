import { fromUnits, mulDiv, toMicros, toUnits, usdDecimals } from '#kernel/money/money.ts'
import type { GuardName, GuardState } from './guards.ts'

/** How much of what its guards allow a strategy has used. */

/** The guards as their owner sets them; percents are decimal text. */
export type SetGuards = {
  max_loss_usd?: string
  max_drawdown_pct?: string
  daily_loss_usd?: string
  max_consecutive_losses?: number
}
export type GuardUse = {
  guard: GuardName
  /** The used part of the limit in hundredths of a percent. */
  usedBps: bigint
  /** Such as "82.5 of 100 USD". */
  text: string
}

const percentDecimals = 2
const full = 10_000n

const lossUse = (guard: GuardName, lost: bigint, limit: string): GuardUse => {
  const loss = lost < 0n ? 0n : lost
  return {
    guard,
    usedBps: mulDiv(loss, full, toMicros(limit)),
    text: `${fromUnits(loss, usdDecimals)} of ${limit} USD`,
  }
}

/** Returns the use of each guard on losses, the most used first. */
export function guardUses(state: GuardState, guards: SetGuards, equityMicros: bigint): GuardUse[] {
  const { max_loss_usd, max_drawdown_pct, daily_loss_usd, max_consecutive_losses } = guards
  const uses: GuardUse[] = []
  if (max_loss_usd !== undefined)
    uses.push(lossUse('max_loss', state.startMicros - equityMicros, max_loss_usd))
  if (daily_loss_usd !== undefined)
    uses.push(lossUse('daily_loss', state.dayStartMicros - equityMicros, daily_loss_usd))
  if (max_drawdown_pct !== undefined && state.peakMicros > 0n) {
    const fall = state.peakMicros > equityMicros ? state.peakMicros - equityMicros : 0n
    const fallBps = mulDiv(fall, full, state.peakMicros)
    const text = `${fromUnits(fallBps, percentDecimals)} of ${max_drawdown_pct} %`
    const limitBps = toUnits(max_drawdown_pct, percentDecimals)
    uses.push({ guard: 'max_drawdown', usedBps: mulDiv(fallBps, full, limitBps), text })
  }
  if (max_consecutive_losses !== undefined)
    uses.push({
      guard: 'max_consecutive_losses',
      usedBps: (BigInt(state.lossesInRow) * full) / BigInt(max_consecutive_losses),
      text: `${state.lossesInRow} of ${max_consecutive_losses} losses in a row`,
    })
  return uses.sort((a, b) => (a.usedBps > b.usedBps ? -1 : a.usedBps < b.usedBps ? 1 : 0))
}
