/** What runs order, as it is stored with each version. */

/** What a version was understood to order, which is stored with it. */
export type Compiled = Ordered & { notes: string[] } & Partial<StrategyOrders>
/** What the runs of a strategy may do: its configuration for decisions, its markets, and the most that it may spend. */
export type StrategyOrders = {
  strategy: object
  assets: string[]
  leverageMax: number | null
  runMaxUsd: string
  dayMaxUsd: string
}
/** The operations that a query orders, and whether any of them spends. */
export type Ordered = { operations: string[]; isSpending: boolean }
