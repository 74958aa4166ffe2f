import { type Universe, versionOf } from '#grammar/asset-and-chain-names.ts'
import { createRegistry, type Registry } from '#grammar/operation-registry.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Contract } from '#kernel/contract/operation.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

type Asset = Universe['assets'][number]

/** The chains and assets that a chat can name: the tables of the chains, and the markets of the venue. */

const freshMs = 300_000

/** `version` is a digest of the names: an agent service that has this version does not ask for the names again. */
export type NamedUniverse = { registry: Registry; universe: Universe; version: string }

type UniverseDeps = {
  contracts: readonly Contract[]
  table: readonly Chain[]
  venue: Pick<Hyperliquid, 'perps' | 'spots'> | undefined
}

/** While the venue is away, the chat knows the markets that were read last, or none. */
export function createUniverseReader({
  contracts,
  table,
  venue,
}: UniverseDeps): () => Promise<NamedUniverse> {
  const named = (universe: Universe): NamedUniverse => ({
    registry: createRegistry(contracts, universe),
    universe,
    version: versionOf(universe),
  })
  const cache = createTtlCache<NamedUniverse>({ ttlMs: freshMs, entriesMax: 1, nowMs: monotonicMs })
  return () =>
    cache
      .get('universe', async () => named(await readUniverse(table, venue)))
      .catch(async (error: unknown) => {
        if (!(error instanceof Fault)) throw error
        return cache.last('universe') ?? named(await readUniverse(table, undefined))
      })
}

async function readUniverse(table: UniverseDeps['table'], venue: UniverseDeps['venue']): Promise<Universe> {
  const [perps, spots] = venue ? await Promise.all([venue.perps(), venue.spots()]) : []
  const assets = new Map<string, Asset>()
  const merge = (symbol: string, part: Partial<Asset>) => {
    const known = assets.get(symbol) ?? { symbol, name: symbol, tokens: [], perp: false, spot: false }
    assets.set(symbol, {
      ...known,
      ...part,
      name: known.name === symbol ? (part.name ?? symbol) : known.name,
      tokens: [...known.tokens, ...(part.tokens ?? [])],
    })
  }
  for (const { id: chainId, native, tokens } of table)
    for (const { symbol, name, address, decimals } of [native, ...tokens])
      merge(symbol, { name, tokens: [{ chainId, address, decimals }] })
  for (const { symbol, isDelisted } of perps?.markets ?? []) if (!isDelisted) merge(symbol, { perp: true })
  for (const { base } of spots?.markets ?? []) merge(base, { spot: true })
  return {
    chains: table.map(({ id, name, displayName, family }) => ({ id, name, displayName, family })),
    assets: [...assets.values()],
  }
}
