/** Delivers items per key in batches, because a delivery costs about as much as many items. */
export function createBatcher<T>(
  limits: { ms: number; sizeMax: number },
  deliver: (key: string, items: T[]) => void,
): { add(key: string, items: readonly T[]): void; flush(): void } {
  const waiting = new Map<string, T[]>()
  let timer: NodeJS.Timeout | undefined

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const all = [...waiting]
    waiting.clear()
    for (const [key, items] of all) deliver(key, items)
  }

  return {
    flush,
    add(key, items) {
      const known = waiting.get(key) ?? []
      // The next comparison finds dropped items.
      for (const each of items) if (known.length < limits.sizeMax) known.push(each)
      waiting.set(key, known)
      timer ??= setTimeout(flush, limits.ms)
    },
  }
}
