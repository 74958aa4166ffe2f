import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { isUuid } from '#kernel/id.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { Admission, EndResult, FailedResult, StepContext, TaskView, Tx } from '#kernel/task/task.ts'
import { credentialsOf, tradingAccount } from './account-checks.ts'
import {
  type CancelStep,
  type CancelTaskData,
  cancelLists,
  hasActed,
  type CancelResult as Result,
  withCancelLists,
} from './cancel-end.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { laterTexts } from './order-submission.ts'
import { createRateBudget } from './rate-budget.ts'
import { lockAccount, scheduleSync } from './store/account-store.ts'
import { cancelComingExits, cancelExits } from './store/exit-store.ts'
import {
  changeOrder,
  noteCancelAsked,
  noteSignedUnwanted,
  type OrderChange,
  openOrderRows,
} from './store/order-store.ts'
import { isEverySendAnswered } from './unknown-outcome.ts'

/**
 * What the user wants is stored first: the exits end before their orders are cancelled, so that nothing places them
 * again. The orders of a market are listed once, so that a repeat after a lost reply cancels nothing that came since.
 */

type CancelInput = PredmktInput<'cancel'>
type CancelTask = TaskView<CancelTaskData>

const cancelMs = 10 * 60_000
const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** One request of the venue cancels so many. */
const batchMax = 1_000
/** So many orders are looked up that the venue did not cancel, in case an earlier request has. */
const lookUpsMax = 50

export const createCancel = (deps: PredmktDeps) =>
  taskOf({
    admit: (input: CancelInput, { userId }) => admitCancel(deps, input, userId),
    steps: {
      begin: async (task, context) => endExits(deps, task, context),
      list: (task) => listOrders(deps, task),
      send: (task, context) => sendCancel(deps, task, context),
    },
    completeEnd: (task, end) => completeEnd(deps, task as CancelTask, end),
  })

/** Completes an end that no step has made: the cancel was itself cancelled, is over its deadline, or failed too often. */
function completeEnd(deps: PredmktDeps, task: CancelTask, end: EndResult): EndResult {
  if (!hasActed(task.data)) return end
  const { error, ...failed } = end as EndResult & FailedResult
  const message =
    error.code === 'expired' ? 'The deadline passed before everything was cancelled' : error.message
  return {
    ...withCancelLists({ ...failed, error: { ...error, message } }, task.data),
    writes: (tx) => scheduleSync(tx, ownerOf(deps, task), deps.clock.now()),
  }
}

async function admitCancel(
  deps: PredmktDeps,
  input: CancelInput,
  userId: string,
): Promise<Admission<CancelTaskData, CancelStep>> {
  const {
    order_id: id,
    order_ids: ids,
    condition_id,
    market_id,
    outcome_id: outcomeId,
    cancel_all: isAll,
  } = input
  const marketId = condition_id ?? market_id
  const named = [
    ['order_id', id],
    ['order_ids', ids],
    ['condition_id', marketId],
    ['cancel_all', isAll === true ? true : undefined],
  ].filter(([, value]) => value !== undefined)
  if (named.length !== 1) throw exactlyOneOf('order_id', 'cancel_all', { hasBoth: named.length > 1 })
  if (outcomeId !== undefined && marketId === undefined)
    throw invalid('outcome_id', 'missing', '`outcome_id` narrows `condition_id`, which is missing')
  const { wallet } = await tradingAccount(deps, userId)
  const asked = id === undefined ? (ids ?? null) : [id]
  const data: CancelTaskData = {
    owner: wallet.owner,
    order_ids: asked?.filter((each) => !isUuid(each)) ?? null,
    exit_ids: asked?.filter(isUuid) ?? null,
    market_id: marketId ?? null,
    outcome_id: outcomeId ?? null,
  }
  return { first: 'begin', deadlineMs: cancelMs, data }
}

const ownerOf = ({ venue }: PredmktDeps, { userId }: CancelTask) => ({ userId, venue: venue.name })

/** Ends the exits in a commit of its own, before anything is sent. */
function endExits(deps: PredmktDeps, task: CancelTask, { now }: StepContext): Result {
  const { order_ids: orderIds, exit_ids: exitIds, market_id: marketId, outcome_id: outcomeId } = task.data
  const named = orderIds && { orderIds, exitIds: exitIds ?? [] }
  return {
    next: 'list',
    complete: async (tx) => {
      await lockAccount(tx, ownerOf(deps, task))
      const scope = { marketId, outcomeId }
      const ended = await cancelExits(tx, ownerOf(deps, task), { ...scope, named, now })
      const coming = named ? [] : await cancelComingExits(tx, ownerOf(deps, task), { ...scope, now })
      if (!named) await noteSignedUnwanted(tx, ownerOf(deps, task), scope)
      const exitOrders = ended.flatMap(({ orders }) => orders)
      await noteCancelAsked(tx, ownerOf(deps, task), [...(orderIds ?? []), ...exitOrders])
      // An exit with an order at the venue stands under the id of the order, unless it was named by its own.
      const shown = ended.filter(({ id, orders }) => exitIds?.includes(id) ?? orders.length === 0)
      return { data: { ended_exits: [...shown, ...coming].map(({ id }) => id), exit_orders: exitOrders } }
    },
  }
}

/** The orders to cancel, as they are now. */
async function listOrders(deps: PredmktDeps, task: CancelTask): Promise<Result> {
  const { db, venue } = deps
  const { order_ids: named, exit_orders: exitOrders = [], market_id, outcome_id } = task.data
  const known = named ?? []
  if (named !== null) {
    const ids = [...new Set([...known, ...exitOrders])]
    return { next: 'send', data: sendData(task, ids) }
  }
  const filter = {
    ...(market_id !== null && { marketId: market_id }),
    ...(outcome_id !== null && { outcomeId: outcome_id }),
  }
  try {
    const [listed, rows] = await Promise.all([
      venue.openOrders(filter, await credentialsOf(deps, task.userId)),
      openOrderRows(db, ownerOf(deps, task)),
    ])
    const isInScope = (row: { market_id: string; outcome_id: string }) =>
      (market_id === null || row.market_id === market_id) &&
      (outcome_id === null || row.outcome_id === outcome_id)
    const own = rows.filter(isInScope).map(({ order_id }) => order_id)
    const ids = [...new Set([...listed.map(({ orderId }) => orderId), ...own, ...exitOrders])]
    return {
      next: 'send',
      data: sendData(task, ids),
      async writes(tx) {
        await lockAccount(tx, ownerOf(deps, task))
        await noteCancelAsked(tx, ownerOf(deps, task), ids)
      },
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (fault.retryable) return later(task, { next: 'list', text: fault.message, afterMs: null })
    const failed = notExecuted({ code: fault.code, message: fault.message, upstream: 'Polymarket' })
    return withCancelLists(failed, task.data)
  }
}

const sendData = (task: CancelTask, ids: string[]): Partial<CancelTaskData> => ({
  order_ids: ids,
  is_sent: ids.length > 0,
  polls: 0,
  answered_version: answeredInClaim(task),
})

/** The next step of this claim follows the last answer; a step of another claim may follow a request without one. */
const answeredInClaim = ({ version }: CancelTask): number => version - 1

async function sendCancel(deps: PredmktDeps, task: CancelTask, { now }: StepContext): Promise<Result> {
  const { data, userId } = task
  const { order_ids: ids, canceled = [], not_canceled: refused = {} } = data
  const left = (ids ?? []).filter((id) => !canceled.includes(id) && !(id in refused))
  if (left.length === 0) return endCancel(deps, task, now)
  const isAnswered = isEverySendAnswered(task, {})
  const notSent = (text: string, afterMs: number | null): Result =>
    later(task, { next: 'send', text, afterMs, ...(isAnswered && { answered_version: task.version }) })
  const budget = createRateBudget(deps, 'cancel')
  const blocked = await budget.blockedUntil(data.owner, { isExit: true, now })
  if (blocked) return notSent(blocked.text, blocked.until.getTime() - now.getTime())
  const credentials = await credentialsOf(deps, userId)
  const batch = left.slice(0, batchMax)
  const reply = await deps.venue.cancelOrders(batch, credentials)
  await budget.note(data.owner, reply, now)
  switch (reply.type) {
    case 'answered':
      return afterAnswer(deps, task, { ...reply, batch, credentials, now })
    case 'rejected':
      return afterRefusal(deps, task, { refusal: reply, left, isAnswered, credentials, now })
    case 'later':
      return notSent(laterTexts[reply.reason], reply.retryAfterMs)
    case 'not_sent':
      return notSent(unreachable, null)
    case 'unknown':
      // A cancel that is sent twice cancels nothing else, so the same ids are sent again.
      return later(task, { next: 'send', text: unreachable, afterMs: null })
  }
}

const unreachable = 'The venue cannot be reached'

type Later = { next: CancelStep; text: string; afterMs: number | null; answered_version?: number }
const later = (task: CancelTask, { next, text, afterMs, answered_version = undefined }: Later): Result => {
  const { park, data } = pollAgain(task, next, pollBackoff)
  return {
    park: { ...park, ...(afterMs !== null && { afterMs: Math.max(250, afterMs) }) },
    state: 'waiting',
    data: {
      ...data,
      progress: { step: 1, of: 1, text },
      ...(answered_version !== undefined && { answered_version }),
    },
  }
}

type Answered = {
  canceled: readonly string[]
  notCanceled: Record<string, string>
  batch: readonly string[]
  credentials: VenueCredentials
  now: Date
}

async function afterAnswer(
  deps: PredmktDeps,
  task: CancelTask,
  { canceled, notCanceled, batch, credentials, now }: Answered,
): Promise<Result> {
  const { data } = task
  const isIn = (id: string) => canceled.some((each) => each.toLowerCase() === id.toLowerCase())
  const others = batch.filter((id) => !isIn(id))
  const statuses = await statusesOf(deps, others, credentials)
  const before = others.filter((id) => statuses.get(id) === 'canceled')
  const ended = [...batch.filter(isIn), ...before]
  const refused = others.filter((id) => !before.includes(id))
  return {
    next: 'send',
    data: {
      canceled: [...(data.canceled ?? []), ...ended],
      not_canceled: {
        ...data.not_canceled,
        ...Object.fromEntries(refused.map((id) => [id, notCanceled[id] ?? 'The venue did not cancel it'])),
      },
      answered_version: answeredInClaim(task),
    },
    writes: (tx) => noteEnds(deps, tx, task, { ended, now }),
  }
}

/** What the venue shows of orders that it did not cancel now: a request without an answer may have cancelled them. */
async function statusesOf({ venue }: PredmktDeps, ids: readonly string[], credentials: VenueCredentials) {
  const asked = ids.slice(0, lookUpsMax)
  const orders = await Promise.all(asked.map((id) => venue.order(id, credentials)))
  return new Map(asked.map((id, at) => [id, orders[at]?.status]))
}

async function noteEnds(
  deps: PredmktDeps,
  tx: Tx,
  task: CancelTask,
  { ended, now }: { ended: readonly string[]; now: Date },
): Promise<void> {
  const owner = ownerOf(deps, task)
  await lockAccount(tx, owner)
  for (const orderId of ended)
    await changeOrder(tx, { orderId, owner, status: 'cancelled', isUnread: true, now })
}

type Refused = {
  refusal: { reason: string; message: string }
  left: readonly string[]
  /** Whether every request so far was answered, so that none of these orders has ended. */
  isAnswered: boolean
  credentials: VenueCredentials
  now: Date
}

/** A refusal says nothing of an earlier request without an answer; the records of its orders do. */
async function afterRefusal(
  deps: PredmktDeps,
  task: CancelTask,
  { refusal: { reason, message }, left, isAnswered, credentials, now }: Refused,
): Promise<Result> {
  const { canceled = [], not_canceled: refused = {} } = task.data
  const statuses = isAnswered ? new Map() : await statusesOf(deps, left, credentials)
  const ended = left.filter((id) => statuses.get(id) === 'canceled')
  // A record that still shows an order as open may lag behind the earlier request.
  const remaining = isAnswered ? left : left.filter((id) => statuses.get(id) === 'matched')
  const data: CancelTaskData = {
    ...task.data,
    is_sent: !isAnswered || canceled.length + Object.keys(refused).length > 0,
    canceled: [...canceled, ...ended],
    not_canceled: { ...refused, ...Object.fromEntries(remaining.map((id) => [id, message])) },
  }
  const writes = async (tx: Tx) => {
    await noteEnds(deps, tx, task, { ended, now })
    await scheduleSync(tx, ownerOf(deps, task), now)
  }
  if (ended.length === left.length) return { next: 'send', data: { canceled: data.canceled! }, writes }
  const failed = notExecuted({ code: reason, message, upstream: 'Polymarket' })
  return { ...withCancelLists(failed, data), writes }
}

async function endCancel(deps: PredmktDeps, task: CancelTask, now: Date): Promise<Result> {
  const owner = ownerOf(deps, task)
  const result = cancelLists(task.data)
  const ends = await readEnds(deps, task)
  return {
    end: 'completed',
    outcome: Object.keys(result.not_canceled).length > 0 ? 'partial' : 'executed',
    result,
    async writes(tx: Tx) {
      await lockAccount(tx, owner)
      for (const end of ends) await changeOrder(tx, { ...end, now })
      await scheduleSync(tx, owner, now)
    },
  }
}

/** What matched of the cancelled orders; the comparison with the venue reads what is not shown yet. */
async function readEnds(deps: PredmktDeps, task: CancelTask): Promise<Omit<OrderChange, 'now'>[]> {
  const { canceled = [] } = task.data
  const rows = canceled.length > 0 ? await openOrderRows(deps.db, ownerOf(deps, task)) : []
  const ids = rows.map(({ order_id: id }) => id).filter((id) => canceled.includes(id))
  try {
    const credentials = await credentialsOf(deps, task.userId)
    const orders = await Promise.all(ids.slice(0, lookUpsMax).map((id) => deps.venue.order(id, credentials)))
    return orders.flatMap((order, at) => {
      if (order?.status !== 'canceled' && order?.status !== 'matched') return []
      const status = order.status === 'matched' ? 'matched' : 'cancelled'
      return { orderId: ids[at]!, status, matchedUnits: order.matchedUnits }
    })
  } catch (fault) {
    if (fault instanceof Fault) return []
    throw fault
  }
}
