import { reserveSpend } from '#durable/accept/reserve-spend.ts'
import { dayMs } from '#durable/upkeep/retention.ts'
import { basesOf } from '#engines/cost-basis/store.ts'
import type { PublishOrders } from '#engines/trigger-orders/cancel.ts'
import { createPriceWatch } from '#engines/trigger-orders/price-watch.ts'
import { createPricer, displayPricesOf } from '#engines/trigger-orders/pricer.ts'
import { orderDeletion } from '#engines/trigger-orders/retention.ts'
import { openOrdersOf } from '#engines/trigger-orders/store.ts'
import type { SwapExecution } from '#engines/trigger-orders/swap-port.ts'
import { hookRules } from '#features/hooks/hook-order-rules.ts'
import { createHooks } from '#features/hooks/hooks.ts'
import { createSwapHooks, type SwapHooks } from '#features/hooks/swap-hooks.ts'
import { hookEvent, hookKind, hookView } from '#features/hooks/view.ts'
import { limitOrderRules } from '#features/limit-orders/limit-order-rules.ts'
import { createLimitOrders } from '#features/limit-orders/limit-orders.ts'
import { limitOrderEvent, limitOrderKind, limitOrderView } from '#features/limit-orders/view.ts'
import {
  createOrderPublisher,
  createOutstandingOrders,
  type OrderViews,
} from '#features/outstanding-orders/outstanding-orders.ts'
import { createOrderKind } from '#features/swap/orders/run-order.ts'
import type { SellingOrder } from '#features/wallets/holdings.ts'
import type { Queryable } from '#store/query.ts'
import type { Section } from './section.ts'
import type { SharedParts } from './section-parts.ts'

type SwapHookParts = Pick<SharedParts, 'core' | 'chains' | 'custody' | 'orderPrices'>
/** `swaps` executes the orders; it is absent where no swaps are served. */
type OrderParts = SwapHookParts & { swaps: SwapExecution | undefined }
export type OrderOverrides = {
  /** Interval in which the prices of tokens with orders are read. */
  orderCheckMs?: number
}
export type Orders = Section & { publish?: PublishOrders }

export const orderViews: ReadonlyMap<string, OrderViews> = new Map<string, OrderViews>([
  [hookKind, { orderKind: 'hook', view: hookView, event: hookEvent }],
  [limitOrderKind, { orderKind: 'limit_order', view: limitOrderView, event: limitOrderEvent }],
])

/** What holdings show beside balances: what they cost, and the open orders that sell them. */
export const holdingFacts = (db: Queryable) => ({
  basesOf: (userId: string) => basesOf(db, userId),
  ordersOf: (userId: string) => sellingOrders(db, userId),
})

async function sellingOrders(db: Queryable, userId: string): Promise<SellingOrder[]> {
  const rows = await openOrdersOf<never>(db, userId, [hookKind, limitOrderKind])
  return rows.map(({ id, kind, input }) => {
    const rules = kind === hookKind ? hookRules : limitOrderRules
    return { id, ...rules.soldToken(input) }
  })
}

/**
 * Opens the hooks (stop-losses and take-profits) of swaps: a swap arms hooks on the token that it bought, and cancels
 * hooks on the token that it sold.
 */
export const openSwapHooks = ({ core, chains, custody, orderPrices: prices }: SwapHookParts): SwapHooks =>
  createSwapHooks({
    db: core.db,
    displayPrices: displayPricesOf({ chains: chains.table, prices }),
    policy: custody.policy.policy,
  })

/** Opens the orders that wait for a price of a token, and the watch that fires them. */
export function openOrders(
  { core, chains, custody, orderPrices: prices, swaps }: OrderParts,
  { orderCheckMs }: OrderOverrides = {},
): Orders {
  const { config, db, log, clock, random, taskEngine, priceTriggers } = core
  const deletions = [orderDeletion(config.ORDER_RETENTION_DAYS * dayMs)]
  if (!swaps) return { deletions }
  const tokenFacts = async (chainId: string, address: string) =>
    chains.ports.get(chainId)?.chain.tokenFacts(address)
  const pricer = createPricer({
    chains: chains.table,
    prices,
    quoteOut: swaps.quoteOut,
    tokenFacts,
  })
  const { policy } = custody.policy
  const { assertFree } = taskEngine.holds
  const kindDeps = { db, clock, policy, swaps, assertFree, priceOf: pricer.priceOf, reserve: reserveSpend }
  const publish = createOrderPublisher(taskEngine.events, orderViews)
  const deps = {
    db,
    chains: chains.table,
    tokenFacts,
    pricer,
    swaps,
    policy,
    events: taskEngine.events,
    publish,
    tasks: taskEngine.tasks,
    clock,
    random,
  }
  const priceWatch = createPriceWatch({
    db,
    clock,
    log,
    priceTriggers,
    displayPrices: pricer.displayPrices,
    quotePrice: pricer.quotePrice,
    quotesPerMinute: config.ORDER_QUOTES_PER_MINUTE,
    everyMs: orderCheckMs,
    isOnDuty: taskEngine.isOnDuty,
  })
  return {
    part: 'trading',
    operations: [
      ...createHooks({ ...deps, acts: taskEngine.approvals }),
      ...createLimitOrders(deps),
      ...createOutstandingOrders({ db, clock, publish, tasks: taskEngine.tasks, kinds: orderViews }),
    ],
    publish,
    kinds: [createOrderKind(kindDeps, hookRules), createOrderKind(kindDeps, limitOrderRules)],
    deletions,
    starters: [priceWatch.start],
  }
}
