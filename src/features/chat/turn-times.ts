import type { Agent } from '#kernel/wire/chat-answerer.ts'

/** How long a turn of each agent may take; at the limit it ends with the part of the answer that it has. */
export const turnMs: Record<Agent, number> = {
  ProAgent: 90_000,
  MarketAnalyzerAgent: 90_000,
  ProDeepResearchAgent: 600_000,
}
export const stepMs = 630_000
/** The deadline of a turn includes the wait for an instance that takes the turn over. */
export const turnDeadlineMs = 900_000
