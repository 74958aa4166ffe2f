import { createLru } from './create-lru.ts'

type TtlCacheOptions<V> = {
  /** How long a value is fresh, counted from the start of its load. */
  ttlMs: number
  entriesMax: number
  /** As how many entries a value counts; 1 without it. */
  sizeOf?: (value: V) => number
  nowMs: () => number
}
type GetOptions = {
  maxAgeMs?: number
  force?: boolean
}
type Entry<V> = { value: V; atMs: number; isInvalid: boolean }

/**
 * Values by key with a time to live. Callers of one key share one load. A failure is not cached. If an
 * invalidation or a forced load overtakes a load, its result reaches its callers but is not stored.
 */
export type TtlCache<V> = {
  get(key: string, load: () => Promise<V>, options?: GetOptions): Promise<V>
  peek(key: string, maxAgeMs?: number): V | undefined
  loading(key: string): Promise<V> | undefined
  /** Returns the value of a key, however old or invalid the value is: a fallback when a load fails. */
  last(key: string): V | undefined
  invalidate(key: string): void
  clear(): void
}

export function createTtlCache<V>({ ttlMs, entriesMax, sizeOf, nowMs }: TtlCacheOptions<V>): TtlCache<V> {
  const entries = createLru<string, Entry<V>>(entriesMax, sizeOf && (({ value }) => sizeOf(value)))
  const loads = new Map<string, Promise<V>>()

  const freshEntry = (key: string, maxAgeMs = ttlMs): Entry<V> | undefined => {
    const entry = entries.get(key)
    if (!entry || entry.isInvalid) return undefined
    const ageMs = nowMs() - entry.atMs
    // If the clock was set back, the age is unknown.
    return ageMs >= 0 && ageMs < maxAgeMs ? entry : undefined
  }

  const start = (key: string, load: () => Promise<V>): Promise<V> => {
    const atMs = nowMs()
    const isCurrent = () => loads.get(key) === current
    const store = async () => {
      const value = await load()
      if (isCurrent()) entries.set(key, { value, atMs, isInvalid: false })
      return value
    }
    const current = store().finally(() => {
      if (isCurrent()) loads.delete(key)
    })
    loads.set(key, current)
    return current
  }

  return {
    async get(key, load, { maxAgeMs, force = false } = {}) {
      if (force) return start(key, load)
      const known = freshEntry(key, maxAgeMs)
      return known ? known.value : (loads.get(key) ?? start(key, load))
    },
    peek: (key, maxAgeMs) => freshEntry(key, maxAgeMs)?.value,
    loading: (key) => loads.get(key),
    last: (key) => entries.get(key)?.value,
    invalidate(key) {
      loads.delete(key)
      const entry = entries.get(key)
      if (entry) entry.isInvalid = true
    },
    clear() {
      loads.clear()
      entries.clear()
    },
  }
}

export type CachedValue<V> = {
  get(options?: GetOptions): Promise<V>
  peek(): V | undefined
  last(): V | undefined
  invalidate(): void
}

export function createCachedValue<V>(
  load: () => Promise<V>,
  options: Pick<TtlCacheOptions<V>, 'ttlMs' | 'nowMs'>,
): CachedValue<V> {
  const key = 'value'
  const cache = createTtlCache<V>({ ...options, entriesMax: 1 })
  return {
    get: (getOptions) => cache.get(key, load, getOptions),
    peek: () => cache.peek(key),
    last: () => cache.last(key),
    invalidate: () => cache.invalidate(key),
  }
}
