import type { Task } from '#durable/task/task-row.ts'
import type { EndResult, StepResult } from '#kernel/task/task.ts'
import type { LiveState } from '#kernel/task/task-state.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Results that the runner creates in place of a step. */

/** A step unknown to this version of the gateway belongs to a newer version, which gets this long to run it. */
const unknownStepMs = 30_000

export const cancelled = (message: string): EndResult => ({
  end: 'cancelled',
  outcome: 'not_executed',
  error: { code: 'cancelled_by_user', message },
})

export const failed = (code: string, message: string, details: Record<string, unknown> = {}): EndResult => ({
  end: 'failed',
  outcome: 'not_executed',
  error: {
    code,
    message,
    retryable: false,
    ...(Object.keys(details).length > 0 && { details: details as JsonObject }),
  },
})

/** Parks a task whose step this version does not know, so that a newer version runs it; no attempt counts. */
export const deferToNewerVersion = (task: Task): StepResult => ({
  park: { afterMs: unknownStepMs, next: task.step },
  state: task.state as LiveState,
  ...(task.outcome === 'unknown' && { outcome: 'unknown' }),
})
