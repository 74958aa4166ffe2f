import { toUnits } from '#kernel/money.ts'

/** Who answers, and the credits that one answer costs. */
export const creditsOfAgent = { ProAgent: 1n, ProDeepResearchAgent: 5n, MarketAnalyzerAgent: 2n } as const
export type Agent = keyof typeof creditsOfAgent
export const agents = ['ProAgent', 'ProDeepResearchAgent', 'MarketAnalyzerAgent'] as const satisfies Agent[]
export const defaultAgent: Agent = 'ProAgent'

/** What is held where a model answers, whose tokens cost: as far as the user has it. */
export const creditsOfModel: Readonly<Record<Agent, bigint>> = {
  ProAgent: 5n,
  MarketAnalyzerAgent: 10n,
  ProDeepResearchAgent: 40n,
}

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

/** What a turn costs: its agent's price or its tokens, and never more than was held. */
export function chargeOf(
  agent: Agent,
  heldUnits: bigint,
  { usage, prices }: { usage: Usage | undefined; prices: ModelPrices | undefined },
): bigint {
  const base = creditsOfAgent[agent]
  const cost = usage && prices ? creditsOfUsage(usage, prices) : 0n
  const charge = cost > base ? cost : base
  return charge < heldUnits ? charge : heldUnits
}
