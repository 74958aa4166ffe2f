import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { isUuid } from '#kernel/id.ts'
import type { CancelReply, OrderFilter, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { Admission, StepContext, StepResultOf, TaskProgress, TaskView, Tx } from '#kernel/task/task.ts'
import { credentialsOf, tradingAccount } from './account-checks.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { laterTexts } from './order-steps.ts'
import { createRateBudget } from './rate-budget.ts'
import { scheduleSync } from './store/account-store.ts'
import { cancelExits, endExitsOfOrders } from './store/exit-store.ts'
import { changeOrder } from './store/order-store.ts'

/** A cancel names orders, so that it can be sent again after a lost reply without cancelling anything else. */

type CancelInput = PredmktInput<'cancel'>
type CancelTaskData = {
  owner: string
  /** Orders at the venue; null cancels by market, outcome, or all. */
  order_ids: string[] | null
  /** Exits that the gateway holds. */
  exit_ids: string[] | null
  market_id: string | null
  outcome_id: string | null
  polls?: number
  progress?: TaskProgress | null
}
type CancelTask = TaskView<CancelTaskData>
type Result = StepResultOf<Partial<CancelTaskData>, 'send'>

const cancelMs = 10 * 60_000
const pollBackoff = { firstMs: 300, maxMs: 5_000 }

export const createCancel = (deps: PredmktDeps) =>
  taskOf({
    admit: (input: CancelInput, { userId }) => admitCancel(deps, input, userId),
    steps: { send: (task, context) => sendCancel(deps, task, context) },
  })

async function admitCancel(
  deps: PredmktDeps,
  input: CancelInput,
  userId: string,
): Promise<Admission<CancelTaskData, 'send'>> {
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
  return { first: 'send', deadlineMs: cancelMs, data }
}

async function sendCancel(deps: PredmktDeps, task: CancelTask, { now }: StepContext): Promise<Result> {
  const { data, userId } = task
  const owner = { userId, venue: deps.venue.name }
  const hasNone = data.order_ids !== null && data.order_ids.length === 0
  if (hasNone) return endCancel(deps, task, { canceled: [], notCanceled: {}, now })
  const budget = createRateBudget(deps)
  const blocked = await budget.blockedUntil(data.owner, { isExit: true, now })
  if (blocked) return later(task, { text: blocked.text, afterMs: blocked.until.getTime() - now.getTime() })
  const credentials = await credentialsOf(deps, userId)
  const reply = await cancelAtVenue(deps, data, credentials)
  await budget.note(data.owner, reply, now)
  switch (reply.type) {
    case 'answered':
      return endCancel(deps, task, { ...(await withEarlier(deps, reply, credentials)), now })
    case 'rejected':
      return {
        ...notExecuted({ code: reply.reason, message: reply.message, upstream: 'Polymarket' }),
        writes: (tx) => scheduleSync(tx, owner, now),
      }
    case 'later':
      return later(task, { text: laterTexts[reply.reason], afterMs: reply.retryAfterMs })
    default:
      // A cancel that is sent twice cancels nothing else, so the same ids are sent again.
      return later(task, { text: 'The venue cannot be reached', afterMs: null })
  }
}

const cancelAtVenue = (
  { venue }: PredmktDeps,
  { order_ids: ids, market_id: marketId, outcome_id: outcomeId }: CancelTaskData,
  credentials: VenueCredentials,
): Promise<CancelReply> => {
  if (ids !== null) return venue.cancelOrders(ids, credentials)
  const filter: OrderFilter = {
    ...(marketId !== null && { marketId }),
    ...(outcomeId !== null && { outcomeId }),
  }
  return venue.cancelMatching(filter, credentials)
}

/** So many orders are looked up that the venue has not cancelled. */
const lookUpsMax = 50

/** An order that is cancelled already counts as such: the reply to the first cancel of the task may have been lost. */
async function withEarlier(
  { venue }: PredmktDeps,
  { canceled, notCanceled }: Extract<CancelReply, { type: 'answered' }>,
  credentials: VenueCredentials,
): Promise<Pick<CancelAnswer, 'canceled' | 'notCanceled'>> {
  const ids = Object.keys(notCanceled).slice(0, lookUpsMax)
  const orders = await Promise.all(ids.map((id) => venue.order(id, credentials)))
  const earlier = ids.filter((_, index) => orders[index]?.status === 'canceled')
  const left = Object.entries(notCanceled).filter(([id]) => !earlier.includes(id))
  return { canceled: [...canceled, ...earlier], notCanceled: Object.fromEntries(left) }
}

const later = (task: CancelTask, { text, afterMs }: { text: string; afterMs: number | null }): Result => {
  const { park, data } = pollAgain(task, 'send', pollBackoff)
  return {
    park: { ...park, ...(afterMs !== null && { afterMs: Math.max(250, afterMs) }) },
    state: 'waiting',
    data: { ...data, progress: { step: 1, of: 1, text } },
  }
}

type CancelAnswer = { canceled: readonly string[]; notCanceled: Record<string, string>; now: Date }

function endCancel(
  deps: PredmktDeps,
  task: CancelTask,
  { canceled, notCanceled, now }: CancelAnswer,
): Result {
  const { userId, data } = task
  const owner = { userId, venue: deps.venue.name }
  const asked = data.exit_ids
  const canceledExits: string[] = []
  const missing = () => (asked ?? []).filter((id) => !canceledExits.includes(id))
  const writes = async (tx: Tx): Promise<void> => {
    for (const orderId of canceled) await changeOrder(tx, { orderId, status: 'cancelled', now })
    await endExitsOfOrders(tx, canceled, now)
    if (asked === null || asked.length > 0)
      canceledExits.push(
        ...(await cancelExits(tx, owner, {
          ids: asked,
          marketId: data.market_id,
          outcomeId: data.outcome_id,
          now,
        })),
      )
    await scheduleSync(tx, owner, now)
  }
  const failures = Object.keys(notCanceled).length
  return {
    end: 'completed',
    outcome: failures > 0 ? 'partial' : 'executed',
    result: { canceled: [...canceled], not_canceled: notCanceled },
    writes,
    complete: async () => ({
      result: {
        canceled: [...canceled, ...canceledExits],
        not_canceled: {
          ...notCanceled,
          ...Object.fromEntries(missing().map((id) => [id, 'The exit has ended or is being executed'])),
        },
      },
    }),
  }
}
