import { taskTopic } from '#durable/events/notifier.ts'
import type { Files } from '#engines/files/files.ts'
import { createChat } from '#features/chat/chat.ts'
import { chatFacts } from '#features/chat/credits-per-turn.ts'
import { createMarketTools } from '#features/chat/market-reads.ts'
import { chatRetentionJob } from '#features/chat/retention.ts'
import type { Credits } from '#features/credits/credits.ts'
import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { ModelPrices } from '#kernel/money/model-token-prices.ts'
import { internalKey } from '#kernel/task/idempotency-key.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { withChecksum } from '#upstreams/evm/address.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'

type ChatParts = Pick<
  Parts,
  'core' | 'chains' | 'custody' | 'venue' | 'modelPrices' | 'agent' | 'universe' | 'innerCalls'
> & {
  credits: Credits
  files: Files
  /** Returns all operations. It is a function, because the list is complete only once every section is built. */
  operations: () => readonly Operation[]
}
export type ChatOverrides = {
  /** Answers chats in place of the agent service. */
  chatAnswerer?: Answerer
  /** The prices of the tokens that `chatAnswerer` uses. */
  chatPrices?: ModelPrices
  /** How long an answer goes on without a listener. */
  chatGraceMs?: number
}

export const openChat = (
  { core: { taskEngine, ...core }, custody, modelPrices, agent, universe, ...parts }: ChatParts,
  { chatGraceMs, ...overrides }: ChatOverrides,
): Section => {
  const { venue, chains, credits, files, operations, innerCalls } = parts
  const chats = createChat({
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
    prices: overrides.chatPrices ?? modelPrices,
    keyOf: (name) => internalKey('chat', name),
    answerer: overrides.chatAnswerer ?? agent,
    inTurn: createLoopTurns(),
    universe,
    budget: {
      hasBudget: async (userId) => (await custody.policy.chatRemainingMicros(userId)) > 0n,
    },
    lists: { chains: chains.table, spellAddress: withChecksum },
    isUnavailable: isDatabaseUnavailable,
    ...(chatGraceMs !== undefined && { graceMs: chatGraceMs }),
  })
  return {
    part: 'chat',
    operations: chats,
    facts: chatFacts({ hasModel: modelPrices !== undefined }),
    jobs: [chatRetentionJob(core.db, core.clock)],
  }
}
