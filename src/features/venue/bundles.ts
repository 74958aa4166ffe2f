/** What is told of one thing within a moment is taken together, since each taking costs as much as many facts. */
export function bundles<T>(
  moment: { ms: number; most: number },
  take: (key: string, told: T[]) => void,
): { add(key: string, told: readonly T[]): void; flush(): void } {
  const waiting = new Map<string, T[]>()
  let timer: NodeJS.Timeout | undefined

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const all = [...waiting]
    waiting.clear()
    for (const [key, told] of all) take(key, told)
  }

  return {
    flush,
    add(key, told) {
      const known = waiting.get(key) ?? []
      // What is left out here is found missing by the next look.
      for (const each of told) if (known.length < moment.most) known.push(each)
      waiting.set(key, known)
      timer ??= setTimeout(flush, moment.ms)
    },
  }
}
