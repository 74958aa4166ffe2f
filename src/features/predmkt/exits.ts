import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type { Admission, TaskKind } from '#kernel/task/task.ts'
import { builder, fetchOne, type Queryable } from '#store/query.ts'
import type { PredictionExitRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { sharesOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import type { ExitTaskData } from './exit-task.ts'
import { orderFacts, orderMs } from './order-admission.ts'
import type { StoredTerms } from './order-task.ts'
import { changeExit, endPair, openExits } from './store/exit-store.ts'
import { fillsOfOrder } from './store/fill-store.ts'
import { isEndStatus, orderRow, soldOfEntry } from './store/order-store.ts'

/**
 * Take-profit and stop-loss. A take-profit rests in the book for settled shares; a stop-loss, and a take-profit below
 * the market's smallest order, are watched by the bid of the book. The first that sells ends the other.
 */

export type ExitDeps = PredmktDeps & { exitTasks: TaskKind }
type Watched = { userId: string; venue: string; wallet: VenueWallet; now: Date }

const dollar = 1_000_000n
/** How long an exit waits whose sale has failed. */
const retryMs = 15_000
/** The venue sells nothing smaller, so that a rest below is none. */
const leastUnits = 10_000n
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

/** Whether the other exit of the purchase sells now: it needs the shares, and has cancelled this one's order. */
const isPairSelling = ({ exit, exits }: Advancing): boolean =>
  exits.some(
    ({ id, entry_task_id, state }) =>
      id !== exit.id && entry_task_id === exit.entry_task_id && state === 'executing',
  )

async function advanceExit(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { state, error, updated_at: updatedAt } = advancing.exit
  if (state !== 'executing' && isPairSelling(advancing)) return
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

type Left = { market: PredictionMarket; settledUnits: bigint; lockedUnits?: bigint }

/** Shares of the purchase that are still there; `lockedUnits` are those that the order of the other exit holds. */
async function leftUnits(
  deps: ExitDeps,
  { exit, wallet, userId }: Advancing,
  { market, settledUnits, lockedUnits = 0n }: Left,
): Promise<bigint> {
  const { freeUnits } = await sharesOf(deps, { userId, wallet, market, outcomeId: exit.outcome_id })
  const heldUnits = freeUnits + lockedUnits
  const ownUnits = settledUnits - (await soldOfEntry(deps.db, exit.entry_order_id))
  return heldUnits < ownUnits ? heldUnits : ownUnits
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
  const sizeUnits = await leftUnits(deps, advancing, { market, settledUnits: entry.settledUnits })
  if (sizeUnits < leastUnits) return
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

const endOfMarket = async ({ db }: ExitDeps, { exit, now }: Advancing): Promise<void> => {
  const { id, state } = exit
  await changeExit(db, { id, from: state, state: 'cancelled', now, error: 'The market is closed' })
}

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
  const data: ExitTaskData = {
    wallet,
    terms,
    leg,
    entry_order_id,
    cost_units: '0',
    counted_units: '0',
    replaces,
  }
  const action = { userId, ...orderFacts(deps, 0n), principal: 'gateway' as const }
  const spend = { action, grant: exitGrant(chain.row.id), check: () => policy.check(action) }
  const admission: Admission = { data, first: 'release', deadlineMs: orderMs, spend }
  return enqueue(tx, { userId, kind: exitTasks, input: {}, admission })
}

/** Moves an exit in the transaction of its task, which is rolled back if another instance has moved it meanwhile. */
async function moveExit(...moved: Parameters<typeof changeExit>): Promise<void> {
  if (!(await changeExit(...moved))) throw new Fault('conflict', 'The exit has changed meanwhile')
}

async function followResting({ db }: ExitDeps, { exit, now }: Advancing): Promise<void> {
  const row = exit.order_id === null ? undefined : await orderRow(db, exit.order_id)
  if (!row || row.ended_at === null) return
  if (row.status === 'matched') {
    await changeExit(db, { id: exit.id, from: 'resting', state: 'filled', now })
    return endPair(db, exit, now)
  }
  // The venue has wiped the order, so it is placed anew; a cancel of the user has ended the exit itself.
  const state = row.status === 'resolved' ? 'cancelled' : 'waiting'
  await changeExit(db, { id: exit.id, from: 'resting', state, now })
}

async function watchBid(deps: ExitDeps, advancing: Advancing): Promise<void> {
  const { exit, exits, wallet, userId, now } = advancing
  const trigger = exit.trigger_price
  if (trigger === null) return
  const book = await deps.venue.book(exit.outcome_id).catch((fault: unknown) => {
    if (fault instanceof Fault && !fault.retryable) return undefined
    throw fault
  })
  const bid = book?.bids[0]?.priceMicros
  if (bid === undefined) {
    const closed = await deps.venue.market({ outcomeId: exit.outcome_id })
    return closed && isOver(closed) ? endOfMarket(deps, advancing) : undefined
  }
  const isReached = exit.leg === 'tp' ? bid >= trigger : bid <= trigger
  if (!isReached) return
  const [entry, market] = await Promise.all([
    entryOf(deps.db, exit.entry_order_id),
    deps.venue.market({ outcomeId: exit.outcome_id }),
  ])
  if (!entry || !market) return
  const pair = exits.find((each) => each.entry_task_id === exit.entry_task_id && each.id !== exit.id)
  const resting = pair?.state === 'resting' ? pair : undefined
  const order = resting?.order_id ? await orderRow(deps.db, resting.order_id) : undefined
  const lockedUnits = order && order.ended_at === null ? BigInt(order.size) - BigInt(order.matched) : 0n
  const { settledUnits } = entry
  const sizeUnits = await leftUnits(deps, advancing, { market, settledUnits, lockedUnits })
  if (sizeUnits < leastUnits) return
  const priceMicros = exit.leg === 'tp' ? trigger : null
  const terms = sale(exit.outcome_id, { timeInForce: 'fak', priceMicros, sizeUnits })
  await deps.transact(async (tx) => {
    const taskId = await start(deps, tx, {
      userId,
      exit,
      wallet,
      terms,
      replaces: resting?.order_id ?? null,
    })
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
  if (task.outcome === 'executed') {
    await changeExit(db, { id: exit.id, from, state: 'filled', order_id: result.order_id ?? null, now })
    return endPair(db, exit, now)
  }
  // Not all was sold, so the exit is armed again for the rest.
  const error = String((task.error as { message?: string } | null)?.message ?? 'A part was sold')
  await changeExit(db, { id: exit.id, from, state: exit.leg === 'sl' ? 'watched' : 'waiting', error, now })
}
