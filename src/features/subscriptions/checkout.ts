import { type Clock, later } from '#kernel/clock.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type EndedTask, type InputOf, taskOf } from '#kernel/contract/operation.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { StepAddition, StepResult, TaskView, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { builder, fetchAll, fetchOne, query } from '#store/query.ts'
import type { PlanCheckoutRow } from '#store/tables/subscriptions.ts'
import type { Page, Stripe } from '#upstreams/stripe/stripe.ts'
import type { Made } from '#upstreams/stripe/transport.ts'
import {
  type AdmissionDeps,
  admitCheckout,
  type CheckoutData,
  notSubscribed,
  otherPrice,
  paidBefore,
} from './checkout-admission.ts'
import type { contract } from './contract.ts'
import { usdOf } from './plan-catalogue.ts'
import { checkoutById, currentSubscription, eagerSeconds, watch } from './store.ts'
import { answerOf } from './task-answer.ts'

/** Opens the page on which a person pays: the number of the page is stored before the provider is asked for it. */

export type CheckoutDeps = AdmissionDeps & {
  stripe: Stripe
  /** The clock by which the provider's pages end. */
  providerClock: Clock
  random: Random
  announce: () => void
  /** Where the payer returns: after the payment, and without one. */
  returnUrls: () => { paid: string; cancelled: string }
}
type Input = InputOf<(typeof contract)['entries']['checkout']>
type Data = CheckoutData & {
  checkout_id?: string
  isReused?: boolean
  isOtherPrice?: boolean
  /** The page whose key the provider answers with a failure for a day. */
  failedPage?: number
  failures?: number
}
type Task = TaskView<Data>
type Names = 'reserve' | 'end_others' | 'open'
type Result = StepResult<Data, Names>

/** The provider wants 30 minutes at least, and the request takes its time. */
const pageMs = 31 * 60_000
/** A page that changes a subscription ends after five minutes, unless it is opened. */
const changePageMs = 270_000
/** How long a confirmed change may take, during which the subscription is read often. */
const changeWatchMs = 3_600_000
/** A page that ends sooner is not given to a person. */
const leftMsMin = 60_000
const failuresMax = 3
/** Tabs that opened pages at one moment; more of them are ended in further steps. */
const othersMax = 10
const deadlineMs = 120_000

export const createCheckout = (deps: CheckoutDeps) =>
  taskOf({
    async admit(input: Input, asker: Pick<Asker, 'userId' | 'principal'>) {
      const { plan, intent, mode } = await admitCheckout(deps, input, asker)
      const data: Data = {
        price_id: plan.priceId,
        intent,
        mode,
        plan: plan.name,
        price_usd: usdOf(plan.cents),
        interval: plan.interval,
      }
      return { data, first: 'reserve' as const, deadlineMs }
    },
    steps: {
      reserve: async (task: Task): Promise<Result> => ({
        next: 'end_others',
        complete: (tx) => reserve(deps, tx, task),
      }),
      end_others: (task: Task) => endOthers(deps, task),
      open: (task: Task) => openPage(deps, task),
    },
    retry: { attemptsMax: 4, firstMs: 300, maxMs: 3_000 },
    finish: (task: EndedTask) => finish(deps, task),
  })
type Answer = JsonObject & { status: 'open' }

/**
 * Adds the address of the page, which only who asked for it gets: who has it can pay, or confirm a change with the
 * stored card, and tasks are shown to every token that reads.
 */
async function finish({ db }: Pick<CheckoutDeps, 'db'>, task: EndedTask): Promise<Answer> {
  const result = answerOf(task) as Answer
  const row = await checkoutById(db, String(result.checkout_id))
  if (!row?.url)
    throw new Fault('unavailable', 'This page was replaced: ask again with a new request; nothing was paid')
  return { ...result, checkout_url: row.url, expires_at: row.expires_at.toISOString() }
}

const lifetimeMs = ({ mode }: CheckoutData): number => (mode === 'new' ? pageMs : changePageMs)

/** Takes the page that is open, or the number of the next one, under the lock of the intent. */
async function reserve(
  { providerClock, random }: CheckoutDeps,
  tx: Tx,
  { userId, data }: Task,
): Promise<StepAddition> {
  const now = providerClock.now()
  const expiresAt = later(now, lifetimeMs(data))
  const fresh = {
    id: uuidv7(now, random),
    user_id: userId,
    intent: data.intent,
    price_id: data.price_id,
    mode: data.mode,
    page: 1,
    expires_at: expiresAt,
    session_id: null,
    url: null,
    state: 'opening' as const,
    created_at: now,
  }
  await fetchAll(
    tx,
    builder
      .insertInto('plan_checkout')
      .values(fresh)
      .onConflict((oc) => oc.doNothing()),
  )
  const locked = builder
    .selectFrom('plan_checkout')
    .selectAll()
    .where('user_id', '=', userId)
    .where('intent', '=', data.intent)
    .forUpdate()
  const row = (await fetchOne(tx, locked))!
  const isOtherPrice = row.price_id !== data.price_id
  const hasTime = later(now, leftMsMin) < row.expires_at && row.mode === data.mode
  const isOpen = row.state === 'open' && hasTime
  // A page whose request may have been answered keeps its number: the same key returns the same page.
  const isSame = row.state === 'opening' && hasTime && row.page !== data.failedPage
  if (!isOtherPrice && !isOpen && !isSame && row.state !== 'complete')
    await fetchAll(
      tx,
      builder
        .updateTable('plan_checkout')
        .set({
          page: row.page + 1,
          mode: data.mode,
          expires_at: expiresAt,
          session_id: null,
          url: null,
          state: 'opening',
        })
        .where('id', '=', row.id),
    )
  return { data: { checkout_id: row.id, isReused: isOpen, isOtherPrice } }
}

/** Ends the other pages of the user, so that one person does not pay twice by mistake. */
async function endOthers({ db, stripe, announce }: CheckoutDeps, { userId, data }: Task): Promise<Result> {
  const others = await fetchAll(
    db,
    builder
      .selectFrom('plan_checkout')
      .selectAll()
      .where('user_id', '=', userId)
      .where('state', '=', 'open')
      .where('mode', '=', 'new')
      .where('id', '<>', data.checkout_id!)
      .orderBy('id')
      .limit(othersMax),
  )
  const ended: PlanCheckoutRow[] = []
  const paid: PlanCheckoutRow[] = []
  for (const other of others) {
    const session = await stripe.expireSession(other.session_id!)
    if (session?.status === 'complete') paid.push(other)
    else ended.push(other)
  }
  const ids = (rows: PlanCheckoutRow[]) => rows.map(({ session_id: id }) => id)
  const writes = async (tx: Tx) => {
    await query(tx, `update plan_checkout set state = 'expired' where session_id = any($1)`, [ids(ended)])
    await query(tx, 'delete from plan_watch where id = any($1)', [ids(ended)])
    await query(tx, 'update plan_watch set next_at = $2 where id = any($1)', [ids(paid), new Date(0)])
  }
  if (paid.length === 0) return { next: others.length < othersMax ? 'open' : 'end_others', writes }
  announce()
  return {
    end: 'failed',
    outcome: 'not_executed',
    writes,
    error: {
      code: 'conflict',
      message:
        'Another checkout of yours was paid a moment ago: `subscriptions_show` says when its plan is active',
      details: { reason: 'paid' },
    },
  }
}

const resultOf = (
  data: Data,
  { id, expires_at: expiresAt }: PlanCheckoutRow,
  { isReused }: { isReused: boolean },
) => ({
  checkout_id: id,
  plan: data.plan,
  price_usd: data.price_usd,
  interval: data.interval,
  status: 'open',
  expires_at: expiresAt.toISOString(),
  reused: isReused,
})

async function openPage(deps: CheckoutDeps, { userId, data }: Task): Promise<Result> {
  const row = (await checkoutById(deps.db, data.checkout_id!))!
  const refusal = refusalOf(data, row)
  if (refusal) return refusal
  if (row.state === 'open')
    return {
      end: 'completed',
      outcome: 'executed',
      result: resultOf(data, row, { isReused: data.isReused === true }),
    }
  const { made, refusal: reason } = await askForPage(
    deps,
    row,
    `checkout:${userId}:${row.intent}:${row.page}`,
  )
  const failures = (data.failures ?? 0) + 1
  if (made)
    return {
      end: 'completed',
      outcome: 'executed',
      result: resultOf(data, row, { isReused: false }),
      writes: (tx) => storePage(deps, tx, row, made),
    }
  if (failures < failuresMax) return { next: 'reserve', data: { failures, failedPage: row.page } }
  return failed(reason.code, `${reason.message}; nothing was paid`, reason.extras as JsonObject)
}

const failed = (code: string, message: string, details: JsonObject = {}): Result => ({
  end: 'failed',
  outcome: 'not_executed',
  error: { code, message, details },
})

function refusalOf(data: Data, row: PlanCheckoutRow): Result | undefined {
  if (data.isOtherPrice) return failed('idempotency_conflict', otherPrice().message)
  if (row.state !== 'complete') return undefined
  return failed('conflict', paidBefore, { reason: 'paid' })
}

/** Asks for the page with what is stored, so that a repetition under the key asks for the same. */
async function askForPage(
  { db, stripe, returnUrls }: CheckoutDeps,
  { user_id: userId, price_id: priceId, mode, expires_at: expiresAt }: PlanCheckoutRow,
  key: string,
): Promise<Made<Page>> {
  const { paid, cancelled } = returnUrls()
  if (mode === 'new')
    return stripe.createSession({ userId, priceId, successUrl: paid, cancelUrl: cancelled, expiresAt }, key)
  const current = await currentSubscription(db, userId)
  // It ended since the request was admitted; another request begins a new one.
  if (!current) return { refusal: notSubscribed() }
  const { id: subscriptionId, customer_id: customerId, item_id: itemId } = current
  return stripe.createChange({ subscriptionId, customerId, itemId, priceId, returnUrl: paid }, key)
}

async function storePage(
  { providerClock }: CheckoutDeps,
  tx: Tx,
  row: PlanCheckoutRow,
  { id, url }: Page,
): Promise<void> {
  await fetchAll(
    tx,
    builder
      .updateTable('plan_checkout')
      .set({ session_id: id, url, state: 'open' })
      .where('id', '=', row.id)
      .where('page', '=', row.page)
      .where('state', '=', 'opening'),
  )
  const now = providerClock.now()
  const nextAt = later(now, eagerSeconds * 1_000)
  const userId = row.user_id
  if (row.mode === 'new') await watch(tx, { id, userId, nextAt, everySeconds: eagerSeconds })
  else {
    const current = await currentSubscription(tx, userId)
    const eagerUntil = later(now, changeWatchMs)
    if (current) await watch(tx, { id: current.id, userId, nextAt, everySeconds: eagerSeconds, eagerUntil })
  }
}
