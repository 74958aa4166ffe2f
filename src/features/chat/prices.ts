/** Who answers, and the credits that one answer costs. */
export const creditsOfAgent = { ProAgent: 1n, ProDeepResearchAgent: 5n, MarketAnalyzerAgent: 2n } as const
export type Agent = keyof typeof creditsOfAgent
export const agents = ['ProAgent', 'ProDeepResearchAgent', 'MarketAnalyzerAgent'] as const satisfies Agent[]
export const defaultAgent: Agent = 'ProAgent'
