import { createLru } from './create-lru.ts'

type WindowCounterOptions = {
  /**
   * Beyond this many keys, the key that was counted longest ago is dropped, so that a flood of keys cannot fill the
   * memory.
   */
  keysMax: number
  nowMs: () => number
}
type CountedWindow = Readonly<{ count: number; endsAtMs: number }>

/** Counts per key in fixed windows. A window begins with the first count after the previous one has ended. */
export type WindowCounter = {
  /** Adds `count`, or 1 without it, to the current window of the key, and returns the window with its new count. */
  add(key: string, windowMs: number, count?: number): CountedWindow
  count(key: string): number
}

export function createWindowCounter({ keysMax, nowMs }: WindowCounterOptions): WindowCounter {
  const windows = createLru<string, { count: number; endsAtMs: number }>(keysMax)
  const current = (key: string) => {
    const window = windows.get(key)
    return window && window.endsAtMs > nowMs() ? window : undefined
  }
  return {
    add(key, windowMs, count = 1) {
      const known = current(key)
      if (known) {
        known.count += count
        return known
      }
      const opened = { count, endsAtMs: nowMs() + windowMs }
      windows.set(key, opened)
      return opened
    },
    count: (key) => current(key)?.count ?? 0,
  }
}
