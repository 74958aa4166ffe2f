import { type Backoff, backoffMs } from './backoff.ts'
import type { TaskView } from './task.ts'

/** A parked step that asks again: the number of its polls is in the data of the task, so that the backoff survives a crash. */

type PolledTask = Pick<TaskView, 'data'>

/** The polls since the task last set `polls` to 0. */
export const pollsOf = ({ data }: PolledTask): number => Number(data.polls ?? 0)

/** Parks the task with exponential backoff; spread it into the result of the step. */
export function pollAgain(task: PolledTask, next: string, backoff: Backoff) {
  const polls = pollsOf(task)
  return { park: { afterMs: backoffMs(backoff, polls), next }, data: { polls: polls + 1 } }
}
