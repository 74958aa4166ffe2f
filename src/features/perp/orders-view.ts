import { isUnified } from '#engines/venue/records/account-mode.ts'
import { tasksOfOrders } from '#engines/venue/records/order-store.ts'
import { orderView } from '#engines/venue/records/order-view.ts'
import type { Queryable } from '#store/query.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-view-cache.ts'
import type { Account, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { markOf, positionView, unifiedValue } from './views.ts'

type Deps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'perps'>
  views: Pick<AccountViews, 'account' | 'openOrders' | 'spotBalances' | 'mode'>
}

/** The maximum age of mark prices for open orders; positions come with mark prices of their own. */
const marksMaxAgeMs = 15_000

export async function ordersOf({ db, venue, views }: Deps, userId: string, account: string) {
  const [{ value: all, atMs: ordersAtMs }, { value: state, atMs: stateAtMs }] = await Promise.all([
    views.openOrders(account),
    views.account(account),
  ])
  const { accountValueUsd, withdrawableUsd } = await accountValue(views, account, state)
  const held = new Set(state.positions.map(({ symbol }) => symbol))
  const hasUnheldMarkets = all.some(({ symbol }) => !held.has(symbol))
  const { markets } = await venue.perps(hasUnheldMarkets ? marksMaxAgeMs : undefined)
  const grids = new Map(markets.map((market) => [market.symbol, market]))
  const orders = all.filter(({ symbol }) => grids.has(symbol))
  const cloids = orders.flatMap(({ cloid }) => (cloid ? [cloid] : []))
  const tasks = await tasksOfOrders(db, userId, cloids)
  const marks = new Map(
    state.positions.map((position) => [position.symbol, markOf(position, grids.get(position.symbol))]),
  )
  for (const { symbol } of orders)
    if (!marks.has(symbol)) marks.set(symbol, grids.get(symbol)?.markPrice ?? null)
  return {
    orders: orders.map((order) => orderView(order, tasks)),
    positions: state.positions.map((each) => positionView(each, orders, marks.get(each.symbol) ?? null)),
    mark_prices: Object.fromEntries(
      [...marks].flatMap(([symbol, mark]) => (mark === null ? [] : [[symbol, mark]])),
    ),
    account: {
      account_value_usd: accountValueUsd,
      withdrawable_usd: withdrawableUsd,
      margin_used_usd: state.marginUsedUsd,
    },
    // The time is the venue's time at the older of the two reads.
    as_of: new Date(state.timeMs - Math.max(0, stateAtMs - ordersAtMs)).toISOString(),
  }
}

/** Returns the value of the account; with one balance for both sides, the perp side reports only margin. */
async function accountValue(views: Deps['views'], account: string, state: Account) {
  if (state.withdrawableUsd !== '0' || state.accountValueUsd !== state.marginUsedUsd) return state
  const { value: spot } = await views.spotBalances(account)
  if (spot.length === 0) return state
  const { value: mode } = await views.mode(account)
  return isUnified(mode) ? unifiedValue(spot) : state
}
