import type { StreamingNet } from '#kernel/net.ts'
import { type Model, modelEndpoint } from '#upstreams/model/model.ts'
import type { Core } from './core.ts'

const answerBytesMax = 2 * 1024 * 1024
const toolCallsMax = 16
const localName = 'local'

type ModelDeps = { core: Pick<Core, 'config' | 'random'>; url: string | undefined; net: StreamingNet }

/** The configured language model; undefined without one. */
export function openModel({ core: { config, random }, url, net }: ModelDeps): Model | undefined {
  if (url === undefined) return undefined
  return modelEndpoint({
    url,
    api: config.MODEL_API,
    name: config.MODEL_NAME ?? localName,
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
