import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { chainNotServed, type TokenFacts } from '#kernel/contract/token-ref.ts'
import { type Chain, type Token, toAssetId } from '#kernel/money/chains.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import type { DisplayPrice } from './price-watch.ts'
import { parseAssetId, type QuotedTrade, tokenMarketPrefix, tradeOf } from './quote-key.ts'
import type { Amounts, SwapExecution } from './swap-port.ts'
import { unitPrice } from './trigger-price.ts'

/** Prices of tokens in dollars: as they are displayed, and as a trade of a given size would get them. */

export type PricerDeps = {
  chains: readonly Chain[]
  prices: Pick<Prices, 'get'>
  tokenFacts: TokenFacts
  /** Returns the output of the route that a swap of the user would take. */
  quoteOut: SwapExecution['quoteOut']
}
export type Pricer = {
  displayPrices(markets: readonly string[]): Promise<ReadonlyMap<string, DisplayPrice>>
  quotePrice(quoteKey: string, userId: string): Promise<string>
  priceOf(trade: Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>, amounts: Amounts): Promise<string>
  /** Returns the executable price of selling an amount of a token for USDC. */
  sellPrice(asset: string, amountInUnits: bigint, userId: string): Promise<string>
}

const factsMs = 3_600_000
const factsMax = 10_000

export function createPricer(deps: PricerDeps): Pricer {
  const { chains, prices, quoteOut } = deps
  const chainOf = (chainId: string): Chain => {
    const chain = chains.find(({ id }) => id === chainId)
    if (!chain) throw chainNotServed(chainId)
    return chain
  }
  const facts = createTtlCache<Token | undefined>({
    ttlMs: factsMs,
    entriesMax: factsMax,
    nowMs: monotonicMs,
  })
  const named = async (asset: string): Promise<{ chain: Chain; token: Token }> => {
    const { chainId, address } = parseAssetId(asset)
    const chain = chainOf(chainId)
    const listed = [chain.native, ...chain.tokens].find((each) => toAssetId(chain, each.address) === asset)
    const token = listed ?? (await facts.get(asset, () => deps.tokenFacts(chainId, address)))
    if (!token) throw new Fault('unavailable', `The token ${address} does not say what it is`)
    return { chain, token }
  }
  const priceKeyOf = (asset: string): string => priceKeyOn(chainOf(parseAssetId(asset).chainId), asset)
  const isUsdc = (asset: string): boolean => {
    const chain = chainOf(parseAssetId(asset).chainId)
    return toAssetId(chain, chain.usdc) === asset
  }
  /** Returns the dollar price of a token; USDC counts as a dollar, because orders are paid in USDC. */
  const dollarsOf = async (asset: string): Promise<string> => {
    if (isUsdc(asset)) return '1'
    const key = priceKeyOf(asset)
    const price = (await prices.get([key])).get(key)
    if (!price) throw new Fault('unavailable', 'There is no trusted price of a token of the order')
    return price.price
  }

  const priceOf: Pricer['priceOf'] = async ({ tokenIn, tokenOut, priced }, { inUnits, outUnits }) => {
    const [one, other] = priced === 'in' ? [tokenIn, tokenOut] : [tokenOut, tokenIn]
    const [oneUnits, otherUnits] = priced === 'in' ? [inUnits, outUnits] : [outUnits, inUnits]
    const [{ token }, { token: counter }, price] = await Promise.all([
      named(one),
      named(other),
      dollarsOf(other),
    ])
    if (oneUnits === 0n) throw new Fault('insufficient_liquidity', 'The route returns nothing')
    return unitPrice(
      { units: oneUnits, decimals: token.decimals },
      { units: otherUnits, decimals: counter.decimals, price },
    )
  }

  const bestOut = async (
    { tokenIn, tokenOut, amountInUnits }: QuotedTrade,
    userId: string,
  ): Promise<bigint> => {
    const [origin, destination] = await Promise.all([named(tokenIn), named(tokenOut)])
    return quoteOut({ origin, destination, amountInUnits }, userId)
  }
  const quoteTrade = async (trade: QuotedTrade, userId: string): Promise<string> =>
    priceOf(trade, { inUnits: trade.amountInUnits, outUnits: await bestOut(trade, userId) })

  return {
    priceOf,
    quotePrice: (quoteKey, userId) => quoteTrade(tradeOf(quoteKey), userId),
    sellPrice(asset, amountInUnits, userId) {
      const chain = chainOf(parseAssetId(asset).chainId)
      const tokenOut = toAssetId(chain, chain.usdc)
      return quoteTrade({ tokenIn: asset, tokenOut, amountInUnits, priced: 'in' }, userId)
    },
    displayPrices: displayPricesOf({ chains, prices }),
  }
}

type DisplayDeps = Pick<PricerDeps, 'chains' | 'prices'>

export const displayPricesOf =
  ({ chains, prices }: DisplayDeps): Pricer['displayPrices'] =>
  async (markets) => {
    const keys = new Map(
      markets.flatMap((market): [string, string][] => {
        const asset = market.slice(tokenMarketPrefix.length)
        const chain = chains.find(({ id }) => id === parseAssetId(asset).chainId)
        return chain ? [[market, priceKeyOn(chain, asset)]] : []
      }),
    )
    const found = await prices.get([...new Set(keys.values())])
    return new Map(
      [...keys].flatMap(([market, key]) => {
        const price = found.get(key)
        return price ? [[market, { price: price.price, at: price.at }]] : []
      }),
    )
  }

function priceKeyOn(chain: Chain, asset: string): string {
  const isNative = toAssetId(chain, chain.native.address) === asset
  return isNative ? chain.native.priceId : `${chain.llamaSlug}:${parseAssetId(asset).address}`
}
