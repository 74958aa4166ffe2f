import { creditsOfUsage, type ModelPrices, type Usage } from '#kernel/money/token-prices.ts'
import { type Agent, agents } from '#kernel/wire/answerer.ts'

/** The credits that one answer costs. */
export const creditsOfAgent: Readonly<Record<Agent, bigint>> = {
  ProAgent: 1n,
  ProDeepResearchAgent: 5n,
  MarketAnalyzerAgent: 2n,
}

/** What is held where a model answers, whose tokens cost: as far as the user has it. */
export const creditsOfModel: Readonly<Record<Agent, bigint>> = {
  ProAgent: 5n,
  MarketAnalyzerAgent: 10n,
  ProDeepResearchAgent: 40n,
}

export const chatFacts = ({ hasModel }: { hasModel: boolean }) => ({
  agents: agents.map((name) => ({
    name,
    credits_estimate: Number((hasModel ? creditsOfModel : creditsOfAgent)[name]),
  })),
  streaming: true,
  resumable: true,
})

export const defaultAgent: Agent = 'ProAgent'

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
