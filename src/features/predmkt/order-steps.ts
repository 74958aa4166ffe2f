import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { OrderRefusal } from '#kernel/money/prediction-refusals.ts'
import type { OrderReply, PreparedOrder, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import type { Effect, StepContext, Steps } from '#kernel/task/task.ts'
import { credentialsOf } from './account-checks.ts'
import { cashOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { orderFacts, quoteNow } from './order-admission.ts'
import { orderFinding } from './order-finding.ts'
import { toVenueTerms } from './order-request.ts'
import { settleOrder } from './order-settle.ts'
import {
  type OrderStepName,
  type OrderStepResult,
  type OrderTask,
  type OrderTaskData,
  termsOf,
} from './order-task.ts'
import { type Blocked, createRateBudget } from './rate-budget.ts'
import { bodyOfEffect, latestEffect, signEffect } from './signed-effect.ts'
import { scheduleSync } from './store/account-store.ts'
import { changeOrder, noteOrder } from './store/order-store.ts'

/** An order is signed and stored, sent, looked up where its reply was lost, and followed until its trades settle. */

const pollBackoff = { firstMs: 500, maxMs: 10_000 }
/** How long a sent order that the venue does not know may still arrive there. */
const lateArrivalMs = 120_000
/** So often the venue may contradict itself about a market before the order ends. */
const contradictionsMax = 3

export function orderSteps(deps: PredmktDeps): Steps<OrderTaskData, OrderStepName> {
  return {
    sign: (task, context) => signOrder(deps, task, context),
    submit: (task, context) => submitOrder(deps, task, context),
    settle: (task, context) => settleOrder(deps, task, context),
  }
}

const refused = (code: string, message: string, details?: Record<string, string>) =>
  notExecuted({ code, message, retryable: false, upstream: 'Polymarket', ...(details && { details }) })

async function signOrder(deps: PredmktDeps, task: OrderTask, { now }: StepContext): Promise<OrderStepResult> {
  const { venue } = deps
  const { userId, data } = task
  if (now > task.deadline) return refused('expired', 'The order could not be placed in time')
  const credentials = await credentialsOf(deps, userId)
  let prepared: PreparedOrder
  try {
    prepared = await prepare(deps, data)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (!fault.retryable || fault.code === 'insufficient_liquidity') return refused(fault.code, fault.message)
    const { reason } = fault.extras
    if (reason === 'upstream_inconsistent' && pollsOf(task) >= contradictionsMax)
      return refused(reason, `${fault.message}; nothing was signed`)
    return waiting(task, 'sign', { text: fault.message })
  }
  const terms = termsOf(data.terms)
  return signEffect<OrderTaskData, OrderStepName>(
    deps,
    task,
    {
      kind: 'prediction_order',
      externalId: prepared.orderId,
      account: data.wallet.owner,
      action: prepared.action,
      facts: orderFacts(deps, terms, BigInt(data.cost_units)),
      bodyOf: (signature) => venue.orderBody(prepared, signature, credentials.key),
      writes: (tx) =>
        noteOrder(tx, {
          userId,
          venue: venue.name,
          taskId: task.id,
          leg: data.leg ?? 'order',
          entryOrderId: data.entry_order_id ?? null,
          prepared,
          expiresAt: terms.expiresAt,
          now,
        }),
    },
    {
      now,
      next: 'submit',
      data: {
        order_id: prepared.orderId,
        market_id: prepared.market.marketId,
        protocol: prepared.market.protocol,
        making_units: String(prepared.action.makerUnits),
        taking_units: String(prepared.action.takerUnits),
        polls: 0,
        note: null,
        progress: null,
      },
      onRefused: ({ code, message }) => refused(code, message),
    },
  )
}

/** Routes the order by what venue and book say now; a stale reading of the admission is never signed. */
async function prepare(deps: PredmktDeps, { terms: stored, wallet }: OrderTaskData): Promise<PreparedOrder> {
  const { venue } = deps
  const terms = termsOf(stored)
  const { outcomeId, timeInForce, postOnly, expiresAt } = terms
  const quote = await quoteNow(deps, terms)
  const market = await venue.market({ outcomeId })
  if (!market) throw new Fault('market_closed', 'The venue does not know the market any more')
  return venue.prepareOrder({
    wallet,
    outcome: { venue: venue.name, marketId: market.marketId, outcomeId },
    terms: toVenueTerms(terms, quote ?? { orderCashUnits: 0n, worstPriceMicros: 0n }),
    timeInForce,
    postOnly,
    expiresAt,
  })
}

type Waiting = { text: string; afterMs?: number }
const waiting = (task: OrderTask, next: OrderStepName, { text, afterMs }: Waiting): OrderStepResult => {
  const { park, data } = pollAgain(task, next, pollBackoff)
  return {
    park: { ...park, ...(afterMs !== undefined && { afterMs }) },
    state: 'waiting',
    data: { ...data, progress: { step: 1, of: 2, text } },
  }
}

async function submitOrder(
  deps: PredmktDeps,
  task: OrderTask,
  context: StepContext,
): Promise<OrderStepResult> {
  const { now } = context
  const effect = latestEffect(task, 'prediction_order')
  if (!effect) return { next: 'sign' }
  const credentials = await credentialsOf(deps, task.userId)
  if (effect.neverSent !== true) {
    const found = await orderFinding(deps, { task, effect, credentials })
    if (found.isKnown)
      return {
        next: 'settle',
        state: 'confirming',
        effects: [{ effectId: effect.id, status: 'confirmed' }],
        data: { polls: 0, progress: null, order_status: found.order?.status ?? 'matched' },
        writes: (tx) => scheduleSync(tx, { userId: task.userId, venue: deps.venue.name }, now),
      }
    // A crash may have hidden a send, so the order is looked up for as long as one can arrive after the deadline.
    if (now > later(task.deadline, lateArrivalMs)) return neverArrived(deps, task, effect, now)
    if (now > task.deadline) return reconciling(task, effect)
  }
  const budget = createRateBudget(deps)
  const isExit = task.data.terms.side === 'sell'
  const blocked = await budget.blockedUntil(task.data.wallet.owner, { isExit, now })
  if (blocked) return waitUntil(task, blocked, now)
  const reply = await deps.venue.postOrder(bodyOfEffect(effect), credentials)
  await budget.note(task.data.wallet.owner, reply, now)
  return afterReply(deps, { task, effect, reply, credentials, context })
}

const waitUntil = (task: OrderTask, { until, text }: Blocked, now: Date): OrderStepResult =>
  waiting(task, 'submit', { text, afterMs: Math.max(250, until.getTime() - now.getTime()) })

const reconciling = (task: OrderTask, effect: Effect): OrderStepResult => ({
  ...pollAgain(task, 'submit', pollBackoff),
  state: 'reconciling',
  outcome: 'unknown',
  effects: [{ effectId: effect.id, status: 'unknown' }],
})

/** Ends an order that the venue refused for now, or never had, until its time was over. */
const neverArrived = (deps: PredmktDeps, task: OrderTask, effect: Effect, now: Date): OrderStepResult => ({
  ...refused('expired', task.data.progress?.text ?? 'The order did not arrive at the venue in time'),
  effects: [{ effectId: effect.id, status: 'dropped' }],
  writes: (tx) => ended(tx, deps, { orderId: task.data.order_id!, status: 'rejected', now }),
})

const ended = async (
  tx: Parameters<typeof changeOrder>[0],
  _deps: PredmktDeps,
  change: { orderId: string; status: 'rejected' | 'unmatched'; now: Date },
): Promise<void> => void (await changeOrder(tx, change))

type Replied = {
  task: OrderTask
  effect: Effect
  reply: OrderReply
  credentials: VenueCredentials
  context: StepContext
}

async function afterReply(deps: PredmktDeps, replied: Replied): Promise<OrderStepResult> {
  const { task, effect, reply, context } = replied
  const { now } = context
  switch (reply.type) {
    case 'accepted': {
      const owner = { userId: task.userId, venue: deps.venue.name }
      const status = reply.status === 'unmatched' ? 'live' : reply.status
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
        },
        async writes(tx) {
          // An end is stored once the venue lists the trades; until then the order counts as open.
          const shown = status === 'matched' ? 'delayed' : status
          await changeOrder(tx, { orderId: task.data.order_id!, status: shown, now })
          await scheduleSync(tx, owner, now)
        },
      }
    }
    case 'rejected':
      return afterRefusal(deps, { ...replied, reason: reply.reason, message: reply.message })
    case 'not_sent':
      return now > task.deadline
        ? neverArrived(deps, task, effect, now)
        : waiting(task, 'submit', { text: 'The venue cannot be reached' })
    case 'unknown':
      return reconciling(task, effect)
    case 'later': {
      if (now > task.deadline) return neverArrived(deps, task, effect, now)
      const text = laterTexts[reply.reason]
      return waiting(task, 'submit', {
        text,
        ...(reply.retryAfterMs !== null && { afterMs: reply.retryAfterMs }),
      })
    }
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

type Refused = Replied & { reason: OrderRefusal; message: string }

async function afterRefusal(deps: PredmktDeps, given: Refused): Promise<OrderStepResult> {
  const { task, effect, reason, message, context } = given
  const { now } = context
  const reject = { effects: [{ effectId: effect.id, status: 'rejected' as const }] }
  const end = (tx: Parameters<typeof changeOrder>[0]) =>
    ended(tx, deps, { orderId: task.data.order_id!, status: 'rejected', now })
  if ((reason === 'tick_invalid' || reason === 'version_mismatch') && !task.data.is_renewed)
    return { next: 'sign', state: 'held', ...reject, data: { is_renewed: true, polls: 0 }, writes: end }
  if (reason === 'venue_balance_lag' || reason === 'insufficient_balance')
    return afterShortage(deps, given, { ...reject, writes: end })
  return { ...refused(reason, message), ...reject, writes: end }
}

/**
 * The chain covers the order, and the venue says it does not: it is asked once to read the chain again, and gets the
 * same bytes once more. Nothing is approved and nothing loops.
 */
async function afterShortage(
  deps: PredmktDeps,
  { task, credentials, reason, message }: Refused,
  rejected: Pick<OrderStepResult, 'effects' | 'writes'>,
): Promise<OrderStepResult> {
  const { venue } = deps
  const { wallet, terms } = task.data
  const asset = terms.side === 'buy' ? ('cash' as const) : { outcomeId: terms.outcomeId }
  if (!task.data.is_refreshed) {
    await venue.refreshBalance(asset, wallet.kind, credentials)
    return {
      ...waiting(task, 'submit', { text: 'The venue reads the balance again', afterMs: 1_000 }),
      data: { is_refreshed: true },
    }
  }
  const [known, cash] = await Promise.all([
    venue.balance(asset, wallet.kind, credentials),
    cashOf(deps, { userId: task.userId, wallet }),
  ])
  // The venue knows the balance as well, so that other open orders hold it.
  const needed = BigInt(terms.side === 'buy' ? task.data.cost_units : terms.sizeUnits!)
  const isHeld = reason === 'insufficient_balance' && known.balanceUnits >= needed
  return {
    ...refused(isHeld ? reason : 'venue_balance_lag', message, {
      venue_balance: fromUnits(known.balanceUnits, usdcDecimals),
      ...(asset === 'cash' && { chain_balance: fromUnits(cash.totalUnits, usdcDecimals) }),
    }),
    ...rejected,
  }
}
