import type { Net } from '#kernel/wire/upstream-http.ts'
import { createTransport, faultOf, type Made, type Transport } from './transport.ts'
import {
  chargeOf,
  disputeOf,
  errorOf,
  type Interval,
  type Invoice,
  invoicesOf,
  type Page,
  type Payment,
  type Price,
  priceOf,
  readReply,
  type Session,
  type Subscription,
  sessionOf,
  subscriptionOf,
  userField,
} from './wire.ts'

/** Sells subscriptions at a payment provider with Stripe's interface. */

export type { Interval, Invoice, Page, Payment, Price, Session, Subscription }

export type NewSession = {
  userId: string
  priceId: string
  successUrl: string
  cancelUrl: string
  expiresAt: Date
}
export type NewChange = Pick<Subscription, 'customerId' | 'itemId'> & {
  subscriptionId: string
  priceId: string
  returnUrl: string
}
export type Stripe = {
  price(id: string): Promise<Price>
  createSession(session: NewSession, key: string): Promise<Made<Page>>
  session(id: string): Promise<Session | undefined>
  /** Ends a session that is open, and returns the session as it is then. */
  expireSession(id: string): Promise<Session | undefined>
  /** Makes the page on which the payer confirms another price. */
  createChange(change: NewChange, key: string): Promise<Made<Page>>
  subscription(id: string): Promise<Subscription | undefined>
  setCancelAtPeriodEnd(id: string, wanted: { isWanted: boolean }): Promise<Subscription | undefined>
  /** Ends a subscription at once; one that has ended stays as it is. */
  cancel(id: string): Promise<void>
  /** Returns the newest invoices of a subscription, newest first. */
  invoices(subscriptionId: string): Promise<Invoice[]>
  payment(paymentIntentId: string): Promise<Payment>
  /** Refunds what is left of a payment; one that was refunded or is disputed stays as it is. */
  refund(paymentIntentId: string): Promise<void>
}

type Options = {
  url: string
  key: string
  net: Net
  /** The portal's settings for changes; undefined: those of the account. */
  portalConfiguration: string | undefined
}

/** Credits of older invoices have expired long ago. */
const invoicesMax = 20
const doneCodes = ['charge_already_refunded', 'charge_disputed']
const id = encodeURIComponent

/** The pages on which a person pays. */
function pagesOf({ send, find, make }: Transport, portalConfiguration: string | undefined) {
  const session = (sessionId: string) =>
    find({ method: 'GET', path: `checkout/sessions/${id(sessionId)}` }, sessionOf)
  return {
    session,

    createSession: ({ userId, priceId, successUrl, cancelUrl, expiresAt }: NewSession, key: string) =>
      make({
        method: 'POST',
        path: 'checkout/sessions',
        key,
        fields: {
          mode: 'subscription',
          line_items: [{ price: priceId, quantity: 1 }],
          client_reference_id: userId,
          success_url: successUrl,
          cancel_url: cancelUrl,
          expires_at: Math.floor(expiresAt.getTime() / 1_000),
          // The price is that of the plan, in its currency, wherever the payer is.
          adaptive_pricing: { enabled: false },
          metadata: { [userField]: userId },
          subscription_data: { metadata: { [userField]: userId } },
        },
      }),

    async expireSession(sessionId: string) {
      const reply = await send({ method: 'POST', path: `checkout/sessions/${id(sessionId)}/expire` })
      if (reply.status === 200) return readReply(reply.body, sessionOf)
      // A session that is not open any more is refused with a status that other failures have too.
      const seen = await session(sessionId)
      if (seen?.status === 'open') throw faultOf(reply)
      return seen
    },

    createChange: ({ customerId, subscriptionId, itemId, priceId, returnUrl }: NewChange, key: string) =>
      make({
        method: 'POST',
        path: 'billing_portal/sessions',
        key,
        fields: {
          customer: customerId,
          return_url: returnUrl,
          configuration: portalConfiguration,
          flow_data: {
            type: 'subscription_update_confirm',
            after_completion: { type: 'redirect', redirect: { return_url: returnUrl } },
            subscription_update_confirm: {
              subscription: subscriptionId,
              items: [{ id: itemId, price: priceId, quantity: 1 }],
            },
          },
        },
      }),
  } satisfies Partial<Stripe>
}

function subscriptionsOf({ send, call, find }: Transport) {
  return {
    subscription: (subscriptionId: string) =>
      find({ method: 'GET', path: `subscriptions/${id(subscriptionId)}` }, subscriptionOf),

    async setCancelAtPeriodEnd(subscriptionId: string, { isWanted }: { isWanted: boolean }) {
      const path = `subscriptions/${id(subscriptionId)}`
      const seen = await find({ method: 'GET', path }, subscriptionOf)
      // While a schedule holds a smaller price for the next period, the provider refuses any change of the end.
      if (seen?.scheduleId !== undefined)
        await call(
          { method: 'POST', path: `subscription_schedules/${id(seen.scheduleId)}/release` },
          () => {},
        )
      return find({ method: 'POST', path, fields: { cancel_at_period_end: isWanted } }, subscriptionOf)
    },

    async cancel(subscriptionId: string) {
      const path = `subscriptions/${id(subscriptionId)}`
      const reply = await send({ method: 'DELETE', path })
      const hasEnded = errorOf(reply.body).code === 'resource_missing'
      if (reply.status !== 200 && !hasEnded) throw faultOf(reply)
    },

    invoices: (subscriptionId: string) =>
      call(
        {
          method: 'GET',
          path: 'invoices',
          fields: { subscription: subscriptionId, limit: invoicesMax, expand: ['data.payments'] },
        },
        invoicesOf,
      ),
  } satisfies Partial<Stripe>
}

function paymentsOf({ send, call }: Transport) {
  return {
    price: (priceId: string) => call({ method: 'GET', path: `prices/${id(priceId)}` }, priceOf),

    async payment(paymentIntentId: string) {
      const { refundedCents, isDisputed } = await call(
        {
          method: 'GET',
          path: `payment_intents/${id(paymentIntentId)}`,
          fields: { expand: ['latest_charge'] },
        },
        chargeOf,
      )
      if (!isDisputed) return { refundedCents, dispute: undefined }
      const fields = { payment_intent: paymentIntentId, limit: 100 }
      return {
        refundedCents,
        dispute: await call({ method: 'GET', path: 'disputes', fields }, disputeOf),
      }
    },

    async refund(paymentIntentId: string) {
      const fields = { payment_intent: paymentIntentId }
      const reply = await send({ method: 'POST', path: 'refunds', fields })
      if (reply.status !== 200 && !doneCodes.includes(errorOf(reply.body).code ?? '')) throw faultOf(reply)
    },
  } satisfies Partial<Stripe>
}

export function createStripe({ portalConfiguration, ...options }: Options): Stripe {
  const transport = createTransport(options)
  return {
    ...pagesOf(transport, portalConfiguration),
    ...subscriptionsOf(transport),
    ...paymentsOf(transport),
  }
}
