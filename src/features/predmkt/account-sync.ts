import { startPacedJob } from '#kernel/async/paced-job.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { OutcomeTrade } from '#kernel/money/prediction-views.ts'
import { query } from '#store/query.ts'
import type { PredictionAccountRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { cancelledByVenue, fillEvents } from './events.ts'
import { advanceExits, type ExitDeps } from './exits.ts'
import { type MeasuredTrade, measureTrades } from './measured-trades.ts'
import { isSuspended, walletOfRow } from './store/account-store.ts'
import { type FillChange, finalTradeIds, namedTrade, recordTrades } from './store/fill-store.ts'
import { changeOrder, openOrderRows, orderRow } from './store/order-store.ts'

/**
 * Compares accounts with the venue, each on one instance at a time: those with open orders, trades or exits all the
 * time, and others now and then, because another client of the same user may have traded.
 */

const idleMs = 3_000
const busyMs = 500
const accountsMax = 20
const concurrencyMax = 4
/** An account with nothing open is compared again after this time. */
const restMs = 5 * 60_000
/** An instance that claims an account has so long to compare it. */
const leaseMs = 20_000
const againMs = 2_000
/** Trades are read again from so long before the last reading, because the venue lists some late. */
const overlapMs = 120_000
/** An order that the venue has accepted and does not list for so long is gone. */
const wipedAfterMs = 30_000

export const createAccountSync = (deps: ExitDeps) => ({
  start: (): AsyncDisposable =>
    startPacedJob(() => syncDue(deps), {
      retryMs: idleMs,
      onError: (error) =>
        deps.log.warn({ error }, 'prediction accounts not compared; the next round tries again'),
    }),
})

async function syncDue(deps: ExitDeps): Promise<number> {
  const rows = await claimDue(deps)
  const waiting = [...rows]
  const work = async () => {
    for (let row = waiting.shift(); row; row = waiting.shift()) {
      const { user_id: user } = row
      await syncAccount(deps, row).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
        deps.log.debug({ error, user }, 'prediction account not compared; the next round tries again')
      })
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: concurrencyMax }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return rows.length > 0 ? busyMs : idleMs
}

/** Claims accounts that are due, and in the room that they leave the ones that were compared long ago. */
async function claimDue({ db, venue, clock }: ExitDeps): Promise<PredictionAccountRow[]> {
  const now = clock.now()
  const claim = (due: string, dueAt: Date, max: number) =>
    query<PredictionAccountRow>(
      db,
      `update prediction_account set sync_at = $3 where (user_id, venue) in (
         select user_id, venue from prediction_account a where venue = $1 and ${due}
         limit $4 for update skip locked) returning *`,
      [venue.name, dueAt, later(now, leaseMs), max],
    )
  const rows = await claim('sync_at <= $2 order by sync_at', now, accountsMax)
  if (rows.length === accountsMax) return rows
  const rested = await claim(
    `sync_at is null and trades_through <= $2 and exists (select from prediction_key k
       where k.user_id = a.user_id and k.venue = a.venue and k.revoked_at is null) order by trades_through`,
    later(now, -restMs),
    accountsMax - rows.length,
  )
  return [...rows, ...rested]
}

async function syncAccount(deps: ExitDeps, account: PredictionAccountRow): Promise<void> {
  const { db, venue, keys, clock } = deps
  const owner = { userId: account.user_id, venue: venue.name }
  const credentials = await keys.of(owner.userId)
  if (!credentials) return setNext(deps, account, null)
  const now = clock.now()
  const orders = await openOrderRows(db, owner)
  const isOpen = await readVenue(deps, { account, orders, credentials, now })
  const exits = await advanceExits(deps, { ...owner, wallet: walletOfRow(account), now })
  const isIdle = !isOpen && exits === 0
  if (isIdle && (await isSuspended(db, owner.userId))) await revokeKey(deps, owner.userId, credentials)
  await setNext(deps, account, isIdle ? null : later(clock.now(), againMs))
}

/** Ends a suspended user's key at the venue, and then here. Orders and exits that are open need it until they end. */
async function revokeKey(
  { venue, keys, transact }: ExitDeps,
  userId: string,
  credentials: VenueCredentials,
): Promise<void> {
  await venue.deleteKey(credentials).catch((fault: unknown) => {
    // The venue refuses a key that it has deleted already.
    if (!(fault instanceof Fault) || fault.retryable) throw fault
  })
  await transact((tx) => keys.revoke(tx, userId))
}

/** A time that a task has stored meanwhile stays. */
async function setNext(
  { db, venue }: ExitDeps,
  { user_id, sync_at }: PredictionAccountRow,
  next: Date | null,
) {
  await query(
    db,
    `update prediction_account set sync_at = case when sync_at = $3 then $4 else least(sync_at, $4) end
     where user_id = $1 and venue = $2`,
    [user_id, venue.name, sync_at, next],
  )
}

type Reading = {
  account: PredictionAccountRow
  orders: readonly PredictionOrderRow[]
  credentials: VenueCredentials
  now: Date
}

/** Stores what the venue lists of trades and orders; returns whether something is still open. */
async function readVenue(deps: ExitDeps, { account, orders, credentials, now }: Reading): Promise<boolean> {
  const { venue, transact, events } = deps
  const since = later(account.trades_through ?? account.created_at, -overlapMs)
  const resting = orders.filter(({ rests }) => rests)
  const [trades, listed] = await Promise.all([
    newTrades(deps, account, await venue.trades({ since }, walletOfRow(account), credentials)),
    resting.length > 0 ? venue.openOrders({}, credentials) : [],
  ])
  const open = new Set(listed.map(({ orderId }) => orderId.toLowerCase()))
  const gone = resting.filter(({ order_id }) => !open.has(order_id.toLowerCase()))
  const ends = await Promise.all(gone.map((row) => endOf(deps, { row, credentials, now })))
  const unsettled = trades.filter(({ settlement }) => settlement !== 'confirmed' && settlement !== 'failed')
  const oldest = unsettled.reduce((at, { matchedAt }) => (matchedAt < at ? matchedAt : at), now)
  await transact(async (tx) => {
    const changes = await recordKnown(deps, tx, account, trades)
    const wiped: PredictionOrderRow[] = []
    for (const [index, row] of gone.entries()) {
      const end = ends[index]
      if (!end) continue
      const isChanged = await changeOrder(tx, { orderId: row.order_id, ...end, now })
      if (isChanged && (end.status === 'cancelled' || end.status === 'resolved')) wiped.push(row)
    }
    for (const order of listed)
      await changeOrder(tx, { orderId: order.orderId, status: 'live', matchedUnits: order.matchedUnits, now })
    await query(tx, 'update prediction_account set trades_through = $3 where user_id = $1 and venue = $2', [
      account.user_id,
      venue.name,
      oldest,
    ])
    const all = [...fillEvents(changes, null), ...wiped.map((row) => cancelledByVenue(row, now))]
    if (all.length > 0) await events.add(tx, account.user_id, all)
  })
  return orders.length > 0 || unsettled.length > 0
}

/** The trades whose state can still change here, with what the chain shows of them. */
async function newTrades(
  deps: ExitDeps,
  { user_id: userId, wallet_address: wallet }: PredictionAccountRow,
  trades: readonly OutcomeTrade[],
): Promise<MeasuredTrade[]> {
  const owner = { userId, venue: deps.venue.name }
  const final = await finalTradeIds(
    deps.db,
    owner,
    trades.map(({ tradeId }) => tradeId),
  )
  const isOpen = ({ tradeId, orderId }: OutcomeTrade) => !final.has(`${tradeId} ${orderId}`)
  // All trades are measured, because those of one transaction can be distinguished only together.
  return trades.some(isOpen) ? (await measureTrades(deps, wallet, trades)).filter(isOpen) : []
}

type Gone = { row: PredictionOrderRow; credentials: VenueCredentials; now: Date }

/** How an order ended that is not listed any more; undefined while the venue's list may lag. */
async function endOf({ venue }: ExitDeps, { row, credentials, now }: Gone) {
  const order = await venue.order(row.order_id, credentials)
  const matchedUnits = order?.matchedUnits
  const matched = matchedUnits === undefined ? {} : { matchedUnits }
  switch (order?.status) {
    case 'matched':
      return { status: 'matched' as const, ...matched }
    case 'canceled': {
      const isExpired = row.expires_at !== null && row.expires_at <= now
      return { status: isExpired ? ('expired' as const) : ('cancelled' as const), ...matched }
    }
    case 'canceled_market_resolved':
      return { status: 'resolved' as const, ...matched }
    case 'invalid':
      return { status: 'unmatched' as const }
    case undefined:
      return now.getTime() - row.at.getTime() > wipedAfterMs ? { status: 'cancelled' as const } : undefined
    default:
      return undefined
  }
}

async function recordKnown(
  deps: ExitDeps,
  tx: Parameters<typeof recordTrades>[0],
  account: PredictionAccountRow,
  trades: readonly MeasuredTrade[],
): Promise<FillChange[]> {
  const named = await Promise.all(
    trades.map(async (trade) => {
      const row = await orderRow(tx, trade.orderId)
      // An order of another client has no row; its protocol follows from the outcome.
      const facts = row ?? { title: '', protocol: deps.venue.protocolOf(trade.outcomeId) ?? 'v1', fee: null }
      return namedTrade(trade, facts, deps.takerFeeUnits)
    }),
  )
  return recordTrades(tx, { userId: account.user_id, venue: deps.venue.name }, named)
}
