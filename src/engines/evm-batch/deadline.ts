type Lifetime = {
  nowSeconds: number
  /** The timestamp of the newest block. */
  headSeconds: number
  /** How long signatures on the chain last. */
  ttlSeconds: number
  validUntil?: Date | undefined
}

/** Returns when a batch signed now becomes void. The chain enforces it by its own clock, which can be ahead of ours. */
export function deadlineOf({ nowSeconds, headSeconds, ttlSeconds, validUntil }: Lifetime): number {
  const leftSeconds = validUntil
    ? Math.floor(validUntil.getTime() / 1_000) - nowSeconds
    : Number.POSITIVE_INFINITY
  return Math.max(nowSeconds, headSeconds) + Math.min(ttlSeconds, leftSeconds)
}
