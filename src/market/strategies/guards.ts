import { toMicros } from '#kernel/money/money.ts'

/** What keeps a strategy from losing more, or acting more often, than its owner wants: the same in every mode. */

export type GuardConfig = {
  max_loss_usd?: string
  /** A fall from the highest equity, in hundredths of a percent. */
  max_drawdown_bps?: number
  daily_loss_usd?: string
  max_trades_per_day?: number
  max_consecutive_losses?: number
  max_open_positions?: number
  cooldown_seconds?: number
  until_ms?: number
  /** What a guard does that trips: it allows no entry, or closes every position as well. */
  on_trip: 'stop_entries' | 'flatten'
}

export type GuardName =
  | 'max_loss'
  | 'max_drawdown'
  | 'daily_loss'
  | 'max_trades_per_day'
  | 'max_consecutive_losses'
  | 'max_open_positions'
  | 'cooldown'
  | 'until'
export type GuardTrip = { guard: GuardName; atMs: number }

export type GuardState = {
  startMicros: bigint
  peakMicros: bigint
  dayStartMicros: bigint
  dayEndsMs: number
  entriesToday: number
  lossesInRow: number
  lastEntryMs: number | null
  /** A guard that has tripped for good. */
  tripped: GuardTrip | null
  /** A guard that has tripped until the day ends. */
  trippedToday: GuardTrip | null
}

export const openGuards = (equityMicros: bigint, dayEndsMs: number): GuardState => ({
  startMicros: equityMicros,
  peakMicros: equityMicros,
  dayStartMicros: equityMicros,
  dayEndsMs,
  entriesToday: 0,
  lossesInRow: 0,
  lastEntryMs: null,
  tripped: null,
  trippedToday: null,
})

/** The worth of an account at a time, and the end of the local day then. */
export type GuardReading = { atMs: number; equityMicros: bigint; dayEndsMs: number }

/** Reads the guards once: it begins another day, and trips what the worth of the account calls for. */
export function readGuards(before: GuardState, config: GuardConfig, reading: GuardReading): GuardState {
  const state = beginDay(before, reading)
  const { atMs, equityMicros: equity } = reading
  const peakMicros = equity > state.peakMicros ? equity : state.peakMicros
  const tripped = state.tripped ?? tripOf({ ...state, peakMicros }, config, reading)
  const dayLoss = config.daily_loss_usd
  const isDayLost = dayLoss !== undefined && state.dayStartMicros - equity >= toMicros(dayLoss)
  const trippedToday = state.trippedToday ?? (isDayLost ? { guard: 'daily_loss' as const, atMs } : null)
  const isSame =
    state === before &&
    peakMicros === before.peakMicros &&
    tripped === before.tripped &&
    trippedToday === before.trippedToday
  return isSame ? before : { ...state, peakMicros, tripped, trippedToday }
}

const beginDay = (state: GuardState, { atMs, equityMicros, dayEndsMs }: GuardReading): GuardState =>
  atMs < state.dayEndsMs || dayEndsMs === state.dayEndsMs
    ? state
    : { ...state, dayStartMicros: equityMicros, dayEndsMs, entriesToday: 0, trippedToday: null }

function tripOf(
  state: GuardState,
  config: GuardConfig,
  { atMs, equityMicros: equity }: GuardReading,
): GuardTrip | null {
  const { max_loss_usd, max_drawdown_bps, max_consecutive_losses, until_ms } = config
  if (max_loss_usd !== undefined && state.startMicros - equity >= toMicros(max_loss_usd))
    return { guard: 'max_loss', atMs }
  const fall = state.peakMicros - equity
  if (
    max_drawdown_bps !== undefined &&
    fall > 0n &&
    fall * 10_000n >= state.peakMicros * BigInt(max_drawdown_bps)
  )
    return { guard: 'max_drawdown', atMs }
  if (max_consecutive_losses !== undefined && state.lossesInRow >= max_consecutive_losses)
    return { guard: 'max_consecutive_losses', atMs }
  return until_ms !== undefined && atMs >= until_ms ? { guard: 'until', atMs } : null
}

export const countEntry = (state: GuardState, atMs: number): GuardState => ({
  ...state,
  entriesToday: state.entriesToday + 1,
  lastEntryMs: atMs,
})

export const countTrade = (state: GuardState, netMicros: bigint): GuardState => ({
  ...state,
  lossesInRow: netMicros < 0n ? state.lossesInRow + 1 : 0,
})

/** Returns the guard that allows no entry now, or null. */
export function entryGuard(
  state: GuardState,
  config: GuardConfig,
  { atMs, openPositions }: { atMs: number; openPositions: number },
): GuardName | null {
  const trip = state.tripped ?? state.trippedToday
  if (trip) return trip.guard
  const { max_trades_per_day, max_open_positions, cooldown_seconds } = config
  if (max_trades_per_day !== undefined && state.entriesToday >= max_trades_per_day)
    return 'max_trades_per_day'
  if (max_open_positions !== undefined && openPositions >= max_open_positions) return 'max_open_positions'
  const readyMs = (state.lastEntryMs ?? Number.NEGATIVE_INFINITY) + (cooldown_seconds ?? 0) * 1_000
  return atMs < readyMs ? 'cooldown' : null
}

export const mustFlatten = ({ tripped, trippedToday }: GuardState, { on_trip }: GuardConfig): boolean =>
  on_trip === 'flatten' && (tripped !== null || trippedToday !== null)
