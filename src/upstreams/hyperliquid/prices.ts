export type Mids = ReadonlyMap<string, string>

/** Prices that the orders of one moment share, as long as a stream would tell of a change. */
export type Prices = {
  /** What the stream has told. */
  told(mids: Mids): void
  /** What was answered to a question of `askedMs`. */
  answered(mids: Mids, askedMs: number): void
  fresh(): Mids | undefined
}

/** The venue pushes the prices about once a second. */
const freshMs = 1_000

export function prices({ nowMs, hears }: { nowMs: () => number; hears: () => boolean }): Prices {
  let known: { mids: Mids; atMs: number } | undefined
  const answered = (mids: Mids, askedMs: number) => {
    // What the stream told while the question was under way may be newer than its answer.
    if (!known || askedMs >= known.atMs) known = { mids, atMs: askedMs }
  }
  return {
    answered,
    told: (mids) => answered(mids, nowMs()),
    fresh() {
      const ageMs = known ? nowMs() - known.atMs : Number.POSITIVE_INFINITY
      return known && ageMs >= 0 && ageMs <= freshMs && hears() ? known.mids : undefined
    },
  }
}
