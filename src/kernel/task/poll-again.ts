import { type Backoff, backoffMs } from '#kernel/async/backoff.ts'

/** A parked step that polls. The number of its polls is in the task's data, so that the backoff survives a crash. */

type PolledTask = { data: { polls?: number } }

export const pollsOf = ({ data }: PolledTask): number => data.polls ?? 0

/** Returns the part of a step's result that parks the task, with exponential backoff. */
export function pollAgain<Name extends string>(task: PolledTask, next: Name, backoff: Backoff) {
  const polls = pollsOf(task)
  return { park: { afterMs: backoffMs(backoff, polls), next }, data: { polls: polls + 1 } }
}

const reviewPollMaxMs = 3_600_000
/** A poll waits for this part of the task's age: a task that has waited for an hour can wait for another minute. */
const reviewPollShare = 60

/** Returns the pause between two look-ups of an outcome in review: the older the outcome, the longer the pause. */
export const reviewPollMs = (ageMs: number, leastMs: number): number =>
  Math.min(reviewPollMaxMs, Math.max(leastMs, Math.floor(ageMs / reviewPollShare)))

/** Parks a task whose outcome waits for an operator; `ageMs` is how long it has waited. */
export function pollReview<Name extends string>(
  task: PolledTask,
  next: Name,
  { ageMs, backoff }: { ageMs: number; backoff: Backoff },
) {
  const { park, data } = pollAgain(task, next, backoff)
  return { park: { ...park, afterMs: reviewPollMs(ageMs, park.afterMs) }, data, state: 'review' as const }
}

/** How long a look-up goes on polling a silent node: a node that is silent for longer may be silent for good. */
const silentMaxMs = 3_600_000

/** Parks a task whose look-up got no answer; after a long silence an operator has to look into it. */
export function pollSilent<Name extends string>(
  task: PolledTask,
  next: Name,
  age: { ageMs: number; backoff: Backoff },
) {
  if (age.ageMs > silentMaxMs) return pollReview(task, next, age)
  return { ...pollAgain(task, next, age.backoff), state: 'reconciling' as const }
}
