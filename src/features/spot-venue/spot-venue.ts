import { cancelling } from '#features/venue/cancel.ts'
import { cancelAllSteps } from '#features/venue/cancel-all.ts'
import { gathering } from '#features/venue/gather.ts'
import { placing } from '#features/venue/place.ts'
import { tasksOfOrders } from '#features/venue/store.ts'
import { freshMs, orderView } from '#features/venue/views.ts'
import { fulfil, type Operation } from '#kernel/operation.ts'
import type { Step, TaskKind } from '#kernel/task.ts'
import { admitSpotCancel, disarming } from './cancel.ts'
import { admitSpotCancelAll, disarmingAll } from './cancel-all.ts'
import { contract } from './contract.ts'
import { firing, firingRetry } from './fire.ts'
import { spotFills, spotOrderHistory } from './history.ts'
import { concluding } from './keep.ts'
import { freeOf, usdcMarkets } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { regrouping } from './regroup.ts'
import { admitTpSl, settingTriggers } from './tp-sl.ts'
import { admitBuy, admitSell } from './trade.ts'
import { openTriggers, triggerKind } from './triggers.ts'
import { marketView, triggerView } from './views.ts'

export type SpotVenue = { operations: Operation[]; kinds: TaskKind[] }

/** Marks beside a holding may be this old. */
const marksMaxAgeMs = 15_000

/** An order from its admission to its last word. */
function stepsOf(needs: SpotNeeds): Record<string, Step> {
  const regroup = regrouping(needs)
  const place = {
    ...needs,
    gathering: gathering({ ...needs, to: 'spot' }),
    mend: regroup.mend,
    conclude: concluding(needs),
  }
  return { ...placing(place), ...regroup.steps }
}

export function spotVenue(needs: SpotNeeds): SpotVenue {
  const { on, venue, views, policy, evmAddressOf, limits } = needs
  // What brings money home asks before what would spend it, and what was begun before what is only wished for.
  const exit = { ...needs, venue: venue.at('exit') }
  const buying = stepsOf({ ...needs, venue: venue.at('work') })
  const selling = stepsOf(exit)
  const cancelAll = cancelAllSteps(exit)
  const released = policy.release

  const operations = fulfil(contract, {
    async markets({ search_text }) {
      const { markets, at } = await usdcMarkets(venue, freshMs)
      const part = search_text?.toLowerCase() ?? ''
      const rows = markets
        .map((market) => marketView(market, limits.minOrderUsd))
        .filter(({ symbol, base }) => `${symbol} ${base}`.toLowerCase().includes(part))
      return { markets: rows, total: rows.length, as_of: new Date(at).toISOString() }
    },

    async orders(_input, { userId }) {
      const account = await evmAddressOf(userId)
      const [
        { value: all, atMs: ordersAtMs },
        { value: balances, atMs: balancesAtMs },
        { markets },
        triggers,
      ] = await Promise.all([
        views.openOrders(account),
        views.spotBalances(account),
        usdcMarkets(venue, marksMaxAgeMs),
        openTriggers(on, userId),
      ])
      const byCoin = new Map(markets.map((market) => [market.coin, market]))
      const byBase = new Map(markets.map((market) => [market.base, market]))
      const orders = all.flatMap((order) => {
        const market = byCoin.get(order.symbol)
        return market ? [{ ...order, symbol: market.symbol }] : []
      })
      const tasks = await tasksOfOrders(
        on,
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
          markets
            .filter(({ symbol }) => seen.has(symbol))
            .map(({ symbol, markPrice }) => [symbol, markPrice]),
        ),
      }
    },

    buy: { admit: (input, caller) => admitBuy(needs, input, caller), steps: buying, released },
    sell: { admit: (input, caller) => admitSell(exit, input, caller), steps: selling, released },
    tpSl: {
      admit: (input, caller) => admitTpSl(exit, input, caller),
      steps: settingTriggers(exit),
      released,
    },
    cancel: {
      admit: (input, caller) => admitSpotCancel(exit, input, caller),
      steps: { ...cancelling(exit), ...disarming(needs) },
      released,
    },
    cancelAll: {
      admit: (input, caller) => admitSpotCancelAll(exit, input, caller),
      steps: { ...cancelAll, ...disarmingAll(needs, cancelAll.begin) },
      released,
    },
    fills: (input, { userId }) => spotFills(needs, userId, input),
    orderHistory: (input, { userId }) => spotOrderHistory(needs, userId, input),
  })
  const trigger: TaskKind = {
    kind: triggerKind,
    version: 1,
    priority: 0,
    steps: firing(exit, selling),
    released,
    retry: firingRetry,
  }
  return { operations, kinds: [trigger] }
}
