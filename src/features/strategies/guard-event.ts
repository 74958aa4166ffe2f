import type { NewEvent } from '#kernel/task/task.ts'
import type { GuardConfig, GuardName } from '#market/strategies/guards.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'

export type TrippedGuard = {
  strategyId: string
  title: string
  mode: StrategyMode
  guard: GuardName
  atMs: number
  onTrip: GuardConfig['on_trip']
  equityUsd: string
}

/** Returns the event of a guard that has tripped; it is sent whatever `notify` says. */
export const guardTrippedEvent = (tripped: TrippedGuard): NewEvent => ({
  type: 'schedule.guard_tripped',
  subject: { kind: 'schedule', id: tripped.strategyId },
  data: {
    schedule_id: tripped.strategyId,
    title: tripped.title,
    mode: tripped.mode,
    guard: tripped.guard,
    at: new Date(tripped.atMs).toISOString(),
    on_trip: tripped.onTrip,
    equity_usd: tripped.equityUsd,
  },
})
