import { LRUCache } from 'lru-cache'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'

type Needs = { clock: Clock; windowMs?: number; entriesMax?: number }
/** Whose failures, and how many of them a window bears. */
export type Counted = { key: string; most: number }

export type Attempts = {
  /** Throws while one of these has failed too often; asked before any cryptography. */
  admit(counted: Counted[]): void
  fail(counted: Counted[]): void
}

/** Failures of this instance. The oldest counter goes when memory is full; nothing is ever stored. */
export function attempts({ clock, windowMs = 60_000, entriesMax = 20_000 }: Needs): Attempts {
  const windows = new LRUCache<string, { failures: number; endsAt: number }>({ max: entriesMax })
  const live = (key: string) => {
    const window = windows.get(key)
    return window && window.endsAt > clock.now().getTime() ? window : undefined
  }
  return {
    admit(counted) {
      for (const { key, most } of counted) {
        const window = live(key)
        if (!window || window.failures < most) continue
        const seconds = Math.ceil((window.endsAt - clock.now().getTime()) / 1000)
        throw new Fault('rate_limited', 'Too many failed attempts', { extras: { retry_after: seconds } })
      }
    },
    fail(counted) {
      for (const { key } of counted) {
        const window = live(key) ?? { failures: 0, endsAt: clock.now().getTime() + windowMs }
        window.failures += 1
        windows.set(key, window)
      }
    },
  }
}
