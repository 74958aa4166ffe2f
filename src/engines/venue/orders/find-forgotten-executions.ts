import { setTimeout as pause } from 'node:timers/promises'
import type { VenueAccount } from '#engines/venue/records/account-store.ts'
import { type ExitLeg, sumFills } from '#engines/venue/records/bracket.ts'
import { compareBalances, observedBalances } from '#engines/venue/records/expected-balances.ts'
import type { MarketKind } from '#engines/venue/records/markets.ts'
import { ownersOfOrders, venueName } from '#engines/venue/records/order-store.ts'
import { readAllPages } from '#engines/venue/records/read-all-pages.ts'
import { expectedAt, signatureOf } from '#engines/venue/records/record-store.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { cloidExecutionId, firedExecutionId, withdrawalExecutionId } from '#kernel/task/execution-id.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Fill, Hyperliquid, LedgerUpdate, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import { deriveCloid, orderKeys } from './action-outcome.ts'
import { clockToleranceMs } from './order-lookup.ts'

/**
 * Finds what accounts did at the venue without the knowledge of the database: orders that filled or rest under a
 * client order id that no task noted, and withdrawals without a signature here. An order without a client order
 * id is not the gateway's.
 */

export type ExecutedOrder = {
  type: 'order'
  cloid: string
  order_id: string
  market: MarketKind
  symbol: string
  is_buy: boolean
  size: string
  price: string
  trigger_price: string | null
  reduce_only: boolean
  leg: 'entry' | 'close' | ExitLeg
  filled_size: string
  average_price: string | null
  status: string
  /** The gateway's own trigger order that fired; null if there was none, or if it was armed after the execution. */
  trigger_order_id: string | null
  /** The execution id of a task in the database that places this order; null if the database lost the request. */
  task_execution_id: string | null
}
export type FoundWithdrawal = {
  type: 'withdrawal'
  account: string
  nonce: number
  amount_usd: string
  fee_usd: string
}
export type FoundAtVenue = {
  executionId: string
  userId: string
  txHash: string | null
  executedAt: Date
  venue: ExecutedOrder | FoundWithdrawal
}

type FindDeps = {
  db: Queryable
  venue: Pick<
    Hyperliquid,
    'account' | 'spotHoldings' | 'openOrders' | 'order' | 'fillsSince' | 'ledgerSince' | 'spots'
  >
  /** The kind of the orders that the gateway holds and places at the venue when they fire. */
  triggerKind: string
  /** Stores what was found of one account; called once for each account. */
  store: (found: readonly FoundAtVenue[]) => Promise<void>
}
/**
 * `done` has the accounts that were read, so that an aborted search continues with the others. `unlisted` has the
 * accounts whose activity since the point the venue no longer lists completely.
 */
type SearchRange = { point: Date | null; signal: AbortSignal; done: Set<string>; unlisted: Set<string> }

/** Searches one account after another at the pace of the request budget. Throws if the venue does not answer. */
export async function findAtVenue(
  deps: FindDeps,
  { point, signal, done, unlisted }: SearchRange,
): Promise<void> {
  const accounts = await query<VenueAccount>(
    deps.db,
    // An account without a baseline has never traded; what a new one holds becomes its opening balance.
    `select * from venue_account where venue = $1 and state <> 'new' order by active_at desc`,
    [venueName],
  )
  for (const account of accounts) {
    if (done.has(account.account)) continue
    const found = await whenBudgetAllows(() => findOfAccount(deps, account, point), signal)
    await deps.store(found.executions)
    if (!found.isWhole) unlisted.add(account.account)
    done.add(account.account)
  }
}

async function whenBudgetAllows<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted()
    try {
      return await read()
    } catch (error) {
      const seconds = error instanceof Fault && error.extras.budget ? Number(error.extras.retry_after) : 0
      if (!(seconds > 0)) throw error
      await pause(seconds * 1_000, undefined, { signal })
    }
  }
}

/** The most fills of an account that the venue lists; older ones are missing. */
const listedFillsMax = 10_000
type FoundOfAccount = { executions: FoundAtVenue[]; isWhole: boolean }

async function findOfAccount(
  deps: FindDeps,
  account: VenueAccount,
  point: Date | null,
): Promise<FoundOfAccount> {
  const { venue } = deps
  const { account: address } = account
  const balances = await compareRecord(deps, account)
  if (balances === 'empty') return { executions: [], isWhole: true }
  const knownMs = point === null ? Number(account.reconciled_through_ms) : point.getTime()
  const sinceMs = Math.max(knownMs - clockToleranceMs, Number(account.baseline_at_ms), 0)
  // A fill or withdrawal changes a balance, if only by its fee; the lists cost ten times as much as the balances.
  const isSame = balances === 'same'
  const fills = isSame ? [] : await readAllPages((from) => venue.fillsSince(address, from), sinceMs, 'fills')
  const updates = isSame
    ? []
    : await readAllPages((from) => venue.ledgerSince(address, from), sinceMs, 'updates')
  const open = (await venue.openOrders(address)).filter(({ atMs }) => atMs > sinceMs)
  return {
    executions: [
      ...(await findOrders(deps, account, { fills, open })),
      ...(await findWithdrawals(deps, account, updates)),
    ],
    isWhole: fills.length < listedFillsMax,
  }
}

/** Compares an account with its record; `empty` means that both hold nothing, so the account did nothing. */
async function compareRecord(
  { db, venue }: FindDeps,
  account: VenueAccount,
): Promise<'empty' | 'same' | 'other'> {
  const [state, spot] = await Promise.all([
    venue.account(account.account),
    venue.spotHoldings(account.account),
  ])
  if (!account.checks_balances || state.unread.length + spot.unread.length > 0) return 'other'
  const observed = observedBalances(state, spot.balances, { balances: true })
  const { expected, entries } = await expectedAt(db, account, state.timeMs)
  if (compareBalances(expected, observed, entries).length > 0) return 'other'
  return compareBalances(new Map(), observed, 0).length === 0 ? 'empty' : 'same'
}

type Orders = { fills: readonly Fill[]; open: readonly OpenOrder[] }

async function findOrders(
  deps: FindDeps,
  { user_id: userId, account }: VenueAccount,
  { fills, open }: Orders,
): Promise<FoundAtVenue[]> {
  const { db, venue } = deps
  const ids = new Map<number, string | null>()
  for (const { orderId, cloid } of [...open, ...fills.filter(({ cause }) => cause === 'order')])
    ids.set(orderId, cloid ?? ids.get(orderId) ?? null)
  // A fill may lack the client order id of its order.
  for (const [orderId, cloid] of ids)
    if (cloid === null) ids.set(orderId, (await venue.order(account, orderId))?.order.cloid ?? null)
  const cloids = [...ids.values()].filter((cloid) => cloid !== null)
  const noted = await ownersOfOrders(db, userId, cloids)
  const unknown = [...ids].flatMap(([orderId, cloid]) =>
    cloid === null || noted.has(cloid) ? [] : [{ orderId, cloid }],
  )
  if (unknown.length === 0) return []
  const owners = await expectedOwners(deps, userId)
  const { markets } = await venue.spots()
  const found: FoundAtVenue[] = []
  for (const { orderId, cloid } of unknown) {
    const known = await venue.order(account, cloid)
    const own = fills.filter((fill) => fill.orderId === orderId)
    const order = known?.order ?? open.find((each) => each.orderId === orderId)
    const { symbol, isBuy, price, atMs } = order ?? own[0]!
    const { trigger = null, reduceOnly = false } = order ?? {}
    const { size: filledSize, averagePrice } = sumFills(own)
    const spot = markets.find(({ coin }) => coin === symbol)
    found.push({
      executionId: cloidExecutionId(cloid),
      userId,
      txHash: null,
      executedAt: new Date(Math.max(atMs, ...own.map((fill) => fill.atMs))),
      venue: {
        type: 'order',
        cloid,
        order_id: String(orderId),
        market: spot ? 'spot' : 'perp',
        symbol: spot?.symbol ?? symbol,
        is_buy: isBuy,
        size: order?.origSize ?? filledSize,
        price,
        trigger_price: trigger?.price ?? null,
        reduce_only: reduceOnly,
        leg: trigger?.leg ?? (reduceOnly ? 'close' : 'entry'),
        filled_size: filledSize,
        average_price: averagePrice,
        status: known?.status ?? (own.length > 0 ? 'filled' : 'open'),
        ...(owners.get(cloid) ?? noOwner),
      },
    })
  }
  return found
}

type OwnerFields = Pick<ExecutedOrder, 'trigger_order_id' | 'task_execution_id'>
const noOwner: OwnerFields = { trigger_order_id: null, task_execution_id: null }

/** The most attempts of an order that are expected: more than an exit that never lands has. */
const attemptsMax = 200

/**
 * Returns, by client order id, who may have placed an order that the database does not know: a running task that places
 * it next, or a gateway trigger whose later attempts may be lost.
 */
async function expectedOwners(
  { db, triggerKind }: FindDeps,
  userId: string,
): Promise<Map<string, OwnerFields>> {
  const [tasks, orders] = await Promise.all([
    query<{ execution_id: string }>(
      db,
      `select coalesce(t.execution_id, t.id) as execution_id from task_queue q join task t on t.id = q.task_id
         where q.user_id = $1`,
      [userId],
    ),
    query<{ id: string; execution_id: string | null; attempts: number }>(
      db,
      `select id, execution_id, attempts from trigger_order
         where user_id = $1 and kind = $2 and (status in ('waiting', 'armed') or (status = 'fired' and task_end is null))`,
      [userId, triggerKind],
    ),
  ])
  const owners = new Map<string, OwnerFields>()
  for (const { execution_id: id } of tasks)
    for (const key of orderKeys) owners.set(deriveCloid(id, key), { ...noOwner, task_execution_id: id })
  for (const order of orders)
    for (let attempts = order.attempts + 1; attempts <= order.attempts + attemptsMax; attempts += 1)
      owners.set(deriveCloid(firedExecutionId({ ...order, attempts }, { perAttempt: true }), 'entry'), {
        ...noOwner,
        trigger_order_id: order.id,
      })
  return owners
}

async function findWithdrawals(
  { db }: FindDeps,
  { user_id: userId, account }: VenueAccount,
  updates: readonly LedgerUpdate[],
): Promise<FoundAtVenue[]> {
  const found: FoundAtVenue[] = []
  for (const { type, nonce, amountUsd, feeUsd, hash, atMs } of updates) {
    if (type !== 'withdraw' || nonce === null || amountUsd === null) continue
    if (await signatureOf(db, account, nonce)) continue
    found.push({
      executionId: withdrawalExecutionId(account, nonce),
      userId,
      txHash: hash,
      executedAt: new Date(atMs),
      venue: { type: 'withdrawal', account, nonce, amount_usd: amountUsd, fee_usd: feeUsd ?? '0' },
    })
  }
  return found
}
