import type { NewEvent } from '#kernel/task/task.ts'
import type { StrategyExecutionRow, StrategyRow } from '#store/tables/strategies.ts'

/** This module makes the events of a schedule for the log of its user. */

type Schedule = Pick<StrategyRow, 'id' | 'title' | 'notify'>
type RunFields = Pick<
  StrategyExecutionRow,
  'id' | 'number' | 'version' | 'slot' | 'status' | 'outcome' | 'skip_reason' | 'skipped_slots'
> &
  Partial<Pick<StrategyExecutionRow, 'summary' | 'error' | 'chat_id' | 'credits_used'>>

export const scheduleOf = (run: { strategy_id: string } & Omit<Schedule, 'id'>): Schedule => ({
  id: run.strategy_id,
  title: run.title,
  notify: run.notify,
})

const subjectOf = ({ id }: Pick<StrategyRow, 'id'>) => ({ kind: 'schedule', id })

const runEvent = (type: string, schedule: Schedule, run: RunFields): NewEvent => ({
  type,
  subject: subjectOf(schedule),
  data: {
    schedule_id: schedule.id,
    title: schedule.title,
    execution_id: run.id,
    number: run.number,
    version: run.version,
    scheduled_for: run.slot?.toISOString() ?? null,
    status: run.status,
    outcome: run.outcome,
    skip_reason: run.skip_reason,
    skipped_slots: run.skipped_slots,
    summary: run.summary ?? null,
    error: (run.error ?? null) as null,
    chat_id: run.chat_id ?? null,
    credits_used: run.credits_used ?? 0,
  },
})

export const startedEvents = (schedule: Schedule, run: RunFields): NewEvent[] =>
  schedule.notify === 'all' ? [runEvent('schedule.run_started', schedule, run)] : []

export const finishedEvents = (schedule: Schedule, run: RunFields): NewEvent[] =>
  schedule.notify === 'all' || (schedule.notify === 'failures' && run.status === 'failed')
    ? [runEvent('schedule.run_finished', schedule, run)]
    : []

/** Returns the event of a skipped run; of several skipped in a row for one reason, only the first has one. */
export const skippedEvents = (
  schedule: Schedule,
  run: RunFields,
  { previousReason }: { previousReason: string | null },
): NewEvent[] =>
  schedule.notify === 'none' || previousReason === run.skip_reason
    ? []
    : [runEvent('schedule.run_skipped', schedule, run)]

export type Pause = {
  reason: 'no_credits' | 'insufficient_balance' | 'failures' | 'access_ended'
  text: string
}

/** Returns the reason of a schedule's status as text: an act of its user, an edit, or trouble of its runs. */
export const statusReason = ({
  reason,
  text,
}: {
  reason: Pause['reason'] | 'user' | 'edited' | 'incomplete'
  text: string
}): string => `${reason}: ${text}`

/** Returns the event of a pause that the user has not asked for; that event is sent whatever `notify` says. */
export const pausedEvent = (
  schedule: Pick<StrategyRow, 'id' | 'title'>,
  { reason, text }: Pause,
): NewEvent => ({
  type: 'schedule.paused',
  subject: subjectOf(schedule),
  data: { schedule_id: schedule.id, title: schedule.title, reason, message: text },
})
