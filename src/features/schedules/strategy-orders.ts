import type { StrategyFacts } from '#features/strategies/strategy-facts.ts'
import type { GuardConfig } from '#market/strategies/guards.ts'
import type { Spending } from './strategy-spending.ts'

/** What runs order, as it is stored with each version. */

/** What a version was understood to order, which is stored with it. */
export type Compiled = Ordered & { notes: string[] } & Partial<StrategyOrders>
/** The facts of the configuration of a strategy, its guards, and the most that its runs may spend. */
export type StrategyOrders = Omit<StrategyFacts, 'fields'> & Spending & { guards: GuardConfig }
/** The operations that a query orders, and whether any of them spends. */
export type Ordered = { operations: string[]; isSpending: boolean }
