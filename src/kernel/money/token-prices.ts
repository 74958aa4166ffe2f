import { toUnits } from './money.ts'

/** Tokens of a model. */
export type Usage = { inputTokens: number; outputTokens: number }
/** USD for a million tokens, as decimal text. */
export type ModelPrices = { in: string; out: string }

/** A dollar buys at least so many credits. */
const creditsPerUsd = 60n
const places = 18
const perMillion = 1_000_000n * 10n ** BigInt(places)

const tokens = (count: number): bigint => BigInt(Math.max(0, Math.ceil(count)))

/** The credits of these tokens, rounded up; 0 where tokens cost nothing. */
export function creditsOfUsage({ inputTokens, outputTokens }: Usage, prices: ModelPrices): bigint {
  const usd =
    tokens(inputTokens) * toUnits(prices.in, places) + tokens(outputTokens) * toUnits(prices.out, places)
  return (usd * creditsPerUsd + perMillion - 1n) / perMillion
}
