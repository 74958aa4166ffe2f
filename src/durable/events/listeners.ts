export type Listeners<T> = {
  on(key: string, listener: T): Disposable
  get(key: string): Iterable<T>
  keys(): string[]
}

/** Listeners by key; a key is removed with its last listener. */
export function createListeners<T>(): Listeners<T> {
  const byKey = new Map<string, Set<T>>()
  return {
    on(key, listener) {
      const set = byKey.get(key) ?? new Set()
      byKey.set(key, set.add(listener))
      return {
        [Symbol.dispose]() {
          set.delete(listener)
          if (set.size === 0 && byKey.get(key) === set) byKey.delete(key)
        },
      }
    },
    get: (key) => byKey.get(key) ?? [],
    keys: () => [...byKey.keys()],
  }
}
