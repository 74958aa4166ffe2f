import { creditsOfUsage, type ModelPrices, type Usage } from '#kernel/money/model-token-prices.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'

export type ModelAnswererLimits = {
  tokensMax: number
  prices: ModelPrices
}

export const modelTurnsMax: Readonly<Record<Agent, number>> = {
  ProAgent: 12,
  MarketAnalyzerAgent: 12,
  ProDeepResearchAgent: 40,
}
/** The most calls that a model may make: fewer than a turn may, so that the grammar can still take over. */
export const callsMax = 24
/** The most steps that the plan announces, which is fewer than an answer may have. */
export const announcedMax = 100
/** The limit of an answer's text; it leaves room for the last sentences. */
export const answerCharactersMax = 180_000
/** The most bytes of the sent part, and of the unsent part, of one stored answer of the model. */
export const textBytesMax = 96 * 1_024
export const argumentsBytesMax = 24 * 1_024
export const prefixCharactersMax = 16_000
export const attemptsMax = 3
/** The limit of all messages together: older results are dropped to make room for newer ones. */
export const requestCharactersMax = 240_000

/** The least tokens that an answer gets, because a shorter answer says nothing useful. */
const tokensMin = 256
/** A cautious estimate: tokens of prose have four characters, those of numbers and addresses fewer. */
const charactersPerToken = 3

export const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken)

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
})

type Budget = { creditsMax: number; used: Usage; limits: ModelAnswererLimits }

/** Returns how many tokens the next answer may have within the held credits, or undefined if there is no room. */
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
