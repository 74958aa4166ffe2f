import type { JsonObject } from '#kernel/json.ts'
import type { LiveState, StepResult, TaskKind } from '#kernel/task.ts'
import type { Task } from './task-row.ts'

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
export const deferToNewerVersion = (task: Task): StepResult => ({
  park: { afterMs: unknownStepMs, next: task.step },
  state: task.state as LiveState,
  ...(task.outcome === 'unknown' && { outcome: 'unknown' }),
})

/** A task that ends with nothing executed gives back what its kind reserved when it was accepted. */
export function withNotExecutedHook(result: StepResult, kind: TaskKind, taskId: string): StepResult {
  const { onNotExecuted } = kind
  if (!onNotExecuted) return result
  if ('intend' in result && result.intend.onRefused) {
    const { onRefused, ...intent } = result.intend
    return {
      ...result,
      intend: { ...intent, onRefused: (fault) => withNotExecutedHook(onRefused(fault), kind, taskId) },
    }
  }
  if (!('end' in result) || result.outcome !== 'not_executed') return result
  return {
    ...result,
    writes: async (tx) => {
      // The rows of caps come before those of budgets, as where a task is accepted.
      await onNotExecuted(tx, taskId)
      await result.writes?.(tx)
    },
  }
}
