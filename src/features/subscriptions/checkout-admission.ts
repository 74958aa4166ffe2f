import type { Clock } from '#kernel/clock.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import type { InputOf } from '#kernel/contract/operation.ts'
import type { Queryable } from '#store/query.ts'
import type { PlanSubscriptionRow } from '#store/tables/subscriptions.ts'
import type { Stripe } from '#upstreams/stripe/stripe.ts'
import type { contract } from './contract.ts'
import type { PlanCatalogue, PricedPlan } from './plan-catalogue.ts'
import { activeStatuses, planStateOf } from './plan-views.ts'
import { currentSubscription, findCheckout } from './store.ts'

/** What a checkout needs before it becomes a task: a plan that is sold, and a user who may pay for it now. */

export type AdmissionDeps = {
  db: Queryable
  stripe: Pick<Stripe, 'subscription'>
  catalogue: PlanCatalogue
  clock: Clock
}
type Input = InputOf<(typeof contract)['entries']['checkout']>
export type CheckoutData = {
  price_id: string
  intent: string
  mode: 'new' | 'change'
  plan: string
  price_usd: string
  interval: string
}

export const paidBefore = 'This intent was paid already: use a new `client_intent_id`'
const manage = { subscription_path: '/v1/subscriptions' }

export async function admitCheckout(
  deps: AdmissionDeps,
  input: Input,
  { userId, principal }: Pick<Asker, 'userId' | 'principal'>,
): Promise<{ plan: PricedPlan; intent: string; mode: CheckoutData['mode'] }> {
  const { db, catalogue } = deps
  const plan = await catalogue.requireSold(input.price_id)
  const intent = input.client_intent_id.toLowerCase()
  const known = await findCheckout(db, userId, intent)
  if (known && known.price_id !== plan.priceId) throw otherPrice()
  if (known?.state === 'complete')
    throw new Fault('conflict', paidBefore, { extras: { reason: 'paid', plan: plan.name, ...manage } })
  const current = await liveSubscription(deps, userId)
  if (current) {
    await assertChange(deps, current, plan)
    // The page of a change asks for no card: who has its address can charge the stored one.
    if (principal !== 'app') throw byPerson('ask for the page of a change')
  }
  return { plan, intent, mode: current ? 'change' : 'new' }
}

export const byPerson = (act: string): Fault =>
  new Fault(
    'step_up_required',
    `It is paid with the stored card, so only a person can ${act}: let the person sign in with an app or \`portico login\`, and ask there`,
    { extras: { requires: 'person', ...manage } },
  )

export const otherPrice = (): Fault =>
  new Fault(
    'idempotency_conflict',
    'This `client_intent_id` was used for another price: use a new one for each purchase',
  )

/** The provider is asked whether the subscription still runs, because the record of its end may come a day late. */
async function liveSubscription({ db, stripe }: AdmissionDeps, userId: string) {
  const row = await currentSubscription(db, userId)
  if (!row) return undefined
  const seen = await stripe.subscription(row.id)
  return seen && seen.endedAt === undefined
    ? { row, status: seen.status, priceId: seen.priceId, isCancelled: seen.cancelAtPeriodEnd }
    : undefined
}
type Live = { row: PlanSubscriptionRow; status: string; priceId: string; isCancelled: boolean }

async function assertChange({ db, catalogue }: AdmissionDeps, live: Live, plan: PricedPlan): Promise<void> {
  const { row, status, priceId, isCancelled } = live
  const present = catalogue.find(priceId)?.name ?? priceId
  const refuse = (sentence: string, reason: string) =>
    new Fault('conflict', sentence, { extras: { reason, plan: present, ...manage } })
  if (!activeStatuses.includes(status))
    throw refuse(
      `The last payment of the plan ${present} is missing: pay it at \`pay_url\` of \`subscriptions_show\` first`,
      'past_due',
    )
  if (priceId === plan.priceId)
    throw isCancelled
      ? refuse(
          `The plan ${present} is active until its period ends: \`subscriptions_cancel\` with \`undo\` lets it renew`,
          'subscribed',
        )
      : refuse(`The plan ${present} is active already`, 'subscribed')
  if ((await planStateOf(db, catalogue, row.user_id)).status === 'suspended')
    throw refuse(
      `The last payment of the plan ${present} is disputed: the plan can be changed once the dispute is won`,
      'suspended',
    )
  // Between plans of one price a payer could change for nothing, again and again, and get the credits each time.
  const old = await catalogue.priced(priceId)
  if (old === undefined || plan.cents <= old.cents)
    throw refuse(
      `The plan ${plan.name} costs no more than ${present}: end that with \`subscriptions_cancel\`, and subscribe when its period has ended`,
      'smaller_plan',
    )
}

export const notSubscribed = (): Fault => conflict('There is no plan to change', 'not_subscribed')
