type Lifetime = {
  nowSeconds: number
  /** The timestamp of the newest block of the chain. */
  headSeconds: number
  /** How long a batch's signature stays valid on the chain. */
  ttlSeconds: number
  validUntil?: Date | undefined
}

/** Returns when a batch signed now becomes void. The chain goes by its own clock, which can be ahead of ours. */
export function deadlineOf({ nowSeconds, headSeconds, ttlSeconds, validUntil }: Lifetime): number {
  const leftSeconds = validUntil
    ? Math.floor(validUntil.getTime() / 1_000) - nowSeconds
    : Number.POSITIVE_INFINITY
  return Math.max(nowSeconds, headSeconds) + Math.min(ttlSeconds, leftSeconds)
}
