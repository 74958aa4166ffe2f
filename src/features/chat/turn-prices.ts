import { creditsOfUsage, type ModelPrices, type Usage } from '#kernel/money/model-token-prices.ts'
import { type Agent, agents } from '#kernel/wire/answerer.ts'

export const creditsOfAgent: Readonly<Record<Agent, bigint>> = {
  ProAgent: 1n,
  ProDeepResearchAgent: 5n,
  MarketAnalyzerAgent: 2n,
}

/** The credits that are held if a model answers, whose tokens cost; a user with fewer credits has all of them held. */
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

type Costs = { usage: Usage | undefined; prices: ModelPrices | undefined; isHeld: boolean }
/**
 * Returns the price of a turn: that of its agent or of its tokens, and never more than was drawn for the turn. A
 * turn whose calls a money hold refused costs only its tokens.
 */
export function chargeOf(agent: Agent, heldUnits: bigint, { usage, prices, isHeld }: Costs): bigint {
  const base = isHeld ? 0n : creditsOfAgent[agent]
  const cost = usage && prices ? creditsOfUsage(usage, prices) : 0n
  const charge = cost > base ? cost : base
  return charge < heldUnits ? charge : heldUnits
}
