import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type { Admission, TaskKind } from '#kernel/task/task.ts'
import { builder, fetchOne, type Queryable } from '#store/query.ts'
import type { PredictionExitRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { credentialsOf } from './account-checks.ts'
import { sharesOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { exitCancelled } from './events.ts'
import type { ExitTaskData } from './exit-task.ts'
import { orderFacts, orderMs } from './order-admission.ts'
import type { StoredTerms } from './order-task.ts'
import { changeExit, endPair, openExits } from './store/exit-store.ts'
import { fillsOfOrder } from './store/fill-store.ts'
import { isEndStatus, leastUnits, orderRow, soldOfEntry } from './store/order-store.ts'

/**
 * Take-profit and stop-loss. A take-profit rests in the book for settled shares; a stop-loss, and a take-profit below
 * the market's smallest order, are watched by the bid of the book. The first that sells ends the other.
 */

export type ExitDeps = PredmktDeps & { exitTasks: TaskKind }
type Watched = { userId: string; venue: string; wallet: VenueWallet; now: Date }

const dollar = 1_000_000n
/** How long an exit waits whose sale has failed, or whose shares were not there to sell. */
const retryMs = 15_000
/** How often the shares of an exit are read that waits for its price. */
const sharesMs = 15_000
/** The error of an exit while its shares are not in the wallet, and once it has ended for that. */
const goneText = 'The shares of the purchase are not in the wallet any more'
/** Percentages have four decimals: one percent is ten thousand. */
const wholePercentage = 1_000_000n

export async function advanceExits(deps: ExitDeps, watched: Watched): Promise<number> {
  const exits = await openExits(deps.db, watched)
  for (const exit of exits)
    await advanceExit(deps, { ...watched, exit, exits }).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      deps.log.debug({ error, exit: exit.id }, 'exit not advanced; the next round tries again')
    })
  return exits.length
}

type Advancing = Watched & { exit: PredictionExitRow; exits: readonly PredictionExitRow[] }

/** The other exit of the purchase, while it is open. */
const pairOf = ({ exit, exits }: Advancing): PredictionExitRow | undefined =>
  exits.find(({ id, entry_task_id }) => id !== exit.id && entry_task_id === exit.entry_task_id)

async function advanceExit(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { state, error, updated_at: updatedAt } = advancing.exit
  // The other exit needs the shares while it sells, and has cancelled the order of this one.
  if (state !== 'executing' && pairOf(advancing)?.state === 'executing') return
  if (state !== 'executing' && error !== null && advancing.now < later(updatedAt, retryMs)) return
  switch (state) {
    case 'waiting':
      return activate(deps, advancing)
    case 'resting':
      return followResting(deps, advancing)
    case 'watched':
      return watchBid(deps, advancing)
    default:
      return followTask(deps, advancing)
  }
}

type Entry = { row: PredictionOrderRow; settledUnits: bigint; averageMicros: bigint; isSettled: boolean }

async function entryOf(db: Queryable, orderId: string): Promise<Entry | undefined> {
  const [row, fills] = await Promise.all([orderRow(db, orderId), fillsOfOrder(db, orderId)])
  if (!row) return undefined
  const confirmed = fills.filter(({ settlement }) => settlement === 'confirmed')
  const settledUnits = confirmed.reduce((sum, { size }) => sum + BigInt(size), 0n)
  const cost = confirmed.reduce((sum, { cash, fee }) => sum + BigInt(cash) + BigInt(fee), 0n)
  return {
    row,
    settledUnits,
    averageMicros: settledUnits === 0n ? 0n : mulDiv(cost, dollar, settledUnits),
    isSettled: fills.every(({ settlement }) => settlement === 'confirmed' || settlement === 'failed'),
  }
}

type Left = {
  /** Shares of the purchase that can be sold now. */
  sizeUnits: bigint
  /** Whether the exits of the purchase have sold its shares, and all of it is settled. */
  isSold: boolean
  isSettling: boolean
  /** Whether the wallet has no shares of the outcome, neither free ones nor such that an order holds. */
  isGone: boolean
}

/** What is left of the purchase; `lockedUnits` are shares that the order of the other exit holds. */
async function leftOf(
  deps: ExitDeps,
  { exit, wallet, userId }: Advancing,
  { row: { protocol }, settledUnits }: Entry,
  lockedUnits = 0n,
): Promise<Left> {
  const [{ freeUnits, lockedUnits: heldUnits }, sold] = await Promise.all([
    sharesOf(deps, { userId, wallet, market: { protocol }, outcomeId: exit.outcome_id }),
    soldOfEntry(deps.db, exit.entry_order_id),
  ])
  const sellableUnits = freeUnits + lockedUnits
  const ownUnits = settledUnits - sold.soldUnits
  return {
    sizeUnits: sellableUnits < ownUnits ? sellableUnits : ownUnits,
    isSold: ownUnits < leastUnits && !sold.isSettling,
    isSettling: sold.isSettling,
    isGone: freeUnits + heldUnits < leastUnits,
  }
}

/**
 * Ends an exit whose shares were sold, or are not in the wallet any more. A single node may lag, so that they have to
 * be missing twice. Where other orders hold them, the exit waits until these end.
 */
async function restWithoutShares(deps: ExitDeps, advancing: Advancing, left: Left): Promise<void> {
  const { exit, now } = advancing
  const { id, state } = exit
  if (left.isSold) {
    // The other exit ends with its order, and then ends this one.
    if (pairOf(advancing)?.state === 'resting') return
    await changeExit(deps.db, { id, from: state, state: 'filled', now })
    return endPair(deps.db, exit, now)
  }
  const isGone = left.isGone && !left.isSettling
  if (isGone && exit.error === goneText) return endExit(deps, advancing, goneText)
  const error = isGone ? goneText : 'Other orders hold the shares of the purchase'
  await changeExit(deps.db, { id, from: state, state, error, now })
}

/** Cancels the order of an exit whose shares are not in the wallet any more: a match of it would fail. */
async function watchResting(deps: ExitDeps, advancing: Advancing, orderId: string): Promise<void> {
  const { exit, userId, now } = advancing
  if (now < later(exit.updated_at, sharesMs)) return
  const entry = await entryOf(deps.db, exit.entry_order_id)
  if (!entry) return
  const { isGone, isSettling } = await leftOf(deps, advancing, entry)
  if (isGone && !isSettling && exit.error === goneText)
    await deps.venue.cancelOrders([orderId], await credentialsOf(deps, userId))
  const error = isGone && !isSettling ? { error: goneText } : {}
  await changeExit(deps.db, { id: exit.id, from: 'resting', state: 'resting', now, ...error })
}

/** Ends an exit that sells nothing any more, and says so. */
async function endExit(deps: ExitDeps, { exit, userId, now }: Advancing, reason: string): Promise<void> {
  const { transact, events } = deps
  const isEnded = await transact(async (tx) => {
    const change = { id: exit.id, from: exit.state, state: 'cancelled' as const, error: reason, now }
    if (!(await changeExit(tx, change))) return false
    await events.add(tx, userId, [exitCancelled(exit, reason, now)])
    return true
  })
  if (isEnded) events.notify(userId)
}

/** Arms an exit once its purchase has ended and every share of it is settled. */
async function activate(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { db, venue, transact } = deps
  const { exit, wallet, now, userId } = advancing
  const entry = await entryOf(db, exit.entry_order_id)
  if (!entry || !isEndStatus(entry.row.status) || !entry.isSettled) return
  const from = 'waiting' as const
  if (entry.settledUnits === 0n)
    return void (await changeExit(db, { id: exit.id, from, state: 'cancelled', now }))
  const market = await venue.market({ outcomeId: exit.outcome_id })
  if (!market) return
  if (isOver(market)) return endOfMarket(deps, advancing)
  const trigger = exit.trigger_price ?? triggerOf(exit, entry.averageMicros, market)
  const pair = await pairOrder(deps, advancing)
  const left = await leftOf(deps, advancing, entry, pair.lockedUnits)
  const { sizeUnits } = left
  if (sizeUnits < leastUnits) return restWithoutShares(deps, advancing, left)
  const isWatched = exit.leg === 'sl' || sizeUnits < market.minSizeUnits
  if (isWatched)
    return void (await changeExit(db, { id: exit.id, from, state: 'watched', trigger_price: trigger, now }))
  const terms = sale(exit.outcome_id, {
    timeInForce: 'gtc',
    priceMicros: trigger,
    sizeUnits,
  })
  await transact(async (tx) => {
    const taskId = await start(deps, tx, { userId, exit, wallet, terms, replaces: null })
    await moveExit(tx, {
      id: exit.id,
      from,
      state: 'executing',
      trigger_price: trigger,
      exit_task_id: taskId,
      now,
    })
  })
}

const isOver = ({ isClosed, payoutMicros }: PredictionMarket): boolean => isClosed || payoutMicros !== null

const endOfMarket = (deps: ExitDeps, advancing: Advancing): Promise<void> =>
  endExit(deps, advancing, 'The market is closed')

const triggerOf = (
  exit: PredictionExitRow,
  averageMicros: bigint,
  { tickMicros }: PredictionMarket,
): bigint => {
  const wanted = mulDiv(
    averageMicros,
    wholePercentage + BigInt(exit.trigger_percentage ?? 0),
    wholePercentage,
    'up',
  )
  const onTick = ((wanted + tickMicros - 1n) / tickMicros) * tickMicros
  return onTick > dollar - tickMicros ? dollar - tickMicros : onTick
}

type Sale = { timeInForce: 'gtc' | 'fak'; priceMicros: bigint | null; sizeUnits: bigint }
const sale = (outcomeId: string, { timeInForce, priceMicros, sizeUnits }: Sale): StoredTerms => ({
  outcomeId,
  side: 'sell',
  timeInForce,
  postOnly: false,
  expiresAt: null,
  priceMicros: priceMicros === null ? null : String(priceMicros),
  sizeUnits: String(sizeUnits),
  allInUnits: null,
  maxFeeUnits: null,
})

type Started = Pick<ExitTaskData, 'wallet' | 'terms' | 'replaces'> & {
  userId: string
  exit: PredictionExitRow
}

async function start(
  deps: ExitDeps,
  tx: Parameters<PredmktDeps['enqueue']>[0],
  { userId, exit, wallet, terms, replaces = null }: Started,
): Promise<string> {
  const { enqueue, exitTasks, policy, chain } = deps
  const { leg, entry_order_id } = exit
  const data: ExitTaskData = { wallet, terms, leg, entry_order_id, cost_units: '0', replaces }
  const action = { userId, ...orderFacts(deps, { side: 'sell' }, 0n), principal: 'gateway' as const }
  const spend = { action, grant: exitGrant(chain.row.id), check: () => policy.check(action) }
  const admission: Admission = { data, first: 'release', deadlineMs: orderMs, spend }
  return enqueue(tx, { userId, kind: exitTasks, input: {}, admission })
}

/** Moves an exit in the transaction of its task, which is rolled back if another instance has moved it meanwhile. */
async function moveExit(...moved: Parameters<typeof changeExit>): Promise<void> {
  if (!(await changeExit(...moved))) throw new Fault('conflict', 'The exit has changed meanwhile')
}

async function followResting(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { db } = deps
  const { exit, now } = advancing
  const row = exit.order_id === null ? undefined : await orderRow(db, exit.order_id)
  if (!row) return
  if (row.ended_at === null) return watchResting(deps, advancing, row.order_id)
  const from = 'resting' as const
  if (row.status === 'resolved') return endOfMarket(deps, advancing)
  // The venue has wiped the order, so it is placed anew; a cancel of the user has ended the exit itself.
  if (row.status !== 'matched')
    return void (await changeExit(db, { id: exit.id, from, state: 'waiting', now }))
  const fills = await fillsOfOrder(db, row.order_id)
  const unitsOf = (state: string) =>
    fills.reduce((sum, { settlement, size }) => (settlement === state ? sum + BigInt(size) : sum), 0n)
  const [confirmed, failed] = [unitsOf('confirmed'), unitsOf('failed')]
  if (confirmed + failed < BigInt(row.matched)) return
  if (failed === 0n) {
    await changeExit(db, { id: exit.id, from, state: 'filled', now })
    return endPair(db, exit, now)
  }
  await changeExit(db, { id: exit.id, from, state: 'waiting', now, error: 'The settlement of a sale failed' })
}

/** The resting order of the purchase's other exit, whose shares a sale needs. */
async function pairOrder({ db }: ExitDeps, advancing: Advancing) {
  const pair = pairOf(advancing)
  const orderId = pair?.state === 'resting' ? pair.order_id : null
  const order = orderId === null ? undefined : await orderRow(db, orderId)
  const lockedUnits = order && order.ended_at === null ? BigInt(order.size) - BigInt(order.matched) : 0n
  return { orderId, lockedUnits }
}

async function watchBid(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { exit, wallet, userId, now } = advancing
  const trigger = exit.trigger_price
  if (trigger === null) return
  const book = await deps.venue.book(exit.outcome_id).catch((fault: unknown) => {
    if (fault instanceof Fault && !fault.retryable) return undefined
    throw fault
  })
  const bid = book?.bids[0]?.priceMicros
  if (bid === undefined) {
    const closed = await deps.venue.market({ outcomeId: exit.outcome_id })
    if (closed && isOver(closed)) return endOfMarket(deps, advancing)
  }
  const isReached = bid !== undefined && (exit.leg === 'tp' ? bid >= trigger : bid <= trigger)
  const isDue = now >= later(exit.updated_at, sharesMs)
  if (!isReached && !isDue) return
  const [entry, pair] = await Promise.all([entryOf(deps.db, exit.entry_order_id), pairOrder(deps, advancing)])
  if (!entry) return
  const left = await leftOf(deps, advancing, entry, pair.lockedUnits)
  const { sizeUnits } = left
  if (sizeUnits < leastUnits) return restWithoutShares(deps, advancing, left)
  if (!isReached)
    return void (await changeExit(deps.db, { id: exit.id, from: 'watched', state: 'watched', now }))
  const priceMicros = exit.leg === 'tp' ? trigger : null
  const terms = sale(exit.outcome_id, { timeInForce: 'fak', priceMicros, sizeUnits })
  await deps.transact(async (tx) => {
    const taskId = await start(deps, tx, { userId, exit, wallet, terms, replaces: pair.orderId })
    await moveExit(tx, { id: exit.id, from: 'watched', state: 'executing', exit_task_id: taskId, now })
  })
}

async function followTask({ db }: ExitDeps, { exit, now }: Advancing): Promise<void> {
  if (exit.exit_task_id === null) return
  const task = await fetchOne(
    db,
    builder
      .selectFrom('task')
      .select(['status', 'outcome', 'result', 'error'])
      .where('id', '=', exit.exit_task_id),
  )
  const from = 'executing' as const
  if (!task)
    return void (await changeExit(db, { id: exit.id, from, state: 'failed', error: 'Its task is gone', now }))
  if (task.status === 'pending' || task.status === 'running') return
  const result = (task.result ?? {}) as { order_id?: string; order_status?: string }
  if (task.status === 'completed' && result.order_status === 'live')
    return void (await changeExit(db, {
      id: exit.id,
      from,
      state: 'resting',
      order_id: result.order_id ?? null,
      now,
    }))
  const order = result.order_id === undefined ? undefined : await orderRow(db, result.order_id)
  const isWhole = order !== undefined && BigInt(order.matched) >= BigInt(order.size)
  if (task.outcome === 'executed' && isWhole) {
    await changeExit(db, { id: exit.id, from, state: 'filled', order_id: result.order_id ?? null, now })
    return endPair(db, exit, now)
  }
  // Not all was sold, so the exit is armed again for the rest.
  const error = String((task.error as { message?: string } | null)?.message ?? 'A part was sold')
  await changeExit(db, { id: exit.id, from, state: exit.leg === 'sl' ? 'watched' : 'waiting', error, now })
}
