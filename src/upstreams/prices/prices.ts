import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net } from '#kernel/net.ts'
import { type Price, pricesOf } from './wire.ts'

export type { Price } from './wire.ts'

/** Dollar prices by `chain:address`. Stale, low-confidence and unknown prices are left out. */
export type Prices = {
  source: string
  get(keys: readonly string[]): Promise<ReadonlyMap<string, Price>>
}

type Options = { url: string; net: Net; clock: Clock; timeoutMs?: number; freshMs?: number }

const confidenceMin = 0.9
const ageMaxMs = 10 * 60_000
const keysPerRequest = 80
const maxBytes = 1024 * 1024

type Known = { price: Price | undefined; askedMs: number }

export function prices({ url, net, clock, timeoutMs = 1_500, freshMs = 10_000 }: Options): Prices {
  const known = new Map<string, Known>()
  const pending = new Map<string, Promise<void>>()

  async function fetchChunk(keys: readonly string[]): Promise<void> {
    const path = keys.map(encodeURIComponent).join(',')
    const { status, body } = await net.fetch({
      url: `${url}/prices/current/${path}`,
      method: 'GET',
      headers: { accept: 'application/json' },
      timeoutMs,
      maxBytes,
    })
    if (status !== 200) throw new Fault('unavailable', `The price source answered with status ${status}`)
    const found = pricesOf(body, { now: clock.now(), confidenceMin, ageMaxMs })
    if (!found) throw new Fault('unavailable', 'The price source sent a reply without prices')
    const askedMs = performance.now()
    for (const key of keys) known.set(key, { price: found.get(key.toLowerCase()), askedMs })
  }

  /** Concurrent callers share the pending request for a key. */
  function refresh(keys: readonly string[]): Promise<unknown> {
    const due = keys.filter((key) => !pending.has(key))
    for (let start = 0; start < due.length; start += keysPerRequest) {
      const chunk = due.slice(start, start + keysPerRequest)
      const request = fetchChunk(chunk).finally(() => {
        for (const key of chunk) pending.delete(key)
      })
      for (const key of chunk) pending.set(key, request)
    }
    return Promise.all(keys.map((key) => pending.get(key)))
  }

  return {
    source: 'defillama',
    async get(keys) {
      const nowMs = performance.now()
      const due = keys.filter((key) => {
        const entry = known.get(key)
        return !entry || nowMs - entry.askedMs > freshMs
      })
      if (due.length > 0) await refresh(due)
      const now = clock.now().getTime()
      const priced = new Map<string, Price>()
      for (const key of keys) {
        const price = known.get(key)?.price
        if (price && now - price.at.getTime() <= ageMaxMs) priced.set(key, price)
      }
      return priced
    },
  }
}
