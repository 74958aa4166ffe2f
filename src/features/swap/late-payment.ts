import type { Engine } from '#durable/engine.ts'
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

const kindName = 'swap_late_payment'
const backoff = { firstMs: 2_000, maxMs: 15 * 60_000 }
export const latePaymentMs = 14 * 24 * 3_600_000

/** The swap that ended, as it was then. */
type WatchData = { polls?: number; swap: SwapTaskData; task_id: string; user_id: string; created_at: string }
type WatchTask = TaskView<WatchData>

export type LatePaymentDeps = Pick<Engine, 'transact' | 'enqueue' | 'events'> & { clock: Clock }

/** In the commit that ends the swap. */
export const createLatePaymentWatch =
  ({ enqueue }: Pick<LatePaymentDeps, 'enqueue'>, kind: () => TaskKind): SwapDeps['watchLatePayment'] =>
  async (tx, { id, userId, createdAt, data }) => {
    const swap = JSON.parse(jsonText(data)) as JsonObject
    const watch = { swap, task_id: id, user_id: userId, created_at: createdAt.toISOString() }
    const admission = { data: watch, first: 'watch', deadlineMs: latePaymentMs }
    await enqueue(tx, { userId: systemOwner, kind: kind(), input: {}, admission })
  }

export const latePaymentKind = (deps: SwapDeps, engine: LatePaymentDeps): TaskKind =>
  defineTaskKind<WatchData, 'watch'>({
    kind: kindName,
    version: 1,
    priority: 2,
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
    const data = { type: late.type, ...late.view, symbol: late.token.symbol }
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
  const token = tokenOfPayment(payment, (isFill ? task.data.destination : task.data.origin).token)
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
    message: messages[late.type],
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
