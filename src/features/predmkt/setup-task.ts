import type { StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { RelayTaskData } from './relay-action.ts'

/** The data and the steps of a task that sets an account up. */

export type SetupTaskData = RelayTaskData & {
  /** The steps that the action in flight completes. */
  doing?: string[]
  /** Whether nothing is left in a wallet of an earlier kind. */
  is_moved?: boolean
  /** How many batches were signed that move something from a wallet of an earlier kind. */
  batches?: number
  /** The block in which the latest of them ran. */
  moved_block?: string
  /** What stays in it, and why. */
  left?: string[]
}

/** What has moved stays moved, however the task ends. */
export const partialOnceMoved = <Result extends object>(
  { data }: { data: { moved_block?: unknown } },
  result: Result,
): Result =>
  data.moved_block !== undefined && 'outcome' in result && result.outcome === 'not_executed'
    ? { ...result, outcome: 'partial' }
    : result

export type SetupStepName = 'check' | 'sign_in' | 'open_key' | 'sign' | 'confirm' | 'move' | 'moved'
export type SetupTask = TaskView<SetupTaskData>
export type SetupResult = StepResultOf<Partial<SetupTaskData>, SetupStepName>
