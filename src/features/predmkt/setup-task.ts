import type { StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { RelayTaskData } from './relay-action.ts'

/** The data and the steps of a task that sets an account up. */

export type SetupTaskData = RelayTaskData & {
  /** The steps that the action in flight completes. */
  doing?: string[]
  /** Whether nothing is left in a wallet of an earlier kind. */
  is_moved?: boolean
  /** How many batches have moved something from a wallet of an earlier kind. */
  batches?: number
  /** What stays in it, and why. */
  left?: string[]
}
export type SetupStepName = 'check' | 'sign_in' | 'open_key' | 'sign' | 'confirm' | 'move' | 'moved'
export type SetupTask = TaskView<SetupTaskData>
export type SetupResult = StepResultOf<Partial<SetupTaskData>, SetupStepName>
