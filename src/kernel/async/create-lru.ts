import { LRUCache } from 'lru-cache'

/**
 * A cache of the entries used last, at most so many. With its option `max` the package allocates the whole bound at once,
 * which for all caches together took a twentieth of the start; counted by size, a cache grows with its entries. With
 * `sizeOf`, a whole number above 0, an entry counts as so many, and one beyond the bound is not kept.
 */
export const createLru = <K extends {}, V extends {}>(
  entriesMax: number,
  sizeOf: (value: V) => number = () => 1,
): LRUCache<K, V> => new LRUCache<K, V>({ maxSize: entriesMax, sizeCalculation: sizeOf })
