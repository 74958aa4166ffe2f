import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { spotPriceOf } from './wire.ts'

/** The public spot prices of an exchange, as a second opinion where money depends on a price. */
export type Coinbase = {
  /** Returns the dollars that one unit of the coin costs, as decimal text. */
  spotUsd(symbol: string): Promise<string>
}

type Options = { url: string; net: Net }

const timeoutMs = 1_500
const freshMs = 10_000
const entriesMax = 100
const maxBytes = 64 * 1024

export function createCoinbase({ url, net }: Options): Coinbase {
  async function fetchSpot(symbol: string): Promise<string> {
    const { status, body } = await net.fetch({
      url: `${url}/v2/prices/${encodeURIComponent(symbol)}-USD/spot`,
      method: 'GET',
      headers: { accept: 'application/json' },
      timeoutMs,
      maxBytes,
    })
    if (status !== 200) throw new Fault('unavailable', `Coinbase answered with status ${status}`)
    const price = spotPriceOf(body, symbol, 'USD')
    if (price === undefined) throw new Fault('unavailable', 'Coinbase sent a reply without a price')
    return price
  }
  const known = createTtlCache<string>({ ttlMs: freshMs, entriesMax, nowMs: monotonicMs })
  return { spotUsd: (symbol) => known.get(symbol, () => fetchSpot(symbol)) }
}
