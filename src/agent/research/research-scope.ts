import { dollarSymbol, type Names } from '#grammar/asset-and-chain-names.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Wanted } from './collect-results.ts'
import { candlesCall, fundingDays } from './market-analysis.ts'
import { orderLadder } from './order-ladder.ts'

/** The questions of a report depend on the asset: a market at the venue, a token on chains, or both. */

export type ResearchAsset = Names['universe']['assets'][number]
export type Scope = {
  asset: string
  benchmark: string
  calls: readonly Wanted[]
  chainNames: ReadonlyMap<string, string>
  /** The sentences about subjects that no call could answer. */
  omitted: readonly string[]
}

const callsMax = 24
const chainsMax = 3
/** Returns the benchmark of an asset: BTC, with which most markets move, or ETH for BTC itself. */
export const benchmarkOf = (asset: string): string => (asset === 'BTC' ? 'ETH' : 'BTC')

const call = (id: string, name: string, input: JsonObject, about: string): Wanted => ({
  id,
  name,
  input,
  about,
})

function marketCalls({ symbol }: ResearchAsset): Wanted[] {
  const benchmark = candlesCall(benchmarkOf(symbol), '1d')
  return [
    call('perp', 'perp_markets', { search_text: symbol }, 'the perpetual market'),
    ...(['1d', '4h', '1h'] as const).map((timeframe) => candlesCall(symbol, timeframe)),
    { ...benchmark, id: 'benchmark', about: `daily candles of ${benchmarkOf(symbol)}` },
    call('funding', 'market_funding', { asset: symbol, days: fundingDays }, 'hourly funding'),
    call('book', 'market_book', { asset: symbol }, 'the order book'),
  ]
}

/** Makes dry runs of a purchase with dollars on the first chain that has both tokens. */
function quoteCalls({ symbol, tokens }: ResearchAsset, names: Names): Wanted[] {
  const dollars = names.bySymbol.get(dollarSymbol.toLowerCase())?.tokens ?? []
  const pair = tokens.flatMap((token) => {
    const dollar = dollars.find(({ chainId }) => chainId === token.chainId)
    return dollar && symbol !== dollarSymbol ? [{ token, dollar }] : []
  })[0]
  if (!pair) return []
  const { token, dollar } = pair
  return orderLadder.map(({ usd, label }) =>
    call(
      `quote_${usd}`,
      'swap_execute',
      {
        chain_id_in: token.chainId,
        token_in: dollar.address,
        token_out: token.address,
        amount_usd: usd,
        dryrun: true,
      },
      `a swap quote for a ${label} on ${names.chainById.get(token.chainId)?.displayName ?? 'a chain'}`,
    ),
  )
}

export function researchScope(asset: ResearchAsset, names: Names): Scope {
  const { symbol, tokens } = asset
  const checked = tokens.slice(0, chainsMax)
  const calls = [
    ...(asset.perp ? marketCalls(asset) : []),
    ...(asset.spot
      ? [call('spot', 'spot_venue_markets', { search_text: symbol }, 'the spot market of the venue')]
      : []),
    ...(checked.length > 0
      ? [
          call(
            'security',
            'security_check',
            {
              tokens: checked.map(({ chainId, address }) => ({ chain_id: chainId, token_address: address })),
            },
            'the security check',
          ),
        ]
      : []),
    ...quoteCalls(asset, names),
    call('earn', 'earn_info', {}, 'the vault'),
    call('holdings', 'wallets_holdings', {}, 'your wallets'),
    call('positions', 'perp_orders', {}, 'your perpetual account'),
    call('spot_orders', 'spot_venue_orders', {}, 'your spot account'),
  ]
  return {
    asset: symbol,
    benchmark: benchmarkOf(symbol),
    calls: calls.slice(0, callsMax),
    chainNames: new Map(names.universe.chains.map(({ id, displayName }) => [id, displayName])),
    omitted: [
      ...(asset.perp ? [] : [`${symbol} has no perpetual market here, so there are no candles of it.`]),
      ...(tokens.length > 0
        ? []
        : [`${symbol} is no token of the chains that are served, so no contract was checked.`]),
      'Prediction markets are not offered here, so there are no odds.',
      'There is no source of news, of social media, of teams, of token unlocks or of flows between addresses here.',
    ],
  }
}
