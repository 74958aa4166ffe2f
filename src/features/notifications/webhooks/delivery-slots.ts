/** A quick webhook answered fast last time, a new one has not answered yet, a slow one failed or was slow last time. */
export type Kind = 'quick' | 'new' | 'slow'
export const kinds = ['quick', 'new', 'slow'] as const

/**
 * Half of the slots of each kind are reserved for users who hold no slot of the kind and whose deliveries have taken
 * little time lately. So users with many or slow addresses leave slots to the others.
 */
export const places: Record<Kind, { max: number; perUserMax: number }> = {
  quick: { max: 64, perUserMax: 4 },
  new: { max: 32, perUserMax: 1 },
  slow: { max: 16, perUserMax: 1 },
}
export const placesMax = kinds.reduce((sum, kind) => sum + places[kind].max, 0)
export const sharedMax = (kind: Kind): number => places[kind].max / 2

export type Counts = Record<Kind, number>
export const countKinds = (running: Iterable<{ kind: Kind }>): Counts => {
  const counts = { quick: 0, new: 0, slow: 0 }
  for (const { kind } of running) counts[kind] += 1
  return counts
}
export const isFull = (counts: Counts, kind: Kind): boolean => counts[kind] >= places[kind].max
