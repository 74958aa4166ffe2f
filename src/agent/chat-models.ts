import type { Config } from '#config.ts'
import type { Random } from '#kernel/id.ts'
import type { ModelPrices } from '#kernel/money/model-token-prices.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { StreamingNet } from '#kernel/wire/upstream-http.ts'
import { createModelEndpoint, type Model } from '#upstreams/model/model.ts'

const answerBytesMax = 2 * 1024 * 1024
const toolCallsMax = 16
const localName = 'local'

export type ModelConfig = Pick<Config, `MODEL_${string}` & keyof Config>
type ModelDeps = {
  core: { config: ModelConfig; random: Random }
  url: string | undefined
  net: StreamingNet
}

export function openModel(
  { core: { config, random }, url, net }: ModelDeps,
  name = config.MODEL_NAME ?? localName,
): Model | undefined {
  if (url === undefined) return undefined
  return createModelEndpoint({
    url,
    api: config.MODEL_API,
    name,
    key: config.MODEL_KEY,
    net,
    random,
    limits: {
      tokensMax: config.MODEL_TOKENS_MAX,
      firstTokenMs: config.MODEL_FIRST_TOKEN_SECONDS * 1_000,
      idleMs: config.MODEL_IDLE_SECONDS * 1_000,
      totalMs: config.MODEL_TURN_SECONDS * 1_000,
      answerBytesMax,
      toolCallsMax,
    },
  })
}

export type ChatModels = { model: Readonly<Record<Agent, Model>>; tokensMax: number; prices: ModelPrices }

export function openChatModels(deps: ModelDeps): ChatModels | undefined {
  const { config } = deps.core
  const model = openModel(deps)
  if (!model) return undefined
  const named = (name: string | undefined): Model =>
    name === undefined || name === model.name ? model : (openModel(deps, name) ?? model)
  return {
    model: {
      ProAgent: model,
      MarketAnalyzerAgent: named(config.MODEL_NAME_MARKET),
      ProDeepResearchAgent: named(config.MODEL_NAME_RESEARCH),
    },
    tokensMax: config.MODEL_TOKENS_MAX,
    prices: { in: config.MODEL_PRICE_IN, out: config.MODEL_PRICE_OUT },
  }
}
