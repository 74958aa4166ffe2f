import type { NewEvent } from '#kernel/task/task.ts'
import type { GuardConfig, GuardTrip } from '#market/strategies/guards.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'

export type TrippedGuard = GuardTrip & {
  strategyId: string
  title: string
  mode: StrategyMode
  onTrip: GuardConfig['on_trip']
  equityUsd: string | null
}

const reasons: Readonly<Partial<Record<GuardTrip['guard'], string>>> = {
  max_loss: 'it has lost as much since the beginning as its guard allows',
  max_drawdown: 'it has fallen from its highest worth by as much as its guard allows',
  daily_loss: 'it has lost as much today as its guard allows',
  max_consecutive_losses: 'as many trades in a row had a loss as its guard allows',
  until: 'the time that its guard sets is over',
}

/** Returns the event of a guard that has tripped; it is sent whatever `notify` says. */
export function guardTrippedEvent(tripped: TrippedGuard): NewEvent {
  const { strategyId, title, mode, guard, atMs, onTrip, equityUsd } = tripped
  const until = guard === 'daily_loss' ? 'before the local day ends' : 'any more'
  const positions =
    onTrip === 'flatten' ? 'every position is closed' : 'what is open keeps its stop and its target'
  const reason = reasons[guard] ?? `its guard ${guard} has tripped`
  return {
    type: 'schedule.guard_tripped',
    subject: { kind: 'schedule', id: strategyId },
    data: {
      schedule_id: strategyId,
      title,
      mode,
      guard,
      at: new Date(atMs).toISOString(),
      on_trip: onTrip,
      equity_usd: equityUsd,
      message: sentence(
        `${mode === 'paper' ? 'on paper ' : ''}${reason}: it enters nothing ${until}, and ${positions}`,
      ),
    },
  }
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
