import { later } from '#kernel/clock.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { OutcomeTrade } from '#kernel/money/prediction-views.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { PredictionAccountRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { sharesAfterSales } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { cancelledByVenue, fillEvents } from './events.ts'
import { besideTrades, type MeasuredTrade, measureTrades } from './measured-trades.ts'
import { lockAccount, walletOfRow } from './store/account-store.ts'
import type { ChainUnits } from './store/exit-facts.ts'
import {
  type FillChange,
  isFinal,
  keyOf,
  namedTrade,
  recordTrades,
  settlementsOf,
} from './store/fill-store.ts'
import { isChanged, isDueLookUp } from './store/order-look-ups.ts'
import {
  changeOrder,
  followedOrders,
  hasUnlistedTrades,
  isLost,
  noteMissed,
  type OrderChange,
  orderRow,
} from './store/order-store.ts'

/** Stores what the venue shows of an account: its trades, and how its orders stand. */

/** Trades are read again from so long before the last reading, because the venue lists some late. */
const overlapMs = 120_000
/** Orders that are not listed are looked up one by one, so many in one reading. */
const lookUpsMax = 40
const lookUpsAtOnce = 8

type Reading = { account: PredictionAccountRow; credentials: VenueCredentials; now: Date }
/** Whether something is still open; `lost` is nothing but orders that the venue does not know any more. */
export type AccountState = 'open' | 'lost' | 'idle'

export async function readAccount(deps: PredmktDeps, reading: Reading): Promise<AccountState> {
  const { db, venue, transact, events } = deps
  const { account, credentials, now } = reading
  const owner = { userId: account.user_id, venue: venue.name }
  const since = later(account.trades_through ?? account.created_at, -overlapMs)
  const orders = await followedOrders(db, owner)
  const [trades, listed] = await Promise.all([
    newTrades(deps, account, await venue.trades({ since }, walletOfRow(account), credentials)),
    orders.length > 0 ? venue.openOrders({}, credentials) : [],
  ])
  const open = new Map(listed.map((order) => [order.orderId.toLowerCase(), order]))
  // Orders that the venue does not know make way for the others.
  const unlisted = orders
    .filter((row) => !open.has(row.order_id.toLowerCase()) && isDueLookUp(row, now))
    .toSorted((a, b) => a.misses - b.misses)
    .slice(0, lookUpsMax)
  const found = await lookUp(unlisted, (row) => findingOf(deps, row, reading))
  const chainUnits = await sharesAfterSales(deps, account.wallet_address, trades)
  const unsettled = trades.filter(({ settlement }) => !isFinal(settlement))
  const oldest = unsettled.reduce((at, { matchedAt }) => (matchedAt < at ? matchedAt : at), now)
  await transact(async (tx) => {
    await lockAccount(tx, owner)
    const changes = await recordKnown(deps, tx, account, { trades, chainUnits })
    const wiped: PredictionOrderRow[] = []
    for (const [row, finding] of found) {
      const hasEnded =
        finding === 'missing' ? await noteMissed(tx, row, now) : await changeOrder(tx, { ...finding, now })
      const isByVenue =
        finding === 'missing' || finding.status === 'cancelled' || finding.status === 'resolved'
      if (hasEnded && isByVenue && !row.cancel_asked) wiped.push(row)
    }
    for (const row of orders) {
      const { order_id: orderId } = row
      const order = open.get(orderId.toLowerCase())
      if (order && isChanged(row, order))
        await changeOrder(tx, { orderId, status: 'live', matchedUnits: order.matchedUnits, now })
    }
    // What is not listed yet is looked for where it was looked for before.
    if (!(await hasUnlistedTrades(tx, owner, now)))
      await query(tx, 'update prediction_account set trades_through = $3 where user_id = $1 and venue = $2', [
        account.user_id,
        venue.name,
        oldest,
      ])
    const all = [...fillEvents(changes, null), ...wiped.map((row) => cancelledByVenue(row, now))]
    if (all.length > 0) await events.add(tx, account.user_id, all)
  })
  if (unsettled.length > 0 || orders.some((row) => !isLost(row, now))) return 'open'
  return orders.length > 0 ? 'lost' : 'idle'
}

/** Reads in a few lanes, in order. */
async function lookUp<R, T>(rows: readonly R[], read: (row: R) => Promise<T>): Promise<[R, T][]> {
  const found: [R, T][] = []
  for (let at = 0; at < rows.length; at += lookUpsAtOnce) {
    const some = rows.slice(at, at + lookUpsAtOnce)
    const results = await Promise.all(some.map(read))
    found.push(...some.map((row, index): [R, T] => [row, results[index]!]))
  }
  return found
}

type Finding = Omit<OrderChange, 'now'> | 'missing'

/** What the venue shows of an order that is not in its list of open ones. */
async function findingOf(
  { venue }: PredmktDeps,
  row: PredictionOrderRow,
  { credentials, now }: Reading,
): Promise<Finding> {
  const order = await venue.order(row.order_id, credentials)
  if (!order) return 'missing'
  const { matchedUnits, status } = order
  const change = { orderId: row.order_id, matchedUnits }
  switch (status) {
    case 'matched':
      return { ...change, status }
    case 'canceled': {
      const isExpired = row.expires_at !== null && row.expires_at <= now
      return { ...change, status: isExpired ? 'expired' : 'cancelled' }
    }
    case 'canceled_market_resolved':
      return { ...change, status: 'resolved' }
    case 'invalid':
      return { ...change, status: 'unmatched' }
    default:
      // The list lags behind the order.
      return { ...change, status }
  }
}

/** The trades whose state can still change here, with what the chain shows of them. */
async function newTrades(
  deps: PredmktDeps,
  { user_id: userId, wallet_address: wallet }: PredictionAccountRow,
  trades: readonly OutcomeTrade[],
): Promise<MeasuredTrade[]> {
  const owner = { userId, venue: deps.venue.name }
  const known = await settlementsOf(
    deps.db,
    owner,
    trades.map(({ tradeId }) => tradeId),
  )
  const isOpen = (trade: OutcomeTrade) => !isFinal(known.get(keyOf(trade)))
  return (await measureTrades(deps, wallet, besideTrades(trades, isOpen))).filter(isOpen)
}

async function recordKnown(
  deps: PredmktDeps,
  tx: Tx,
  account: PredictionAccountRow,
  { trades, chainUnits }: { trades: readonly MeasuredTrade[]; chainUnits: ChainUnits },
): Promise<FillChange[]> {
  const named = await Promise.all(
    trades.map(async (trade) => {
      const row = await orderRow(tx, trade.orderId)
      // An order of another client has no row; its protocol follows from the outcome.
      const facts = row ?? { title: '', protocol: deps.venue.protocolOf(trade.outcomeId) ?? 'v1', fee: null }
      return namedTrade(trade, facts, deps.takerFeeUnits)
    }),
  )
  return recordTrades(tx, { userId: account.user_id, venue: deps.venue.name }, named, chainUnits)
}
