import { later } from '#kernel/clock.ts'
import type { Effect } from '#kernel/task/task.ts'

/**
 * What may be done with an order while the venue has not answered one of its sends. A refusal of the same bytes says
 * nothing of the earlier send: the order of that one may be at the venue, whose records lag.
 */

/** How long a sent order that the venue does not know may still arrive there. */
export const lateArrivalMs = 120_000

type Sent = { data: { answered_version?: number | null }; version: number }

/**
 * Whether the venue has refused every send of the order so far. An answer is stored with the version of its step: the
 * commit and the next claim raise it by one each, and any further claim may have sent the order without an answer.
 */
export const isEverySendAnswered = (
  { data: { answered_version: answered }, version }: Sent,
  { neverSent }: Pick<Effect, 'neverSent'>,
): boolean => neverSent === true || (answered != null && version <= answered + 2)

type Unanswered = {
  now: Date
  deadline: Date
  /** When the order was last sent without an answer. */
  unknownSince: Date
  /** Whether a later send of the same bytes was refused. */
  isRefused: boolean
  /** Whether the venue has said that it has the order already. */
  isDuplicate: boolean
}

/** `absent` means that the order cannot arrive any more, and that no record of the venue has it. */
export function nextOfUnanswered({
  now,
  deadline,
  unknownSince,
  isRefused,
  isDuplicate,
}: Unanswered): 'send' | 'look_up' | 'absent' {
  if (isDuplicate) return 'look_up'
  if (!isRefused && now <= deadline) return 'send'
  return now > later(unknownSince, lateArrivalMs) ? 'absent' : 'look_up'
}
