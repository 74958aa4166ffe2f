import { creditsOfUsage, type ModelPrices, type Usage } from '#kernel/money/token-prices.ts'
import type { Agent } from '#kernel/wire/answerer.ts'

/** How much a model may do in a turn. */

export type ModelAnswererLimits = {
  /** Tokens that one answer of the model may have. */
  tokensMax: number
  prices: ModelPrices
}

export const modelTurnsMax: Readonly<Record<Agent, number>> = {
  ProAgent: 12,
  MarketAnalyzerAgent: 12,
  ProDeepResearchAgent: 40,
}
/** Below the calls that an answer may make, so that the grammar can take over. */
export const callsMax = 24
/** Steps of the plan that are announced: below those that an answer may have. */
export const announcedMax = 100
/** Of the text of an answer; its last sentences have room beside it. */
export const answerCharactersMax = 180_000
/** Of the text of one answer of the model that is sent, and of what is held, as a note stores them. */
export const textBytesMax = 96 * 1_024
/** Of the arguments of all calls of one answer of the model. */
export const argumentsBytesMax = 24 * 1_024
export const prefixCharactersMax = 16_000
export const attemptsMax = 3
/** Of all messages together: older results make room for newer ones. */
export const requestCharactersMax = 240_000

/** Fewer tokens say nothing. */
const tokensMin = 256
/** Cautious: tokens of prose have four characters, those of numbers and addresses fewer. */
const charactersPerToken = 3

export const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken)

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
})

type Budget = { creditsMax: number; used: Usage; limits: ModelAnswererLimits }

/** The tokens that the next answer may have within what is held; undefined where there is no room for any. */
export function tokensWithin(
  requestCharacters: number,
  { creditsMax, used, limits }: Budget,
): number | undefined {
  for (let tokens = limits.tokensMax; ; tokens = Math.floor(tokens / 2)) {
    const next = addUsage(used, { inputTokens: tokensOf(requestCharacters), outputTokens: tokens })
    if (creditsOfUsage(next, limits.prices) <= BigInt(creditsMax)) return tokens
    if (tokens <= tokensMin) return undefined
  }
}
