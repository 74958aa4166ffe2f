import type { CandleRequest, CandleStore } from '#engines/candles/candle-store.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { bookLevelsMax, contract, type MarketsInput } from './contract.ts'

export type MarketsDeps = {
  venue: Pick<Hyperliquid, 'perps' | 'fundingRates' | 'book'>
  candles: Pick<CandleStore, 'read'>
}

const dayMs = 86_400_000
/** BTC trades in every block, so the time of its book is the present time of the venue. */
const clockMarket = 'BTC'
const iso = (ms: number): string => new Date(ms).toISOString()

function timesOf({ from, to, limit = 200 }: MarketsInput<'candles'>): CandleRequest {
  const [fromMs, toMs] = [from, to].map((text) => (text === undefined ? undefined : Date.parse(text)))
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw invalid('to', 'value_error', 'Value error: `to` is after `from`')
  return { limit, ...(fromMs !== undefined && { fromMs }), ...(toMs !== undefined && { toMs }) }
}

export function createMarkets({ venue, candles }: MarketsDeps): Operation[] {
  const symbolOf = async (asset: string) => requireKnownMarket('perp', await venue.perps(), asset).symbol
  return implement(contract, {
    async book({ asset, levels = bookLevelsMax }, { userId }) {
      const market = await symbolOf(asset)
      const { timeMs, bids, asks } = await venue.book(market, userId)
      return {
        asset: market,
        as_of: iso(timeMs),
        bids: bids.slice(0, levels),
        asks: asks.slice(0, levels),
      }
    },
    async candles(input, { userId }) {
      const { interval: span = '1h' } = input
      const request = timesOf(input)
      const market = await symbolOf(input.asset)
      const { asOfMs, candles: found, gaps } = await candles.read({ market, span }, request, userId)
      return {
        asset: market,
        interval: span,
        as_of: iso(asOfMs),
        candles: found.map(({ startMs, ...prices }) => ({ start: iso(startMs), ...prices })),
        gaps: gaps.map(({ fromMs, toMs, candles: count }) => ({
          from: iso(fromMs),
          to: iso(toMs),
          candles: count,
        })),
      }
    },
    async funding({ asset, days = 7 }, { userId }) {
      const market = await symbolOf(asset)
      const { timeMs } = await venue.book(clockMarket, userId)
      const sinceMs = Math.floor(timeMs / dayMs) * dayMs - days * dayMs
      const rates = await venue.fundingRates(market, sinceMs, userId)
      return {
        asset: market,
        as_of: iso(timeMs),
        rates: rates.map(({ atMs, rate }) => ({ at: iso(atMs), rate })),
      }
    },
  })
}
