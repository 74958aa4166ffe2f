import type { Engine } from '#durable/engine.ts'
import { recordFill } from '#engines/cost-basis/store.ts'
import { takeFromLot } from '#engines/trigger-orders/store.ts'
import { balanceChange } from '#kernel/balance-changes.ts'
import type { Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Json, JsonObject } from '#kernel/json.ts'
import { pollAgain } from '#kernel/poll-again.ts'
import type { ProviderStatus } from '#kernel/swap-provider.ts'
import {
  defineTaskKind,
  type StepContext,
  systemOwner,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task.ts'
import { jsonText, query } from '#store/query.ts'
import type { SwapDeps } from './deps.ts'
import { filledOf } from './filled.ts'
import {
  claimPayment,
  findFill,
  findOtherPayment,
  findRefund,
  type Payment,
  tokenOfPayment,
  withPayment,
} from './payments.ts'
import type { SwapTask, SwapTaskData } from './task-data.ts'
import { statusOf } from './track.ts'

/**
 * A provider can pay after its request was given up: a task of the system, which outlives restarts, asks on for a bounded
 * time, and adds the payment to the swap that has ended. The money is in the wallet; the end that was announced stays.
 */

const backoff = { firstMs: 2_000, maxMs: 15 * 60_000 }
export const latePaymentMs = 14 * 24 * 3_600_000

/** The swap that ended, as it was then. */
type WatchData = { polls?: number; swap: SwapTaskData; task_id: string; user_id: string; created_at: string }
type WatchTask = TaskView<WatchData>

export type LatePaymentDeps = Pick<Engine, 'transact' | 'enqueue' | 'events'> & { clock: Clock }

const header = { kind: 'swap_late_payment', version: 1, priority: 2 } as const

/** In the commit that ends the swap. */
export const createLatePaymentWatch =
  ({ enqueue }: Pick<LatePaymentDeps, 'enqueue'>): SwapDeps['watchLatePayment'] =>
  async (tx, { id, userId, createdAt, data }) => {
    const swap = JSON.parse(jsonText(data)) as JsonObject
    const watch = { swap, task_id: id, user_id: userId, created_at: createdAt.toISOString() }
    const admission = { data: watch, first: 'watch', deadlineMs: latePaymentMs }
    await enqueue(tx, { userId: systemOwner, kind: { ...header, steps: {} }, input: {}, admission })
  }

export const latePaymentKind = (deps: SwapDeps, engine: LatePaymentDeps): TaskKind =>
  defineTaskKind<WatchData, 'watch'>({
    ...header,
    // An outage of the database for hours loses no watch.
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
  const payment = await latePayment(deps, swap, signal)
  if (payment) {
    await book(deps, engine, payment, now)
    return ended({ tx_hash: payment.found.txHash })
  }
  if (now >= task.deadline) return ended({ tx_hash: null })
  return { ...pollAgain(task, 'watch' as const, backoff), state: 'waiting' as const }
}

const ended = (result: JsonObject) => ({ end: 'completed' as const, outcome: 'executed' as const, result })

const swapOf = ({ data, ...task }: WatchTask): SwapTask => ({
  ...task,
  id: data.task_id,
  userId: data.user_id,
  createdAt: new Date(data.created_at),
  data: data.swap,
})

/** Undefined also while the provider or a node is away. */
async function latePayment(
  deps: SwapDeps,
  swap: SwapTask,
  signal: AbortSignal,
): Promise<Payment | undefined> {
  try {
    const status = await statusOf(deps, swap.data, signal)
    return await find(deps, swap, status)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return undefined
  }
}

const find = async (deps: SwapDeps, swap: SwapTask, status: ProviderStatus): Promise<Payment | undefined> => {
  if (status.state === 'refunded') return findRefund(deps, swap, status)
  if (status.state !== 'success') return undefined
  const fill = await findFill(deps, swap, status)
  if (fill || status.paidToken === null) return fill
  return findOtherPayment(deps, swap, { ...status, paidToken: status.paidToken })
}

/** One commit: the payment counts for its swap, and the swap and the events show it, once. */
async function book(
  deps: SwapDeps,
  { transact, events, clock }: LatePaymentDeps,
  payment: Payment,
  at: Date,
): Promise<void> {
  const { task: swap, chain } = payment.place
  const late = lateOf(payment)
  await transact(async (tx) => {
    await claimPayment(tx, payment, at)
    if (!(await addToTask(tx, payment, late, clock.now()))) return
    if (late.type === 'fill') {
      const result = { amount_in: swap.data.amount_in, amount_out: late.view.amount }
      await recordFill(tx, filledOf(deps, { task: swap, result, at }))
    }
    const orderId = orderOf(swap)
    const isBack = late.type === 'refund' && isSameToken(late.view, swap.data.origin)
    // The end of the sale has counted its units as sold.
    if (orderId !== null && isBack) await takeFromLot(tx, orderId, -BigInt(late.view.amount))
    const data = { type: late.type, ...late.view, symbol: late.token.symbol, ...adviceOf(orderId, late) }
    const subject = { kind: 'task', id: swap.id }
    await events.add(tx, swap.userId, [{ type: 'swap.late_payment', taskId: swap.id, subject, data }])
  })
  deps.changed(swap.userId, chain.id)
  events.notify(swap.userId)
}

type Late = {
  type: 'refund' | 'fill'
  token: Token
  account: string
  view: { chain_id: string; token_address: string; amount: string; tx_hash: string }
}

function lateOf(payment: Payment): Late {
  const {
    place: { chain, owner, task, isFill },
    found: { gain, txHash },
  } = payment
  // A refund can be paid on the other chain as well.
  const { origin, destination } = task.data
  const end = isFill || chain.id !== origin.chain_id ? destination : origin
  const token = tokenOfPayment(payment, end.token)
  const amount = String(gain.amountUnits)
  const view = { chain_id: chain.id, token_address: token.address, amount, tx_hash: txHash }
  return { type: isFill ? 'fill' : 'refund', token, account: owner, view }
}

/** The result of the task that has ended, with what came later; `remaining` where the swap was a leg of it. */
export function resultAfter(result: JsonObject, { type, token, account, view }: Late): JsonObject {
  if ('remaining' in result)
    return { ...result, remaining: { place: 'wallet', ...view, symbol: token.symbol, account } }
  return type === 'refund'
    ? { ...result, refunded: view }
    : { ...result, amount_out: view.amount, tx_hash: view.tx_hash }
}

/** The order whose sale it was. */
function orderOf({ data }: SwapTask): string | null {
  const { trigger_order_id: id } = data as { trigger_order_id?: Json }
  return typeof id === 'string' ? id : null
}

const isSameToken = (view: Late['view'], { chain_id, token }: SwapTaskData['origin']): boolean =>
  view.chain_id === chain_id && view.token_address === token.address

const notArmed = 'Its order is not armed again: leave a new one, if the token should still be sold'

/** An order does not fire again days after its price was reached: its owner decides. */
const adviceOf = (
  orderId: string | null,
  { type }: Pick<Late, 'type'>,
): { order_id?: string; next_step?: string } =>
  orderId === null ? {} : { order_id: orderId, ...(type === 'refund' && { next_step: notArmed }) }

const messages = {
  refund: 'The deposit was refunded after the swap had failed',
  fill: 'The deposit was filled after the swap had failed',
}

type EndedTask = { result: JsonObject | null; error: JsonObject | null; data: Record<string, Json> }

/** False where the task was deleted meanwhile, or shows the payment already. */
async function addToTask(tx: Tx, payment: Payment, late: Late, now: Date): Promise<boolean> {
  const { task: swap, chain } = payment.place
  const [row] = await query<EndedTask>(
    tx,
    'select result, error, data from task where id = $1 and completed_at is not null for update',
    [swap.id],
  )
  if (!row || row.data.late_payment !== undefined) return false
  const shown = withPayment({ ...swap, data: { ...swap.data, ...listsOf(row.data) } }, payment, late.token)
  const data = { ...shown, late_payment: balanceChange(chain.id, late.token, BigInt(late.view.amount)) }
  const error = {
    ...row.error,
    message: [messages[late.type], adviceOf(orderOf(swap), late).next_step].filter(Boolean).join('. '),
    ...(late.type === 'refund' && { code: 'refunded' }),
  }
  await query(
    tx,
    `update task set result = $2::jsonb, error = $3::jsonb, data = data || $4::jsonb, updated_at = $5,
       state = ($3::jsonb) ->> 'code' where id = $1`,
    [swap.id, jsonText(resultAfter(row.result ?? {}, late)), jsonText(error), jsonText(data), now],
  )
  return true
}

const listsOf = ({ transactions, balance_changes }: Record<string, Json>) => ({
  ...(Array.isArray(transactions) && { transactions: transactions as JsonObject[] }),
  ...(Array.isArray(balance_changes) && { balance_changes: balance_changes as JsonObject[] }),
})
