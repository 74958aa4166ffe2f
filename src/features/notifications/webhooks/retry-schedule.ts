import { withJitter } from '#kernel/async/backoff.ts'
import type { Random } from '#kernel/id.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** The delay after each failed attempt of a message; after the attempt that follows the last one no other is made. */
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

/**
 * The delay after this many failed attempts, undefined after the last one. An address that asks for a later attempt gets
 * it, within an hour.
 */
export function retryDelayMs(
  failedAttempts: number,
  random: Pick<Random, 'fraction'>,
  askedMs = 0,
): number | undefined {
  const delay = delaysMs[failedAttempts - 1]
  if (delay === undefined) return undefined
  return Math.max(withJitter(delay, random, jitterShare), Math.min(askedMs, retryAfterMsMax))
}
