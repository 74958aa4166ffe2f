/** What is told of one thing within a moment is taken together, since each taking costs as much as many facts. */
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
      // What is left out here is found missing by the next look.
      for (const each of items) if (known.length < limits.sizeMax) known.push(each)
      waiting.set(key, known)
      timer ??= setTimeout(flush, limits.ms)
    },
  }
}
