import type { Engine } from '#durable/engine.ts'
import { recordFill } from '#engines/cost-basis/store.ts'
import { takeFromLot } from '#engines/trigger-orders/store.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { PaidUnits, SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import {
  defineTaskKind,
  type NewEvent,
  type StepContext,
  systemOwner,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task/task.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'
import { jsonText, query } from '#store/query.ts'
import { announcedOf } from './announced-transactions.ts'
import { type Late, lateOf, lateSentence, lateVerdict, resultAfter, totalsAfter } from './late-result.ts'
import { allOf, claimPayments, findPayments, type Payment, withPayments } from './payments.ts'
import { mayFollow } from './swap-end.ts'
import { filledOf } from './swap-fill.ts'
import { statusOf } from './track.ts'
import { worthMicros } from './verdict.ts'

/**
 * A provider can pay after its request was given up. A system task therefore keeps asking for a limited time
 * and adds such a payment to the ended swap. The money is in the wallet; the end that was announced stays.
 */

const backoff = { firstMs: 2_000, maxMs: 15 * 60_000 }
export const latePaymentMs = 14 * 24 * 3_600_000

type WatchData = { polls?: number; swap: SwapTaskData; task_id: string; user_id: string; created_at: string }
type WatchTask = TaskView<WatchData>

export type LatePaymentDeps = Pick<Engine, 'transact' | 'enqueue' | 'events'> & { clock: Clock }

const header = { kind: 'swap_late_payment', version: 1, priority: 2 } as const

/** Queues the watch for late payments, in the commit that ends the swap. */
export const createLatePaymentWatch =
  ({ enqueue }: Pick<LatePaymentDeps, 'enqueue'>): SwapDeps['watchLatePayment'] =>
  async (tx, { id, userId, createdAt, data }) => {
    const swap = JSON.parse(jsonText(data)) as JsonObject
    const watch = { swap, task_id: id, user_id: userId, created_at: createdAt.toISOString() }
    const admission = { data: watch, first: 'watch', deadlineMs: latePaymentMs }
    await enqueue(tx, { userId: systemOwner, kind: { ...header, steps: {} }, input: {}, admission })
  }

export const createLatePaymentKind = (deps: SwapDeps, engine: LatePaymentDeps): TaskKind =>
  defineTaskKind<WatchData, 'watch'>({
    ...header,
    // The many attempts keep the watch alive through an outage of the database for hours.
    retry: { attemptsMax: 1_000, firstMs: 1_000, maxMs: backoff.maxMs },
    steps: { watch: (task, context) => watchOnce(deps, engine, task, context) },
  })

async function watchOnce(
  deps: SwapDeps,
  engine: LatePaymentDeps,
  task: WatchTask,
  { now, signal }: StepContext,
) {
  const swap = swapOf(task)
  const payments = await latePayments(deps, swap, signal)
  const booked = await book(deps, engine, { swap, payments, at: now })
  if (booked === 'all') return ended(payments)
  if (now >= task.deadline) return ended([])
  // After one part of a payment the rest comes soon or not at all, so the polls become frequent again.
  const polled = booked === 'some' ? { ...task, data: { ...task.data, polls: 0 } } : task
  return { ...pollAgain(polled, 'watch' as const, backoff), state: 'waiting' as const }
}

const ended = (payments: readonly Payment[]) => ({
  end: 'completed' as const,
  outcome: 'executed' as const,
  result: { tx_hash: payments[0]?.found[0]?.txHash ?? null },
})

const swapOf = ({ data, ...task }: WatchTask): SwapTask => ({
  ...task,
  id: data.task_id,
  userId: data.user_id,
  createdAt: new Date(data.created_at),
  data: data.swap,
})

/** Returns payments after the swap's end; the list is empty while the provider or a node is unavailable. */
async function latePayments(deps: SwapDeps, swap: SwapTask, signal: AbortSignal): Promise<Payment[]> {
  try {
    const status = await statusOf(deps, swap.data, signal)
    const announced = announcedOf(swap.data, status)
    if (announced.length === 0) return []
    const paid = await findPayments(deps, swap, { status, announced, claims: 'late' })
    return paid.isPending ? [] : allOf(paid)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return []
  }
}

type Booking = { swap: SwapTask; payments: readonly Payment[]; at: Date }
/** How much of the late payments was booked; after `all`, no further payment can follow. */
type Booked = 'nothing' | 'some' | 'all'

/** Counts the payments for their swap and shows them in the swap and its events, once, in one commit. */
async function book(
  deps: SwapDeps,
  { transact, events, clock }: LatePaymentDeps,
  { swap, payments, at }: Booking,
): Promise<Booked> {
  if (payments.length === 0) return 'nothing'
  const worth = new Map(
    await Promise.all(
      payments.map(async (each) => [each.place.token, await worthMicros(deps, swap.data, each)] as const),
    ),
  )
  const worthOf = ({ place }: Payment) => worth.get(place.token) ?? 0n
  const booked = await transact(async (tx): Promise<Booked> => {
    const result = await bookPayments(deps, tx, { swap, payments, at, worthOf, savedAt: clock.now() })
    if (result.events.length > 0) await events.add(tx, swap.userId, result.events)
    return result.booked
  })
  for (const { place } of payments) deps.changed(swap.userId, place.chain.id)
  events.notify(swap.userId)
  return booked
}

type Bookable = Booking & { worthOf: (payment: Payment) => bigint; savedAt: Date }

/** Adds the payments that were not counted before to the task that has ended; `events` report them. */
export async function bookPayments(
  deps: Pick<SwapDeps, 'chains'>,
  tx: Tx,
  { swap, payments, at, worthOf, savedAt }: Bookable,
): Promise<{ booked: Booked; events: NewEvent[] }> {
  const row = await endedTask(tx, swap.id)
  const fresh = row ? await claimPayments(tx, payments, at) : []
  if (!row) return { booked: 'all', events: [] }
  let shown = row
  const events: NewEvent[] = []
  for (const payment of fresh) {
    const late = lateOf(payment, worthOf(payment))
    await bookUnits(deps, tx, { swap, late, before: totalsOf(swap, shown), at })
    shown = shownWith(swap, shown, { payment, late })
    events.push(eventOf(swap, late))
  }
  if (fresh.length > 0) await saveTask(tx, swap.id, { ...shown, at: savedAt })
  if (!mayFollow(swap.data, totalsOf(swap, shown))) return { booked: 'all', events }
  return { booked: fresh.length > 0 ? 'some' : 'nothing', events }
}

type Unit = { swap: SwapTask; late: Late; before: PaidUnits; at: Date }

/** Records the cost of a fill, and returns a refunded deposit to its order so that it can be sold again. */
async function bookUnits(
  deps: Pick<SwapDeps, 'chains'>,
  tx: Tx,
  { swap, late, before, at }: Unit,
): Promise<void> {
  const beforeUnits = BigInt(before.fill)
  if (late.type === 'fill') {
    const outUnits = beforeUnits + BigInt(late.view.amount)
    await recordFill(tx, filledOf(deps, { task: swap, outUnits, beforeUnits, at }))
  }
  const orderId = orderOf(swap)
  // The end of the sale has counted the refunded units as sold, so they return to the order's lot.
  if (orderId !== null && late.isDeposit) await takeFromLot(tx, orderId, -BigInt(late.view.amount))
}

function eventOf(swap: SwapTask, late: Late): NewEvent {
  const data = { type: late.type, ...late.view, symbol: late.token.symbol, ...adviceOf(orderOf(swap), late) }
  return { type: 'swap.late_payment', taskId: swap.id, subject: { kind: 'task', id: swap.id }, data }
}

function orderOf({ data }: SwapTask): string | null {
  const { trigger_order_id: id } = data as { trigger_order_id?: Json }
  return typeof id === 'string' ? id : null
}

const notArmed = 'Its order is not armed again: leave a new one, if the token should still be sold'

/**
 * Returns advice for a refunded order. The order is not armed again, because its price was reached days ago, so its
 * owner decides.
 */
const adviceOf = (
  orderId: string | null,
  { type }: Pick<Late, 'type'>,
): { order_id?: string; next_step?: string } =>
  orderId === null ? {} : { order_id: orderId, ...(type === 'refund' && { next_step: notArmed }) }

type EndedTask = { result: JsonObject | null; error: JsonObject | null; data: Record<string, Json> }

/** Returns the ended task under a lock; undefined if the task has been deleted in the meantime. */
async function endedTask(tx: Tx, id: string): Promise<EndedTask | undefined> {
  const [row] = await query<EndedTask>(
    tx,
    'select result, error, data from task where id = $1 and completed_at is not null for update',
    [id],
  )
  return row
}

/** Returns the units that were counted so far, by the end of the swap and by the payments after it. */
function totalsOf({ data: { paid } }: SwapTask, { data }: EndedTask): PaidUnits {
  const after = data.late_payment as PaidUnits | undefined
  return after?.fill === undefined ? (paid ?? { fill: '0', back: '0' }) : after
}

function shownWith(
  swap: SwapTask,
  row: EndedTask,
  { payment, late }: { payment: Payment; late: Late },
): EndedTask {
  const totals = totalsAfter(totalsOf(swap, row), late)
  const verdict = lateVerdict(swap.data, totals, late)
  const data: SwapTaskData = { ...swap.data, ...listsOf(row.data) }
  const sentence = [lateSentence(late, verdict), adviceOf(orderOf(swap), late).next_step]
  return {
    result: resultAfter(row.result ?? {}, { late, totals, verdict, data }),
    error: row.error && {
      ...row.error,
      message: sentence.filter(Boolean).join('. '),
      ...(verdict === 'returned' && { code: 'refunded' }),
    },
    data: { ...row.data, ...(withPayments({ data }, [payment]) as JsonObject), late_payment: totals },
  }
}

type Saved = EndedTask & { at: Date }

const saveTask = (tx: Tx, id: string, { result, error, data, at }: Saved) =>
  query(
    tx,
    `update task set result = $2::jsonb, error = $3::jsonb, data = $4::jsonb, updated_at = $5,
       state = coalesce(($3::jsonb) ->> 'code', state) where id = $1`,
    [id, jsonText(result), error && jsonText(error), jsonText(data as JsonObject), at],
  )

const listsOf = ({ transactions, balance_changes }: Record<string, Json>) => ({
  ...(Array.isArray(transactions) && { transactions: transactions as JsonObject[] }),
  ...(Array.isArray(balance_changes) && { balance_changes: balance_changes as JsonObject[] }),
})
