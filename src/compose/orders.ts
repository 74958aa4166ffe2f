import { reserveSpend } from '#durable/reserve-spend.ts'
import { createPriceWatch, type PriceWatch } from '#engines/trigger-orders/price-watch.ts'
import { createPricer } from '#engines/trigger-orders/pricer.ts'
import { orderKind, type SwapExecution } from '#engines/trigger-orders/run-order.ts'
import { hookRules, hooks } from '#features/hooks/hooks.ts'
import { hookEvent, hookKind, hookView } from '#features/hooks/view.ts'
import { limitOrderRules } from '#features/limit-orders/create.ts'
import { limitOrders } from '#features/limit-orders/limit-orders.ts'
import { limitOrderEvent, limitOrderKind, limitOrderView } from '#features/limit-orders/view.ts'
import { outstandingOrders } from '#features/outstanding-orders/outstanding-orders.ts'
import type { Operation } from '#kernel/operation.ts'
import type { SwapProvider } from '#kernel/swap-provider.ts'
import type { TaskKind } from '#kernel/task.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'

type OrderParts = {
  core: Core
  chains: Chains
  custody: Custody
  prices: Prices
  providers: readonly SwapProvider[]
  swaps: SwapExecution
}
export type OrderOverrides = {
  /** Interval in which the prices of tokens with orders are looked at. */
  orderCheckMs?: number
}
export type Orders = { operations: Operation[]; kinds: TaskKind[]; priceWatch: PriceWatch }

/** Orders that wait for a price of a token, and the watch that fires them. */
export function openOrders(
  { core, chains, custody, prices, providers, swaps }: OrderParts,
  { orderCheckMs }: OrderOverrides = {},
): Orders {
  const { config, db, log, clock, random, taskEngine } = core
  const tokenFacts = async (chainId: string, address: string) =>
    chains.ports.get(chainId)?.chain.tokenFacts(address)
  const pricer = createPricer({
    chains: chains.table,
    prices,
    providers,
    tokenFacts,
    accountOf: custody.evmAddressOf,
  })
  const { policy } = custody.policy
  const kindDeps = { db, policy, swaps, priceOf: pricer.priceOf, reserve: reserveSpend }
  const deps = {
    db,
    chains: chains.table,
    tokenFacts,
    pricer,
    swaps,
    policy,
    events: taskEngine.events,
    orderKinds: [hookKind, limitOrderKind],
    clock,
    random,
  }
  return {
    operations: [
      ...hooks(deps),
      ...limitOrders(deps),
      ...outstandingOrders({
        db,
        clock,
        events: taskEngine.events,
        kinds: new Map([
          [hookKind, { orderKind: 'hook', view: hookView, event: hookEvent }],
          [limitOrderKind, { orderKind: 'limit_order', view: limitOrderView, event: limitOrderEvent }],
        ]),
      }),
    ],
    kinds: [orderKind(kindDeps, hookRules), orderKind(kindDeps, limitOrderRules)],
    priceWatch: createPriceWatch({
      db,
      clock,
      log,
      priceTriggers: taskEngine.priceTriggers,
      displayPrices: pricer.displayPrices,
      quotePrice: pricer.quotePrice,
      quotesPerMinute: config.ORDER_QUOTES_PER_MINUTE,
      everyMs: orderCheckMs,
      isOnDuty: taskEngine.isOnDuty,
    }),
  }
}
