import { LRUCache } from 'lru-cache'

/**
 * A cache of the entries used last, at most so many. With its option `max` the package allocates the whole bound at once,
 * which for all caches together took a twentieth of the start; counted by size, a cache grows with its entries.
 */
export const createLru = <K extends {}, V extends {}>(entriesMax: number): LRUCache<K, V> =>
  new LRUCache<K, V>({ maxSize: entriesMax, sizeCalculation: () => 1 })
