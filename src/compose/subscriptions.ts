import { createPlanCatalogue } from '#features/subscriptions/plan-catalogue.ts'
import { freePlan, type PlanState, planStateOf } from '#features/subscriptions/plan-views.ts'
import { createEventReceiver } from '#features/subscriptions/receive-event.ts'
import { subscriptionDeletions, subscriptionFacts } from '#features/subscriptions/retention.ts'
import { createSubscriptions } from '#features/subscriptions/subscriptions.ts'
import { createSync } from '#features/subscriptions/sync.ts'
import { dueWatches } from '#features/subscriptions/watch-source.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { hasValidSignature, isTimely } from '#upstreams/stripe/signature.ts'
import { createStripe } from '#upstreams/stripe/stripe.ts'
import { eventOf, readReply } from '#upstreams/stripe/wire.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'

type SubscriptionParts = Pick<Parts, 'core' | 'scheduleClock' | 'urls' | 'net'>
export type Subscriptions = Section & {
  planOf(userId: string): Promise<PlanState>
  /** Takes the events of the payment provider; absent where none is configured. */
  providerEvents?: {
    assertTimely(signature: string | undefined): void
    receive(bytes: Uint8Array, signature: string | undefined): Promise<object>
  }
}

const isLiveKey = (key: string): boolean => /^(?:sk|rk)_live_/.test(key)

/** The pages on which a payer ends, where the operator names no address of their own. */
const returnPaths = { paid: '/checkout/paid', cancelled: '/checkout/cancelled' }

/** Opens the sale of plans; without a payment provider it deletes old rows only. */
export function openSubscriptions({ core, scheduleClock, urls, net }: SubscriptionParts): Subscriptions {
  const { config, db, clock, random, log, taskEngine, baseUrl } = core
  const { STRIPE_API_KEY: key, STRIPE_WEBHOOK_SECRETS: secrets, STRIPE_PLANS: plans } = config
  const deletions = subscriptionDeletions
  const noPlan = { plan: freePlan, status: 'none' as const, until: null }
  if (!urls.stripe || key === undefined || plans.length === 0)
    return { deletions, planOf: async () => noPlan }
  const portalConfiguration = config.STRIPE_PORTAL_CONFIGURATION
  const stripe = createStripe({ url: urls.stripe, key, net, portalConfiguration })
  const catalogue = createPlanCatalogue(plans, stripe)
  const deps = {
    db,
    clock,
    providerClock: scheduleClock,
    random,
    log,
    stripe,
    catalogue,
    ledger: taskEngine.ledger,
    events: taskEngine.events,
    announce: taskEngine.announceSlots,
    returnUrls: () => ({
      paid: config.STRIPE_RETURN_URL ?? `${baseUrl()}${returnPaths.paid}`,
      cancelled: config.STRIPE_RETURN_URL ?? `${baseUrl()}${returnPaths.cancelled}`,
    }),
  }
  const receiver = createEventReceiver({
    transact: taskEngine.transact,
    clock,
    providerClock: scheduleClock,
    log,
    isLive: isLiveKey(key),
    announce: taskEngine.announceSlots,
  })
  const reject = (): Fault => {
    receiver.countRejected()
    return new Fault('bad_request', 'The signature of the event is missing, wrong or too old')
  }
  return {
    part: 'chat',
    operations: createSubscriptions(deps),
    kinds: [createSync(deps)],
    starters: [() => taskEngine.startDueRows(dueWatches({ db, taskEngine }), scheduleClock)],
    facts: subscriptionFacts(plans),
    metrics: { subscriptions: receiver.metrics },
    deletions,
    planOf: (userId) => planStateOf(db, catalogue, userId),
    providerEvents: {
      assertTimely(header) {
        if (!isTimely(header, scheduleClock.now())) throw reject()
      },
      async receive(bytes, header) {
        if (!hasValidSignature({ bytes, header, secrets, now: scheduleClock.now() })) throw reject()
        const event = readReply(Buffer.from(bytes).toString('utf8'), eventOf)
        return { received: await receiver.receive(event) }
      },
    },
  }
}
