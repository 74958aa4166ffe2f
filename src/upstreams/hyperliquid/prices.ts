export type Mids = ReadonlyMap<string, string>

/** Prices that the orders of one moment share, as long as a stream would tell of a change. */
export type Prices = {
  /** What the stream has told. */
  push(mids: Mids): void
  /** What was answered to a question of `askedMs`. */
  answered(mids: Mids, askedMs: number): void
  current(): Mids | undefined
}

/** The venue pushes the prices about once a second. */
const maxAgeMs = 1_000

export function prices({ nowMs, isStreaming }: { nowMs: () => number; isStreaming: () => boolean }): Prices {
  let known: { mids: Mids; atMs: number } | undefined
  const answered = (mids: Mids, askedMs: number) => {
    // What the stream told while the question was under way may be newer than its answer.
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
