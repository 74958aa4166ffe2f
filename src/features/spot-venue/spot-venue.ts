import { cancelAllSteps } from '#engines/venue/orders/cancel-all.ts'
import { currentMarkets } from '#engines/venue/records/markets.ts'
import { tasksOfOrders, venueName } from '#engines/venue/records/order-store.ts'
import { orderView, pricesMaxAgeMs } from '#engines/venue/records/order-view.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { implement, taskOf } from '#kernel/contract/operation.ts'
import { defineTaskKind } from '#kernel/task/task.ts'
import { admitBuy, admitSell } from './buy-and-sell.ts'
import { admitSpotCancel, spotCancelSteps } from './cancel.ts'
import { admitSpotCancelAll, cancelAllTriggersSteps } from './cancel-all.ts'
import { contract, type SpotInput } from './contract.ts'
import type { SpotDeps, SpotVenueDeps } from './deps.ts'
import { freeOf } from './free-balance.ts'
import { spotFills, spotOrderHistory } from './history.ts'
import { placeSpotOrderSteps } from './place-spot-order.ts'
import { createPriceLoop } from './price-loop.ts'
import { triggerRetry, triggerSpend, triggerSteps } from './run-trigger.ts'
import { usdcMarkets } from './spot-markets.ts'
import { admitTpSl, tpSlSteps } from './tp-sl.ts'
import { openTriggers, triggerKind } from './trigger-store.ts'
import { marketView, triggerView } from './views.ts'

const marksMaxAgeMs = 15_000

const factsOf = ({ limits, triggerHost }: Pick<SpotVenueDeps, 'limits' | 'triggerHost'>) => ({
  venue: venueName,
  quote: 'USDC',
  min_order_usd: limits.minOrderUsd,
  bracket: true,
  trigger_host: triggerHost,
})

async function listMarkets({ venue, limits }: SpotDeps, { search_text }: SpotInput<'markets'>) {
  const list = await usdcMarkets(venue, pricesMaxAgeMs)
  const part = search_text?.toLowerCase() ?? ''
  const rows = currentMarkets(list)
    .map((market) => marketView(market, limits.minOrderUsd))
    .filter(({ symbol, base }) => `${symbol} ${base}`.toLowerCase().includes(part))
  return { markets: rows, total: rows.length, as_of: new Date(list.at).toISOString() }
}

async function listOrders({ db, venue, views, viewedAccountOf }: SpotDeps, userId: string) {
  const account = await viewedAccountOf(userId)
  const [{ value: all, atMs: ordersAtMs }, { value: balances, atMs: balancesAtMs }, { markets }, triggers] =
    await Promise.all([
      views.openOrders(account),
      views.spotBalances(account),
      usdcMarkets(venue, marksMaxAgeMs),
      openTriggers(db, userId),
    ])
  const byCoin = new Map(markets.map((market) => [market.coin, market]))
  const byBase = new Map(markets.map((market) => [market.base, market]))
  const orders = all.flatMap((order) => {
    const market = byCoin.get(order.symbol)
    return market ? [{ ...order, symbol: market.symbol }] : []
  })
  const tasks = await tasksOfOrders(
    db,
    userId,
    orders.flatMap(({ cloid }) => (cloid ? [cloid] : [])),
  )
  const free = (symbol: string) =>
    freeOf(balances, markets.find((market) => market.symbol === symbol)?.base ?? symbol)
  const rows = [
    ...orders.map((order) => orderView(order, tasks)),
    ...triggers.map((trigger) => triggerView(trigger, free(trigger.input.symbol))),
  ]
  const held = balances.map(({ coin, total, hold, entryUsd }) => ({
    asset: byBase.get(coin)?.symbol ?? coin,
    total,
    hold,
    entry_notional_usd: entryUsd,
  }))
  const seen = new Set([...rows, ...held].map(({ asset }) => asset))
  return {
    orders: rows,
    balances: held,
    as_of: new Date(Math.min(ordersAtMs, balancesAtMs)).toISOString(),
    mark_prices: Object.fromEntries(
      markets.filter(({ symbol }) => seen.has(symbol)).map(({ symbol, markPrice }) => [symbol, markPrice]),
    ),
  }
}

export function createSpotVenue({ tradingKeys, priceTriggers, priceCheckMs, log, ...given }: SpotVenueDeps) {
  const deps: SpotDeps = {
    ...given,
    agentOf: async (userId) => (await tradingKeys.of(userId)).current,
    onAgentRevoked: tradingKeys.retired,
  }
  const { db, venue, evmAddressOf } = deps
  // Exits take rate budget before spending, and accepted tasks take it before new requests.
  const exit = { ...deps, venue: venue.withUrgency('exit') }
  const buying = placeSpotOrderSteps({ ...deps, venue: venue.withUrgency('work') })
  const selling = placeSpotOrderSteps(exit)
  const cancelAll = cancelAllSteps(exit)

  const operations = implement(contract, {
    markets: (input) => listMarkets(deps, input),
    orders: (_input, { userId }) => listOrders(deps, userId),
    buy: taskOf({ admit: admitBuy(deps), steps: buying }),
    sell: taskOf({ admit: admitSell(exit), steps: selling }),
    tpSl: taskOf({ admit: admitTpSl(exit), steps: tpSlSteps(exit) }),
    cancel: taskOf({
      admit: (input: SpotInput<'cancel'>, asker: Asker) => admitSpotCancel(exit, input, asker),
      steps: spotCancelSteps(exit),
    }),
    cancelAll: taskOf({
      admit: (input: SpotInput<'cancelAll'>, asker: Asker) => admitSpotCancelAll(exit, input, asker),
      steps: { ...cancelAll, ...cancelAllTriggersSteps(deps, cancelAll.sign) },
    }),
    fills: (input, { userId }) => spotFills(deps, userId, input),
    orderHistory: (input, { userId }) => spotOrderHistory(deps, userId, input),
  })
  const trigger = defineTaskKind({
    kind: triggerKind,
    version: 1,
    priority: 0,
    hasExecutionPerAttempt: true,
    steps: triggerSteps(exit, selling),
    spendOf: triggerSpend(exit),
    retry: triggerRetry,
  })
  const priceLoop = createPriceLoop({
    db,
    venue: exit.venue,
    watcher: priceTriggers,
    evmAddressOf,
    log,
    streamedMids: deps.streamedMids,
    everyMs: priceCheckMs,
    isOnDuty: given.isOnDuty,
  })
  return { operations, kinds: [trigger], starters: [priceLoop.start], facts: factsOf(given), priceLoop }
}
