import type { Balance, ShownBalances } from '#durable/accept/shown-balances.ts'
import type { CostBasis } from '#engines/cost-basis/store.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Chain, sameAddress, type Token } from '#kernel/money/chains.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Price, Prices } from '#upstreams/prices/prices.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import type { ChainReadingView, HoldingsErrorView, HoldingView } from './contract.ts'
import { type CachedReading, createHoldingsCache } from './holdings-cache.ts'
import { holdingOf, priceKeyOf, totalUsd } from './holdings-value.ts'
import {
  heldAtVenue,
  inVenueWallet,
  sharesHolding,
  type VenueHoldings,
  type VenueReading,
} from './venue-holdings.ts'
import { type EarnShare, type HeldToken, readEvm, readSolana, type WalletReading } from './wallet-reading.ts'

/** A chain that does not answer never hides the holdings on the others. */

export type ChainReader = { family: 'evm'; chain: Evm } | { family: 'solana'; chain: Solana }

export type SellingOrder = { id: string; chainId: string; address: string }

type HoldingsDeps = {
  chains: readonly ChainReader[]
  prices: Prices
  share: EarnShare | null
  walletsOf: (userId: string) => Promise<Wallet[]>
  recentTokens: (userId: string) => Promise<Map<string, Token[]>>
  basesOf: (userId: string) => Promise<CostBasis[]>
  ordersOf: (userId: string) => Promise<SellingOrder[]>
  /** Returns the venue where users have a wallet of their own; undefined if none is configured. */
  venue: () => VenueHoldings | undefined
  shownBalances: ShownBalances
  clock: Clock
}
export type HoldingsRequest = { family?: Chain['family'] | undefined; force: boolean }
export type HoldingsAnswer = {
  holdings: HoldingView[]
  total_value_usd: string
  complete: boolean
  stale: boolean
  as_of: string
  chains: ChainReadingView[]
  errors: HoldingsErrorView[]
}
export type Holdings = {
  forUser(userId: string, request: HoldingsRequest): Promise<HoldingsAnswer>
  /**
   * Drops the cached reading of a wallet after a receipt changed balances, so that the next request reads the chain.
   */
  invalidate(userId: string, chainId: string): void
}

/** A reading is fresh for less than two seconds, so that a deposit shows within two seconds on every instance. */
const freshMs = 1_000
const entriesMax = 20_000

/** The venue answers over several requests, and has this long for all of them. */
const venueMs = 3_000

type Known<Reading> = Partial<CachedReading<Reading>> & { error: string | null }
type ChainResult = { row: Chain; known: Known<WalletReading> }
type VenueResult = { venue: VenueHoldings; known: Known<VenueReading | undefined> }

export function createHoldings({
  chains,
  prices,
  share,
  walletsOf,
  recentTokens,
  basesOf,
  ordersOf,
  venue: venueOf,
  shownBalances,
  clock,
}: HoldingsDeps): Holdings {
  const options = { freshMs, entriesMax, now: () => clock.now(), nowMs: monotonicMs }
  const cache = createHoldingsCache<WalletReading>(options)
  const venueCache = createHoldingsCache<VenueReading | undefined>(options)
  const keyOf = (userId: string, chainId: string) => `${userId}:${chainId}`

  const readChain = async ({ family, chain }: ChainReader, address: string, seen: readonly Token[]) => {
    const { row } = chain
    const here = share?.chainId === row.id ? share : null
    const listed = [...row.tokens, ...(here ? [here.token] : [])]
    const unlisted = seen.filter(
      ({ address: at }) => !listed.some((token) => sameAddress(row, token.address, at)),
    )
    const request = {
      address,
      recentTokens: unlisted,
      share: here,
      signal: AbortSignal.timeout(row.readTimeoutMs),
    }
    const reading: Promise<WalletReading> =
      family === 'evm' ? readEvm(chain, request) : readSolana(chain, request)
    return withDeadline(reading, request.signal, row.displayName)
  }

  const readVenue = async (
    userId: string,
    { family, force }: HoldingsRequest,
  ): Promise<VenueResult | undefined> => {
    const venue = venueOf()
    if (!venue || family === 'solana') return undefined
    const read = () => withDeadline(venue.read(userId), AbortSignal.timeout(venueMs), venue.displayName)
    return { venue, known: await venueCache.get(userId, { force, read }) }
  }

  return {
    invalidate(userId, chainId) {
      cache.invalidate(keyOf(userId, chainId))
      if (chainId === venueOf()?.chain.id) venueCache.invalidate(userId)
      shownBalances.drop(userId, chainId)
    },

    async forUser(userId, { family, force }) {
      const atVenueRead = readVenue(userId, { family, force })
      const [wallets, tokensByChain, bases, orders] = await Promise.all([
        walletsOf(userId),
        recentTokens(userId),
        basesOf(userId),
        ordersOf(userId),
      ])
      const asked = chains.filter((each) => !family || each.family === family)
      const results = await Promise.all(
        asked.flatMap((reader) => {
          const { row } = reader.chain
          const wallet = wallets.find(({ kind }) => kind === (reader.family === 'evm' ? 'evm' : 'svm'))
          if (!wallet) return []
          const request = {
            force,
            read: () => readChain(reader, wallet.address, tokensByChain.get(row.id) ?? []),
          }
          return [cache.get(keyOf(userId, row.id), request).then((known): ChainResult => ({ row, known }))]
        }),
      )
      for (const { row, known } of results)
        if (known.reading && known.error === null)
          shownBalances.note(userId, row.id, known.reading.held.map(toBalance))
      const atVenue = await atVenueRead
      const lookup = await fetchPrices(prices, results, atVenue)
      return answerOf({ results, atVenue }, { ...lookup, bases, orders }, clock.now())
    },
  }
}

const toBalance = ({ token, amountUnits }: HeldToken): Balance => ({
  token: token.address,
  units: amountUnits,
})

/** An adapter may react late to the signal, and the response does not wait for it. */
function withDeadline<T>(reading: Promise<T>, signal: AbortSignal, name: string): Promise<T> {
  const timeout = new Promise<never>((_, reject) => {
    signal.addEventListener(
      'abort',
      () => reject(new Fault('upstream_timeout', `${name} did not answer in time`)),
      { once: true },
    )
  })
  return Promise.race([reading, timeout])
}

type PriceLookup = { prices: ReadonlyMap<string, Price>; source: string; error: string | null }

type UserFacts = { bases: readonly CostBasis[]; orders: readonly SellingOrder[] }

async function fetchPrices(
  source: Prices,
  results: readonly ChainResult[],
  atVenue: VenueResult | undefined,
): Promise<PriceLookup> {
  const keys = [
    ...results.flatMap(({ row, known }) => (known.reading?.held ?? []).map((held) => priceKeyOf(row, held))),
    ...heldAtVenue(atVenue?.known.reading).map((held) => priceKeyOf(atVenue!.venue.chain, held)),
  ]
  try {
    return { prices: await source.get([...new Set(keys)]), source: source.source, error: null }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return { prices: new Map(), source: source.source, error: fault.message }
  }
}

type Results = { results: readonly ChainResult[]; atVenue: VenueResult | undefined }

function answerOf(
  { results, atVenue }: Results,
  { bases, orders, ...lookup }: PriceLookup & UserFacts,
  now: Date,
): HoldingsAnswer {
  const { prices, source, error } = lookup
  const own = results.flatMap(({ row, known }) =>
    (known.reading?.held ?? []).map((held: HeldToken) =>
      holdingOf(held, {
        chain: row,
        block: known.reading?.block ?? 0n,
        source,
        price: prices.get(priceKeyOf(row, held)),
        basis: bases.find(
          ({ chainId, token }) => chainId === row.id && sameAddress(row, token, held.token.address),
        ),
        orderIds: orders
          .filter(
            ({ chainId, address }) => chainId === row.id && sameAddress(row, address, held.token.address),
          )
          .map(({ id }) => id),
      }),
    ),
  )
  const list = [...own, ...venueRows(atVenue, lookup)]
  const chains = results.map(readingView)
  const venueError = atVenue?.known.error ?? null
  const stale = venueError !== null || chains.some(({ status }) => status !== 'ok')
  return {
    holdings: list,
    total_value_usd: totalUsd(list),
    complete: !stale && list.every(({ value_usd }) => value_usd !== null),
    stale,
    as_of: now.toISOString(),
    chains,
    errors: [
      ...chains.flatMap(({ chain_id, error: message }) => errorOf('chain', chain_id, message)),
      ...errorOf('prediction_market', null, venueError),
      ...errorOf('prices', null, error),
    ],
  }
}

const errorOf = (
  source: HoldingsErrorView['source'],
  chainId: string | null,
  message: string | null,
): HoldingsErrorView[] => (message === null ? [] : [{ chain_id: chainId, source, message }])

/** The wallet at the venue is another one than the user's own, so a token of both is listed once for each. */
function venueRows(atVenue: VenueResult | undefined, { prices, source }: PriceLookup): HoldingView[] {
  const reading = atVenue?.known.reading
  if (!reading) return []
  const { venue } = atVenue
  const tokens = reading.held.map((held) => {
    const price = prices.get(priceKeyOf(venue.chain, held))
    return inVenueWallet(venue, holdingOf(held, { chain: venue.chain, block: reading.block, source, price }))
  })
  return [...tokens, ...reading.shares.map((shares) => sharesHolding(shares, { venue, reading }))]
}

function readingView({ row, known }: ChainResult): ChainReadingView {
  const { reading, at, error } = known
  return {
    chain_id: row.id,
    status: error === null ? 'ok' : reading ? 'stale' : 'failed',
    as_of_block: reading ? Number(reading.block) : null,
    as_of: at ? at.toISOString() : null,
    error,
  }
}
