import { creditsOfUsage, type ModelPrices, type Usage } from '#kernel/money/model-token-prices.ts'
import { type Agent, agents } from '#kernel/wire/chat-answerer.ts'

export const creditsOfAgent: Readonly<Record<Agent, bigint>> = {
  ProAgent: 1n,
  ProDeepResearchAgent: 5n,
  MarketAnalyzerAgent: 2n,
}

/**
 * The credits that are held for a turn if a model answers, because its tokens cost credits. If the user has fewer
 * credits, all of them are held.
 */
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
 * Returns the price of a turn: the price of its agent or the cost of its tokens, whichever is higher, and never more
 * than was held for the turn. If a money hold refused calls of the turn, it costs only its tokens.
 */
export function chargeOf(agent: Agent, heldUnits: bigint, { usage, prices, isHeld }: Costs): bigint {
  const base = isHeld ? 0n : creditsOfAgent[agent]
  const cost = usage && prices ? creditsOfUsage(usage, prices) : 0n
  const charge = cost > base ? cost : base
  return charge < heldUnits ? charge : heldUnits
}
