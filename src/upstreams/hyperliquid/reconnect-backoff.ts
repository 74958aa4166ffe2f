import type { Random } from '#kernel/id.ts'

const firstMs = 500
const maxMs = 30_000

/** Exponential backoff with jitter. */
export const backoffMs = (failures: number, { fraction }: Pick<Random, 'fraction'>): number => {
  const whole = Math.min(firstMs * 2 ** Math.min(failures, 10), maxMs)
  return Math.round(whole / 2 + (whole / 2) * fraction())
}

const minuteMs = 60_000
/** The venue allows 30 new connections per minute and address; other processes may share the address. */
const connectionsPerMinute = 15

/** Delay of the next connection attempt, within the connection limit. */
export function createReconnectBackoff(nowMs: () => number, random: Pick<Random, 'fraction'>) {
  const tried: number[] = []
  return {
    delayMs(attempt: number): number {
      const now = nowMs()
      while (tried[0] !== undefined && tried[0] <= now - minuteMs) tried.shift()
      const pauseMs = backoffMs(attempt, random)
      const full = tried.length >= connectionsPerMinute
      const atMs = Math.max(now + pauseMs, full ? tried[0]! + minuteMs : 0)
      tried.push(atMs)
      if (tried.length > connectionsPerMinute) tried.shift()
      return atMs - now
    },
  }
}
