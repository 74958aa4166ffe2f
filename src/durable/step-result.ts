import type { JsonObject } from '#kernel/json.ts'
import type { LiveState, StepResult, TaskKind } from '#kernel/task.ts'
import type { Task } from './row.ts'

/** Results that the runner gives in place of a step, and what it adds to those of a step. */

/** Steps that this version does not know belong to a newer one. */
const unknownStepMs = 30_000

export const cancelled = (message: string): StepResult => ({
  end: 'cancelled',
  outcome: 'not_executed',
  error: { code: 'cancelled_by_user', message },
})

export const failed = (code: string, message: string, details: Record<string, unknown> = {}): StepResult => ({
  end: 'failed',
  outcome: 'not_executed',
  error: {
    code,
    message,
    retryable: false,
    ...(Object.keys(details).length > 0 && { details: details as JsonObject }),
  },
})

/** For a newer version: nothing of the task changes, and nothing counts as an attempt. */
export const leftToNewer = (task: Task): StepResult => ({
  park: { afterMs: unknownStepMs, next: task.step },
  state: task.state as LiveState,
  ...(task.outcome === 'unknown' && { outcome: 'unknown' }),
})

/** A task that ends with nothing executed gives back what its kind reserved when it was accepted. */
export function releasing(result: StepResult, kind: TaskKind, taskId: string): StepResult {
  const { released } = kind
  if (!released) return result
  if ('intend' in result && result.intend.refused) {
    const { refused, ...intent } = result.intend
    return { ...result, intend: { ...intent, refused: (fault) => releasing(refused(fault), kind, taskId) } }
  }
  if (!('end' in result) || result.outcome !== 'not_executed') return result
  return {
    ...result,
    also: async (tx) => {
      // The rows of caps come before those of budgets, as where a task is accepted.
      await released(tx, taskId)
      await result.also?.(tx)
    },
  }
}
