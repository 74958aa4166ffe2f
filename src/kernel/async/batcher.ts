type BatcherLimits = {
  delayMs: number
  /** At most this many items of one key wait; further ones are dropped. */
  itemsMax: number
  /** All batches are delivered early once this many keys have waiting items. */
  keysMax: number
}

/** Delivers items per key in batches, because the delivery of one item costs about as much as that of many. */
export function createBatcher<T>(
  { delayMs, itemsMax, keysMax }: BatcherLimits,
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
      known.push(...items.slice(0, itemsMax - known.length))
      waiting.set(key, known)
      if (waiting.size >= keysMax) flush()
      else timer ??= setTimeout(flush, delayMs)
    },
  }
}
