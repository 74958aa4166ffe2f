import { contracts } from '#contracts.ts'
import { type Universe, versionOf } from '#grammar/names.ts'
import { createRegistry, type Registry } from '#grammar/registry.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { Venue } from './venue.ts'

type Asset = Universe['assets'][number]

/** The chains and assets that a chat can name: the tables of the chains, and the markets of the venue. */

const freshMs = 300_000

/** `version` is the digest of the names: an agent service that has them under it does not ask for them again. */
export type NamedUniverse = { registry: Registry; universe: Universe; version: string }

const named = (universe: Universe): NamedUniverse => ({
  registry: createRegistry(contracts, universe),
  universe,
  version: versionOf(universe),
})

/** While the venue is away, its markets are those of before, or none. */
export function createUniverseReader({
  table,
  venue,
}: {
  table: readonly Chain[]
  venue: Venue | undefined
}): () => Promise<NamedUniverse> {
  const cache = createTtlCache<NamedUniverse>({ ttlMs: freshMs, entriesMax: 1, nowMs: monotonicMs })
  return () =>
    cache
      .get('universe', async () => named(await readUniverse(table, venue)))
      .catch(async (error: unknown) => {
        if (!(error instanceof Fault)) throw error
        return cache.last('universe') ?? named(await readUniverse(table, undefined))
      })
}

async function readUniverse(table: readonly Chain[], venue: Venue | undefined): Promise<Universe> {
  const [perps, spots] = venue ? await Promise.all([venue.client.perps(), venue.client.spots()]) : []
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
