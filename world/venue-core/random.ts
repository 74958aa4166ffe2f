/** A seeded random sequence with its state in the venue: the next value depends on nothing else (mulberry32). */
export type RandomState = { at: number }

export const nextRandom = (state: RandomState): number => {
  state.at = (state.at + 0x6d2b79f5) | 0
  let mixed = Math.imul(state.at ^ (state.at >>> 15), 1 | state.at)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

/** Approximately normal with mean 0 and variance 1, from sums only: no logarithm differs between machines. */
export const nextNormal = (state: RandomState): number => {
  let sum = -6
  for (let i = 0; i < 12; i += 1) sum += nextRandom(state)
  return sum
}

export const nextInteger = (state: RandomState, below: number): number =>
  Math.floor(nextRandom(state) * below)
