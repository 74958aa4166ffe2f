import { LRUCache } from 'lru-cache'
import { contracts } from '#contracts.ts'
import { type Universe, versionOf } from '#grammar/asset-and-chain-names.ts'
import { createRegistry, type Registry } from '#grammar/operation-registry.ts'
import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import * as T from '#kernel/contract/schema.ts'
import { OneOf, Text } from '#kernel/contract/wire-types.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import { type Answerer, agents } from '#kernel/wire/chat-answerer.ts'
import type { Json } from '#kernel/wire/json.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { type ChatModels, type ModelConfig, openChatModels } from './chat-models.ts'
import { chooseAnswerer } from './choose-answerer.ts'
import { grammarAnswerer } from './grammar-answerer.ts'
import { createModelAnswerer } from './model/model-answerer.ts'

/** An agent service knows nothing about a gateway except what the gateway answers. */

export type NamesOfGateway = { version: string; read(): Promise<{ chains: Json[]; assets: Json[] }> }

export type AnswererOfGateway = (names: NamesOfGateway) => Answerer

export const agentNames: readonly string[] = agents

const versionsMax = 8
/** How long a run waits for a read that another run began, because that run's gateway may never answer. */
const sharedMs = 1_000
const UniverseForm = T.Object({
  chains: T.Array(T.Object({ id: Text, name: Text, displayName: Text, family: OneOf(['evm', 'solana']) })),
  assets: T.Array(
    T.Object({
      symbol: Text,
      name: Text,
      tokens: T.Array(T.Object({ chainId: Text, address: Text, decimals: T.Integer() })),
      perp: T.Boolean(),
      spot: T.Boolean(),
    }),
  ),
})

/** The grammar answers if there is no model, or if the model does not answer. */
export function createAnswererOf(models?: ChatModels): AnswererOfGateway {
  const registryOf = createRegistryReader()
  const inTurn = createLoopTurns()
  return (names) => {
    // Reading a whole text blocks the event loop, so runs take turns on it, and other work goes on between two texts.
    const own = async () => {
      const registry = await registryOf(names)
      await inTurn()
      return registry
    }
    if (!models) return chooseAnswerer(own, grammarAnswerer)
    const limits = { tokensMax: models.tokensMax, prices: models.prices }
    return chooseAnswerer(own, createModelAnswerer({ model: models.model, grammar: grammarAnswerer, limits }))
  }
}

/**
 * Reads the names of the chains and assets of a gateway. Runs share the names that one of them has read. A run waits
 * briefly for a read under way, and reads by itself if that read is slow or fails.
 */
function createRegistryReader() {
  const registries = new LRUCache<string, Registry>({ max: versionsMax })
  const readings = new Map<string, Promise<Registry>>()
  const read = async (names: NamesOfGateway): Promise<Registry> => {
    const registry = createRegistry(contracts, await readUniverse(names))
    registries.set(names.version, registry)
    return registry
  }
  return async (names: NamesOfGateway): Promise<Registry> => {
    const { version } = names
    const known = registries.get(version)
    if (known) return known
    const others = readings.get(version)?.catch(() => undefined)
    const shared = others && (await withTimeLimit(others, sharedMs))
    if (shared) return shared
    const reading = read(names)
    readings.set(version, reading)
    return reading.finally(() => {
      if (readings.get(version) === reading) readings.delete(version)
    })
  }
}

/**
 * Throws if the version is not the digest of the names: the names are cached by version, so a gateway with a false
 * version could change the names of another gateway.
 */
async function readUniverse({ version, read }: NamesOfGateway): Promise<Universe> {
  const universe: unknown = await read()
  if (!fits(UniverseForm, universe) || versionOf(universe) !== version)
    throw new Fault(
      'upstream_changed',
      'The chains and assets that the gateway sent do not match their version; ask again',
    )
  return universe
}

export function openAgentModels(config: ModelConfig) {
  const url = config.MODEL_URL
  const net = createHttpClient({
    failpoints: noFailpoints,
    labels: url === undefined ? {} : { [new URL(url).origin]: 'model' },
  })
  return {
    models: openChatModels({ core: { config, random: systemRandom }, url, net }),
    [Symbol.asyncDispose]: () => net[Symbol.asyncDispose](),
  }
}
