import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { OrderRefusal } from '#kernel/money/prediction-refusals.ts'
import type { OrderReply, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain, pollReview } from '#kernel/task/poll-again.ts'
import type { Effect, StepContext, Tx } from '#kernel/task/task.ts'
import { credentialsOf } from './account-checks.ts'
import { cashOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { lookUpForgotten } from './forgotten-order.ts'
import type { OrderDeps } from './order-admission.ts'
import { type Finding, orderFinding } from './order-finding.ts'
import type { OrderStepName, OrderStepResult, OrderTask, OrderTaskData } from './order-task.ts'
import { createRateBudget } from './rate-budget.ts'
import { bodyOfEffect, latestEffect } from './signed-effect.ts'
import { scheduleSync } from './store/account-store.ts'
import { changeOrder } from './store/order-store.ts'
import { isEverySendAnswered, lateArrivalMs, nextOfUnanswered } from './unknown-outcome.ts'

/** Sends a signed order, and looks it up as long as one of its sends may have arrived without an answer. */

const pollBackoff = { firstMs: 500, maxMs: 10_000 }
/** How long after the delay of its market an order is listed as open whose match is under way. */
const delayMarginMs = 5_000
/** The venue is asked again after so long at the latest, whatever time it has named. */
const waitMaxMs = 3_600_000

export const refused = (code: string, message: string, details?: Record<string, string>) =>
  notExecuted({ code, message, retryable: false, upstream: 'Polymarket', ...(details && { details }) })

type Waiting = { text: string; afterMs?: number | null }
export const waiting = (
  task: OrderTask,
  next: OrderStepName,
  { text, afterMs = null }: Waiting,
): OrderStepResult => {
  const { park, data } = pollAgain(task, next, pollBackoff)
  return {
    park: afterMs === null ? park : { ...park, afterMs },
    state: 'waiting',
    data: { ...data, progress: { step: 1, of: 2, text } },
  }
}

/** A wait ends with the task's deadline, so that the order ends then. */
const boundedWaitMs = (task: OrderTask, wantedMs: number, now: Date): number =>
  Math.max(250, Math.min(wantedMs, waitMaxMs, task.deadline.getTime() - now.getTime() + 250))

type Sending = {
  task: OrderTask
  effect: Effect
  credentials: VenueCredentials
  now: Date
  /** Whether the venue has refused every send so far; only then does its answer to the next one count alone. */
  isAnswered: boolean
}

/** A signed order that was cancelled is looked up, and not sent any more. */
export const unwanted = <Task extends OrderTask>(task: Task): Task => ({
  ...task,
  deadline: task.createdAt,
  data: { ...task.data, is_unwanted: true },
})

export async function submitOrder(
  deps: OrderDeps,
  task: OrderTask,
  { now }: StepContext,
): Promise<OrderStepResult> {
  const effect = latestEffect(task, 'prediction_order')
  if (!effect) return { next: 'sign' }
  const credentials = await credentialsOf(deps, task.userId)
  const isAnswered = isEverySendAnswered(task, effect)
  const sending: Sending = { task, effect, credentials, now, isAnswered }
  if (isAnswered && now > task.deadline) return neverArrived(sending)
  if (!isAnswered) {
    const found = await orderFinding(deps, { task, effect, credentials })
    if (found.isKnown) return foundAtVenue(deps, sending, found)
    const { refusal, is_duplicate: isDuplicate } = task.data
    const unknownSince = unknownSinceOf(sending)
    switch (
      nextOfUnanswered({
        now,
        deadline: task.deadline,
        unknownSince,
        isRefused: refusal != null,
        isDuplicate: isDuplicate === true,
      })
    ) {
      case 'look_up':
        return reconciling(sending, unknownSince)
      case 'absent': {
        // The order of a second signature, which the database has lost, counts before the end of the first one.
        const forgotten = await lookUpForgotten(deps, task, { now }, effect)
        if (forgotten) return forgotten
        return refusal == null ? neverArrived(sending) : endRefused(sending, refusal)
      }
      case 'send': {
        // The database may have lost a second signature. Once this task has sent the order itself, there was none.
        const forgotten =
          task.data.unknown_since == null ? await lookUpForgotten(deps, task, { now }, effect) : undefined
        if (forgotten) return forgotten
      }
    }
  }
  const budget = createRateBudget(deps, 'order')
  const isExit = task.data.terms.side === 'sell'
  const blocked = await budget.blockedUntil(task.data.wallet.owner, { isExit, now })
  if (blocked)
    return notSent(sending, { text: blocked.text, afterMs: blocked.until.getTime() - now.getTime() })
  return afterReply(deps, sending, await post(deps, sending))
}

async function post(deps: PredmktDeps, { task, effect, credentials, now }: Sending): Promise<OrderReply> {
  const reply = await deps.venue.postOrder(bodyOfEffect(effect), credentials)
  await createRateBudget(deps, 'order').note(task.data.wallet.owner, reply, now)
  return reply
}

/** A crash may have hidden a send just before this step, so that no stored time means now. */
const unknownSinceOf = ({ task, now }: Pick<Sending, 'task' | 'now'>): Date =>
  task.data.unknown_since == null ? now : new Date(task.data.unknown_since)

/** Waits without an open send, or with the unknown outcome of an earlier send. */
function notSent({ task, now, isAnswered }: Sending, { text, afterMs }: Required<Waiting>): OrderStepResult {
  const result = waiting(task, 'submit', {
    text,
    afterMs: afterMs === null ? null : boundedWaitMs(task, afterMs, now),
  })
  const data: Partial<OrderTaskData> = isAnswered
    ? { answered_version: task.version }
    : { unknown_since: unknownSinceOf({ task, now }).toISOString() }
  return { ...result, data: { ...result.data, ...data } }
}

/** An order that the venue says to have, and shows to nobody, is left to an operator in the end. */
function reconciling({ task, effect, now }: Sending, unknownSince: Date, data: Partial<OrderTaskData> = {}) {
  const isLost = task.data.is_duplicate === true && now > later(unknownSince, lateArrivalMs)
  const age = { ageMs: now.getTime() - task.createdAt.getTime(), backoff: pollBackoff }
  const polled = isLost
    ? pollReview(task, 'submit' as const, age)
    : { ...pollAgain(task, 'submit' as const, pollBackoff), state: 'reconciling' as const }
  return {
    ...polled,
    outcome: 'unknown' as const,
    effects: [{ effectId: effect.id, status: 'unknown' as const }],
    data: { ...polled.data, ...data, unknown_since: unknownSince.toISOString() },
  }
}

const foundAtVenue = (
  { venue }: Pick<PredmktDeps, 'venue'>,
  { task, effect, now }: Sending,
  { order }: Finding,
): OrderStepResult => ({
  next: 'settle',
  state: 'confirming',
  effects: [{ effectId: effect.id, status: 'confirmed' }],
  data: { polls: 0, progress: null, order_status: order?.status ?? 'matched' },
  async writes(tx) {
    // From now on a cancel of everything names the order.
    await changeOrder(tx, { orderId: task.data.order_id!, status: 'delayed', now })
    await scheduleSync(tx, { userId: task.userId, venue: venue.name }, now)
  },
})

/** Ends an order that the venue refused for now, or never had, until its time was over. */
const neverArrived = (sending: Sending): OrderStepResult => ({
  ...(sending.task.data.is_unwanted
    ? refused('cancelled', 'The order was cancelled before the venue had it')
    : refused(
        'expired',
        sending.task.data.progress?.text ?? 'The order did not arrive at the venue in time',
      )),
  effects: [{ effectId: sending.effect.id, status: 'dropped' }],
  writes: (tx) => endRow(tx, sending),
})

const endRow = async (tx: Tx, { task, now }: Sending): Promise<void> =>
  void (await changeOrder(tx, { orderId: task.data.order_id!, status: 'rejected', now }))

async function afterReply(deps: OrderDeps, sending: Sending, reply: OrderReply): Promise<OrderStepResult> {
  const { task, effect, isAnswered, now } = sending
  switch (reply.type) {
    case 'accepted': {
      const owner = { userId: task.userId, venue: deps.venue.name }
      const status = reply.status === 'unmatched' ? 'live' : reply.status
      const { match_delay_ms: delayMs = 0 } = task.data
      return {
        next: 'settle',
        state: 'confirming',
        effects: [{ effectId: effect.id, status: 'confirmed' }],
        data: {
          order_status: status,
          trade_ids: reply.tradeIds,
          tx_hashes: reply.txHashes,
          polls: 0,
          progress: null,
          ...(status === 'delayed' && { delayed_until_ms: now.getTime() + delayMs + delayMarginMs }),
        },
        async writes(tx) {
          // An end is stored once the venue lists the trades; until then the order counts as open.
          const shown = status === 'matched' ? 'delayed' : status
          await scheduleSync(tx, owner, now)
          await changeOrder(tx, { orderId: task.data.order_id!, status: shown, now })
        },
      }
    }
    case 'rejected': {
      const refusal = { code: reply.reason, message: reply.message }
      if (isAnswered) return afterRefusal(deps, sending, refusal)
      return reconciling(sending, unknownSinceOf(sending), { refusal })
    }
    case 'not_sent':
      return notSent(sending, { text: 'The venue cannot be reached', afterMs: null })
    case 'unknown':
      return reconciling(sending, deps.clock.now(), reply.isDuplicate ? { is_duplicate: true } : {})
    case 'later':
      return notSent(sending, { text: laterTexts[reply.reason], afterMs: reply.retryAfterMs })
  }
}

export const laterTexts = {
  rate_limited: 'venue_rate_limited: the venue limits the requests of this account',
  restarting: 'venue_restarting: the venue restarts, and takes orders again in a few minutes',
  post_only: 'venue_post_only: the venue takes only post-only orders for some minutes',
  cancel_only: 'venue_cancel_only: the venue takes only cancels now',
  disabled: 'venue_disabled: the venue does not trade now',
  wallet_busy: 'wallet_busy: another action of the wallet is in flight at the venue',
  quota: 'venue_quota: a quota of the venue is used up',
} as const

type Refusal = { code: OrderRefusal; message: string }
const accessRefusals: readonly string[] = ['geoblocked', 'closed_only', 'banned'] satisfies OrderRefusal[]
const shortages: readonly string[] = ['venue_balance_lag', 'insufficient_balance'] satisfies OrderRefusal[]

/** Every send was refused, so that nothing of the order is at the venue. */
async function afterRefusal(deps: OrderDeps, sending: Sending, refusal: Refusal): Promise<OrderStepResult> {
  if (accessRefusals.includes(refusal.code)) deps.access.forget(sending.task.userId)
  if (!shortages.includes(refusal.code)) return endRefused(sending, refusal)
  if (!sending.task.data.is_refreshed) return sendAfterRefresh(deps, sending)
  return endShort(deps, sending, refusal)
}

/** The venue may lag behind the chain: it is asked once to read the balance again, and gets the same bytes once more. */
async function sendAfterRefresh(deps: OrderDeps, sending: Sending): Promise<OrderStepResult> {
  const { task, credentials } = sending
  await deps.venue
    .refreshBalance(assetOf(task), task.data.wallet.kind, credentials)
    .catch((fault: unknown) => {
      if (!(fault instanceof Fault)) throw fault
    })
  const refreshed = { ...task, data: { ...task.data, is_refreshed: true } }
  const again = { ...sending, task: refreshed }
  const result = await afterReply(deps, again, await post(deps, again))
  return { ...result, data: { ...result.data, is_refreshed: true } }
}

const assetOf = ({ data: { terms } }: OrderTask) =>
  terms.side === 'buy' ? ('cash' as const) : { outcomeId: terms.outcomeId }

/** Nothing is approved and nothing loops: the task ends with both balances. */
async function endShort(
  deps: PredmktDeps,
  sending: Sending,
  { code, message }: Refusal,
): Promise<OrderStepResult> {
  const { task, effect, credentials } = sending
  const { wallet } = task.data
  const asset = assetOf(task)
  const [known, cash] = await Promise.all([
    deps.venue.balance(asset, wallet.kind, credentials),
    cashOf(deps, { userId: task.userId, wallet }),
  ])
  // Where the venue knows the balance as well, other open orders hold it.
  const neededUnits = BigInt(
    task.data.terms.side === 'buy' ? task.data.cost_units : task.data.terms.sizeUnits!,
  )
  const isHeld = code === 'insufficient_balance' && known.balanceUnits >= neededUnits
  return {
    ...refused(isHeld ? code : 'venue_balance_lag', message, {
      venue_balance: fromUnits(known.balanceUnits, usdcDecimals),
      ...(asset === 'cash' && { chain_balance: fromUnits(cash.totalUnits, usdcDecimals) }),
    }),
    effects: [{ effectId: effect.id, status: 'rejected' }],
    writes: (tx) => endRow(tx, sending),
  }
}

/** Ends a refused order; one that never rested because the market has changed is signed anew, once. */
function endRefused(sending: Sending, { code, message }: { code: string; message: string }): OrderStepResult {
  const { task, effect, now } = sending
  const effects = [{ effectId: effect.id, status: 'rejected' as const }]
  const writes = (tx: Tx) => endRow(tx, sending)
  const isStale = code === 'tick_invalid' || code === 'version_mismatch'
  if (!isStale || task.data.is_renewed || now > task.deadline)
    return { ...refused(code, message), effects, writes }
  return {
    next: 'sign',
    state: 'held',
    effects,
    data: {
      is_renewed: true,
      is_signed: false,
      polls: 0,
      answered_version: null,
      unknown_since: null,
      refusal: null,
    },
    writes,
  }
}
