import { LRUCache } from 'lru-cache'
import { contracts } from '#contracts.ts'
import { agentEngine } from '#features/chat/agent-engine.ts'
import type { ChatEngine } from '#features/chat/engine.ts'
import type { Universe } from '#features/chat/grammar/names.ts'
import { createRegistry, type Registry } from '#features/chat/grammar/registry.ts'
import { grammarEngine } from '#features/chat/grammar-engine.ts'
import { modelEngine } from '#features/chat/model/model-engine.ts'
import { agents } from '#features/chat/prices.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { Fault } from '#kernel/fault.ts'
import { fits } from '#kernel/fits.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Json } from '#kernel/json.ts'
import * as T from '#kernel/schema.ts'
import { OneOf, Text } from '#kernel/wire-types.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { versionOf } from './chat-registry.ts'
import { type ChatModels, type ModelConfig, openChatModels } from './model.ts'

/** The engine of an agent service: it knows of a gateway what the gateway answers. */

export type NamesOfGateway = { version: string; read(): Promise<{ chains: Json[]; assets: Json[] }> }

export type EngineOfGateway = (names: NamesOfGateway) => ChatEngine

/** In the greeting of a service. */
export const agentNames: readonly string[] = agents

const versionsMax = 8
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

/** The grammar answers where there is no model, and where the model does not. */
export function createEngineOf(models?: ChatModels): EngineOfGateway {
  const registries = new LRUCache<string, Promise<Registry>>({ max: versionsMax })
  const registryOf = (names: NamesOfGateway): Promise<Registry> => {
    const known = registries.get(names.version)
    if (known) return known
    const reading = readUniverse(names).then((universe) => createRegistry(contracts, universe))
    registries.set(names.version, reading)
    reading.catch(() => {
      if (registries.peek(names.version) === reading) registries.delete(names.version)
    })
    return reading
  }
  return (names) => {
    const own = () => registryOf(names)
    const grammar = grammarEngine(own)
    if (!models) return agentEngine(own, grammar)
    const limits = { tokensMax: models.tokensMax, prices: models.prices }
    return agentEngine(own, modelEngine({ model: models.model, grammar, registryOf: own, limits }))
  }
}

/** One gateway cannot name things for another: the version is the digest of the names. */
async function readUniverse({ version, read }: NamesOfGateway): Promise<Universe> {
  const universe: unknown = await read()
  if (!fits(UniverseForm, universe) || versionOf(universe) !== version)
    throw new Fault('upstream_changed', 'The names of the gateway are not those of their version')
  return universe
}

/** The models of a service that runs by itself, with a client of its own. */
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
