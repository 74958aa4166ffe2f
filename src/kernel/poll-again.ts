import { type Backoff, backoffMs } from './backoff.ts'

/**
 * A parked step that polls: the number of its polls is in the data of the task, so that the backoff survives a crash.
 */

type PolledTask = { data: { polls?: number } }

/** The polls since the task last set `polls` to 0. */
export const pollsOf = ({ data }: PolledTask): number => data.polls ?? 0

/** Parks the task with exponential backoff; spread it into the result of the step. */
export function pollAgain<Name extends string>(task: PolledTask, next: Name, backoff: Backoff) {
  const polls = pollsOf(task)
  return { park: { afterMs: backoffMs(backoff, polls), next }, data: { polls: polls + 1 } }
}
