import { internalKey } from '#durable/idempotency.ts'
import { taskTopic } from '#durable/notifier.ts'
import type { Files } from '#engines/files/files.ts'
import { chat } from '#features/chat/chat.ts'
import type { ChatEngine } from '#features/chat/engine.ts'

import { grammarMandate, grammarOwnWords } from '#features/chat/grammar-engine.ts'

import { createMarketTools } from '#features/chat/market/market-tools.ts'
import { agents, creditsOfAgent, creditsOfModel, type ModelPrices } from '#features/chat/prices.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { InnerCalls } from '#invoke/inner-calls.ts'
import type { Chain } from '#kernel/chains.ts'
import { createLoopTurns } from '#kernel/loop-turns.ts'
import type { Operation } from '#kernel/operation.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { withChecksum } from '#upstreams/evm/address.ts'
import type { NamedUniverse } from './chat-registry.ts'
import type { Core } from './core.ts'

import type { Custody } from './custody.ts'

import type { ChatModels } from './model.ts'

import type { Venue } from './venue.ts'

type ChatParts = {
  core: Core
  credits: Credits
  custody: Pick<Custody, 'policy'>
  files: Files
  table: readonly Chain[]
  venue: Venue | undefined
  models: ChatModels | undefined
  /** Answers the turns. */
  agent: ChatEngine
  universe: () => Promise<NamedUniverse>
  /** Read with the first call of a tool, when both exist. */
  operations: () => readonly Operation[]
  innerCalls: () => InnerCalls
}
export type ChatOverrides = {
  /** Answers in place of the agent service. */
  chatEngine?: ChatEngine
  /** What the tokens of that engine cost. */
  chatPrices?: ModelPrices
  /** How long an answer goes on without a listener. */
  chatGraceMs?: number
}

/** In the manifest. */
export const chatFactsOf = ({ hasModel }: { hasModel: boolean }) => ({
  agents: agents.map((name) => ({
    name,
    credits_estimate: Number((hasModel ? creditsOfModel : creditsOfAgent)[name]),
  })),
  streaming: true,
  resumable: true,
})

export const openChat = (
  { core: { taskEngine, ...core }, custody, models, agent, universe, ...parts }: ChatParts,
  { chatGraceMs, ...overrides }: ChatOverrides,
): Operation[] => {
  const { venue, table, credits, files, operations, innerCalls } = parts
  const inTurn = createLoopTurns()
  // Its caller reads a text next, at once and whole.
  const registryFor = (userId: string) => async () => {
    const { registry } = await universe()
    await inTurn(userId)
    return registry
  }
  return chat({
    ...core,
    credits,
    files,
    operations,
    innerTools: createMarketTools(venue?.client),
    calls: innerCalls,
    ledger: taskEngine.ledger,
    tasks: taskEngine.tasks,
    notifier: taskEngine.notifier,
    topicOf: taskTopic,
    prices: overrides.chatPrices ?? models?.prices,
    keyOf: (name) => internalKey('chat', name),
    engine: overrides.chatEngine ?? agent,
    inTurn,
    openMandate: (turn) => grammarMandate(registryFor(turn.userId))(turn),
    budget: {
      hasBudget: async (userId) => (await custody.policy.chatRemainingMicros(userId)) > 0n,
      openOwnWords: (turn) => grammarOwnWords(registryFor(turn.userId))(turn),
    },
    lists: { chains: table, spellAddress: withChecksum },
    isUnavailable: isDatabaseUnavailable,
    ...(chatGraceMs !== undefined && { graceMs: chatGraceMs }),
  })
}
