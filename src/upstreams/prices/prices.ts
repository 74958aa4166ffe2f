import { createBatchLoader } from '#kernel/async/batch-loader.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { type Price, pricesOf } from './wire.ts'

export type { Price } from './wire.ts'

/** Dollar prices by `chain:address`. Stale, low-confidence and unknown prices are left out. */
export type Prices = {
  source: string
  get(keys: readonly string[]): Promise<ReadonlyMap<string, Price>>
}

type Options = { url: string; net: Net; clock: Clock; freshMs?: number }

const timeoutMs = 1_500
const confidenceMin = 0.9
const ageMaxMs = 10 * 60_000
const keysPerRequest = 80
const requestsMax = 4
const entriesMax = 20_000
const maxBytes = 1024 * 1024

export function createPrices({ url, net, clock, freshMs = 10_000 }: Options): Prices {
  async function fetchPrices(keys: readonly string[]): Promise<ReadonlyMap<string, Price>> {
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
    return new Map(
      keys.flatMap((key) => {
        const price = found.get(key.toLowerCase())
        return price ? [[key, price]] : []
      }),
    )
  }

  const load = createBatchLoader({ load: fetchPrices, loadsMax: requestsMax, keysMax: keysPerRequest })
  /** An unknown price is cached as undefined, so that it costs no request each time. */
  const known = createTtlCache<Price | undefined>({ ttlMs: freshMs, entriesMax, nowMs: monotonicMs })

  return {
    source: 'defillama',
    async get(keys) {
      const found = await Promise.all(keys.map((key) => known.get(key, () => load(key))))
      const nowMs = clock.now().getTime()
      return new Map(
        keys.flatMap((key, at) => {
          const price = found[at]
          return price && nowMs - price.at.getTime() <= ageMaxMs ? [[key, price]] : []
        }),
      )
    },
  }
}
