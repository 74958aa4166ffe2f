import * as T from '#kernel/contract/schema.ts'
import { DecOrNull, Nullable, OneOf, Text, TextOrNull, Time } from '#kernel/contract/wire-types.ts'
import { outcomes, taskStatuses } from '#kernel/task/task-state.ts'

/** The fields that the data of all schedule events have. */

const ofSchedule = {
  schedule_id: T.String({ description: 'The schedule' }),
  title: T.String({ description: 'Its title' }),
}
export const ScheduleRun = T.Object(
  {
    ...ofSchedule,
    execution_id: T.String({ description: 'The run' }),
    number: T.Integer({ description: 'Counts the runs of the schedule' }),
    version: T.Integer({ description: 'The version of the schedule that ran' }),
    scheduled_for: Nullable(Time),
    status: OneOf(taskStatuses),
    outcome: Nullable(OneOf(outcomes)),
    skip_reason: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Why it did not run; of several such times in a row only the first has an event',
    }),
    skipped_slots: T.Integer({ description: 'How many times it did not run' }),
    summary: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'The beginning of its answer, or what it decided',
    }),
    error: Nullable(T.Object({ code: Text, message: Text, retryable: T.Boolean() })),
    chat_id: T.Unsafe<string | null>({ ...TextOrNull, description: 'The chat that it started' }),
    credits_used: T.Integer(),
  },
  { $id: 'ScheduleRunData', additionalProperties: true },
)
export const SchedulePaused = T.Object(
  {
    ...ofSchedule,
    reason: OneOf(['no_credits', 'insufficient_balance', 'failures', 'access_ended'] as const, {
      description: 'What ended three runs in a row; access_ended: who activated it has no access any more',
    }),
    message: T.String({ description: 'What happened, and what to do' }),
  },
  { $id: 'SchedulePausedData', additionalProperties: true },
)
export const ScheduleGuardTripped = T.Object(
  {
    ...ofSchedule,
    mode: OneOf(['paper', 'live'] as const, { description: '`paper`: no money is concerned' }),
    guard: OneOf(['max_loss', 'max_drawdown', 'daily_loss', 'max_consecutive_losses', 'until'] as const, {
      description: '`daily_loss` holds until the local day ends, the others for good',
    }),
    at: T.Unsafe<string>({ ...Time, description: 'When it tripped' }),
    on_trip: OneOf(['stop_entries', 'flatten'] as const, {
      description:
        '`flatten`: every position is closed; `stop_entries`: what is open keeps its stop and target',
    }),
    equity_usd: T.Unsafe<string | null>({
      ...DecOrNull,
      description: 'What the strategy was worth then, in USD',
    }),
    message: T.String({ description: 'What happened, what is stopped and what goes on' }),
  },
  { $id: 'ScheduleGuardTrippedData', additionalProperties: true },
)
