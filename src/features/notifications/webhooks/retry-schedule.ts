import { withJitter } from '#kernel/async/backoff.ts'
import type { Random } from '#kernel/id.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** The delays after each failed attempt of a message; the attempt that follows the last delay is the final one. */
const delaysMs = [
  5 * secondMs,
  minuteMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  6 * hourMs,
  24 * hourMs,
] as const
export const attemptsMax = delaysMs.length + 1

const retryAfterMsMax = hourMs
const jitterShare = 0.2

/** Returns the delay before the next attempt, undefined after the last. An address may ask for more, up to an hour. */
export function retryDelayMs(
  failedAttempts: number,
  random: Pick<Random, 'fraction'>,
  askedMs = 0,
): number | undefined {
  const delay = delaysMs[failedAttempts - 1]
  if (delay === undefined) return undefined
  return Math.max(withJitter(delay, random, jitterShare), Math.min(askedMs, retryAfterMsMax))
}
