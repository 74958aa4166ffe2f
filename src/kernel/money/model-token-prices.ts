import { toUnits } from './money.ts'

export type Usage = { inputTokens: number; outputTokens: number }
/** The prices of a language model, in US dollars per million tokens, as decimal text. */
export type ModelPrices = { in: string; out: string }

/** A dollar buys at least this many credits. */
const creditsPerUsd = 60n
const places = 18
const perMillion = 1_000_000n * 10n ** BigInt(places)

const tokens = (count: number): bigint => BigInt(Math.max(0, Math.ceil(count)))

/** Returns the credits that these tokens cost, rounded up; 0 if tokens cost nothing. */
export function creditsOfUsage({ inputTokens, outputTokens }: Usage, prices: ModelPrices): bigint {
  const usd =
    tokens(inputTokens) * toUnits(prices.in, places) + tokens(outputTokens) * toUnits(prices.out, places)
  return (usd * creditsPerUsd + perMillion - 1n) / perMillion
}
