import type { Random } from '#kernel/id.ts'

export type Backoff = { firstMs: number; maxMs: number }

/** Exponential backoff: the delay doubles with each earlier attempt, up to `maxMs`. */
export const backoffMs = ({ firstMs, maxMs }: Backoff, earlierAttempts: number): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(earlierAttempts, 30))

/** Makes a share of the delay random, so that clients that failed together do not retry together; 1 is full jitter. */
export const withJitter = (delayMs: number, { fraction }: Pick<Random, 'fraction'>, share = 0.5): number =>
  Math.ceil(delayMs * (1 - share + share * fraction()))
