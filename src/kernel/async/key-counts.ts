/** A count per key; a key whose count is 0 takes no memory, so the counted items bound the size. */
export type KeyCounts = {
  get(key: string): number
  add(key: string): void
  remove(key: string): void
  size(): number
  withAtLeast(count: number): string[]
  /** Returns the highest count of any key that is below `count`, or 0 if every key has at least `count`. */
  highestBelow(count: number): number
}

export function createKeyCounts(): KeyCounts {
  const counts = new Map<string, number>()
  const get = (key: string): number => counts.get(key) ?? 0
  return {
    get,
    add: (key) => void counts.set(key, get(key) + 1),
    remove(key) {
      if (get(key) > 1) counts.set(key, get(key) - 1)
      else counts.delete(key)
    },
    size: () => counts.size,
    highestBelow: (count) => Math.max(0, ...[...counts.values()].filter((each) => each < count)),
    withAtLeast: (count) => [...counts].filter(([, each]) => each >= count).map(([key]) => key),
  }
}
