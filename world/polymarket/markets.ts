import { hashText, toHex } from '#world/venue-core/signature.ts'
import { type CatalogEvent, type CatalogMarket, catalog } from './catalog.ts'
import type { ChainEvent, ChainMarket, Hex } from './chain/chain-terms.ts'
import { binaryMarketV2, negRiskEvent, negRiskEventV2, standardMarket } from './chain/ids.ts'

/** A listed market with its ids. */
export type Market = CatalogMarket & {
  index: number
  event: CatalogEvent
  chain: ChainMarket
  /** The event on the chain, where it has several markets. */
  chainEvent: ChainEvent | null
  conditionId: Hex
  /** Decimal text, in the order of the outcomes. */
  tokens: readonly [string, string]
}

export type OutcomeIndex = 0 | 1

const label = (slug: string): Hex => `0x${toHex(hashText(`portico local world: ${slug}`))}`

const chainOf = (event: CatalogEvent): { markets: readonly ChainMarket[]; event: ChainEvent | null } => {
  const seed = label(event.slug)
  if (!event.isNegRisk) {
    const market = event.protocol === 'v1' ? standardMarket(seed) : binaryMarketV2(seed)
    return { markets: [market], event: null }
  }
  const count = event.markets.length
  const group = event.protocol === 'v1' ? negRiskEvent(seed, count) : negRiskEventV2(seed, count)
  return { markets: group.markets, event: group }
}

export const events = catalog

export const markets: readonly Market[] = catalog
  .flatMap((event) => {
    const { markets: chains, event: chainEvent } = chainOf(event)
    return event.markets.map((market, at) => ({
      market,
      event,
      chainEvent,
      chain: chains[at] as ChainMarket,
    }))
  })
  .map(({ market, event, chain, chainEvent }, index) => ({
    ...market,
    index,
    event,
    chain,
    chainEvent,
    conditionId: chain.conditionId,
    tokens: [chain.outcomeIds[0].toString(), chain.outcomeIds[1].toString()] as const,
  }))

const byCondition = new Map(markets.map((market) => [market.conditionId.toLowerCase(), market]))
const byToken = new Map(
  markets.flatMap((market) =>
    market.tokens.map((token, outcome) => [token, { market, outcome: outcome as OutcomeIndex }] as const),
  ),
)

export const marketByCondition = (conditionId: string): Market | undefined =>
  byCondition.get(conditionId.toLowerCase())

export const outcomeByToken = (token: string): { market: Market; outcome: OutcomeIndex } | undefined =>
  byToken.get(token)

export const marketsOf = (event: CatalogEvent): Market[] => markets.filter((market) => market.event === event)

export const otherOutcome = (outcome: OutcomeIndex): OutcomeIndex => (outcome === 0 ? 1 : 0)

/** One book per condition holds prices of the first outcome; the other one is its mirror. */
export const bookPrice = (outcome: OutcomeIndex, price: number): number =>
  outcome === 0 ? price : 10_000 - price
