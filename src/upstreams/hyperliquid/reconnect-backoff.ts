import { backoffMs, withJitter } from '#kernel/async/backoff.ts'
import type { Random } from '#kernel/id.ts'

const backoff = { firstMs: 500, maxMs: 30_000 }

export const reconnectDelayMs = (failures: number, random: Pick<Random, 'fraction'>): number =>
  withJitter(backoffMs(backoff, failures), random)

const minuteMs = 60_000
/** The venue allows 30 new connections per minute and address; other processes may share the address. */
const connectionsPerMinute = 15

/** Returns the delay of the next connection attempt, within the connection limit. */
export function createReconnectBackoff(nowMs: () => number, random: Pick<Random, 'fraction'>) {
  const tried: number[] = []
  return {
    delayMs(attempt: number): number {
      const now = nowMs()
      while (tried[0] !== undefined && tried[0] <= now - minuteMs) tried.shift()
      const pauseMs = reconnectDelayMs(attempt, random)
      const full = tried.length >= connectionsPerMinute
      const atMs = Math.max(now + pauseMs, full ? tried[0]! + minuteMs : 0)
      tried.push(atMs)
      if (tried.length > connectionsPerMinute) tried.shift()
      return atMs - now
    },
  }
}
