export type Mids = ReadonlyMap<string, string>

/** Prices that concurrent orders share while the price stream is connected. */
export type Prices = {
  push(mids: Mids): void
  /** Stores the prices of a reply whose request was sent at `askedMs`. */
  answered(mids: Mids, askedMs: number): void
  current(): Mids | undefined
}

/** The venue pushes the prices about once a second. */
const maxAgeMs = 1_000

export function createVenuePrices({
  nowMs,
  isStreaming,
}: {
  nowMs: () => number
  isStreaming: () => boolean
}): Prices {
  let known: { mids: Mids; atMs: number } | undefined
  const answered = (mids: Mids, askedMs: number) => {
    // A push during the request may be newer than its reply.
    if (!known || askedMs >= known.atMs) known = { mids, atMs: askedMs }
  }
  return {
    answered,
    push: (mids) => answered(mids, nowMs()),
    current() {
      const ageMs = known ? nowMs() - known.atMs : Number.POSITIVE_INFINITY
      return known && ageMs >= 0 && ageMs <= maxAgeMs && isStreaming() ? known.mids : undefined
    },
  }
}
