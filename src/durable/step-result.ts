import type { JsonObject } from '#kernel/json.ts'
import type { LiveState, StepResult, TaskKind } from '#kernel/task.ts'
import type { Task } from './task-row.ts'

/** Results that the runner creates in place of a step, and its additions to a step's result. */

/** A step unknown to this version belongs to a newer one; wait this long for it. */
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

/** Leaves the task to a newer version, without a change and without counting an attempt. */
export const deferToNewerVersion = (task: Task): StepResult => ({
  park: { afterMs: unknownStepMs, next: task.step },
  state: task.state as LiveState,
  ...(task.outcome === 'unknown' && { outcome: 'unknown' }),
})

/** A task that ends as not executed releases what its kind reserved on acceptance. */
export function withNotExecutedHook(result: StepResult, kind: TaskKind, taskId: string): StepResult {
  const { onNotExecuted } = kind
  if (!onNotExecuted) return result
  if ('sign' in result && result.sign.onRefused) {
    const { onRefused, ...intent } = result.sign
    return {
      ...result,
      sign: { ...intent, onRefused: (fault) => withNotExecutedHook(onRefused(fault), kind, taskId) },
    }
  }
  if (!('end' in result) || result.outcome !== 'not_executed') return result
  return {
    ...result,
    writes: async (tx) => {
      // Locks caps before budgets, as on acceptance.
      await onNotExecuted(tx, taskId)
      await result.writes?.(tx)
    },
  }
}
