export type Hearers<T> = {
  on(key: string, hear: T): Disposable
  /** Who listens to the key; nobody is an empty list. */
  of(key: string): Iterable<T>
  keys(): string[]
}

/** Listeners by what they listen to; a key goes with the last of them. */
export function hearers<T>(): Hearers<T> {
  const byKey = new Map<string, Set<T>>()
  return {
    on(key, hear) {
      const set = byKey.get(key) ?? new Set()
      byKey.set(key, set.add(hear))
      return {
        [Symbol.dispose]() {
          set.delete(hear)
          if (set.size === 0 && byKey.get(key) === set) byKey.delete(key)
        },
      }
    },
    of: (key) => byKey.get(key) ?? [],
    keys: () => [...byKey.keys()],
  }
}
