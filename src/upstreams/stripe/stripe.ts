import { Fault } from '#kernel/contract/fault.ts'
import type { Net, NetReply } from '#kernel/wire/upstream-http.ts'
import { type FormFields, formText } from './form.ts'
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
  pageOf,
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
/**
 * Nothing was made under the key. A failure of the provider is repeated under it for a day, and a refusal is final for
 * what was asked, so that only another key and another time can help.
 */
export type Made<T> = { made: T; refusal?: never } | { made?: never; refusal: Fault }

export type Stripe = {
  price(id: string): Promise<Price>
  createSession(session: NewSession, key: string): Promise<Made<Page>>
  session(id: string): Promise<Session | undefined>
  /** Ends a session that is open, and returns the session as it is then. */
  expireSession(id: string): Promise<Session | undefined>
  /** Makes the page on which the payer confirms another price. */
  createChange(change: NewChange, key: string): Promise<Made<Page>>
  subscription(id: string): Promise<Subscription | undefined>
  setCancelAtPeriodEnd(id: string, isWanted: boolean): Promise<Subscription | undefined>
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

const apiVersion = '2026-10-28.endive'
const timeoutMs = 15_000
const maxBytes = 2 * 1024 * 1024
/** Credits of older invoices have expired long ago. */
const invoicesMax = 20
const notFound = 404
const serverError = 500
const tooMany = 429
const keyInUse = 'idempotency_key_in_use'
const doneCodes = ['charge_already_refunded', 'charge_disputed']

const away = (message: string, extras: Record<string, unknown> = {}): Fault =>
  new Fault('unavailable', message, { extras: { upstream: 'stripe', ...extras } })

function faultOf({ status, body, retryAfterMs }: NetReply): Fault {
  const { code, message } = errorOf(body)
  if (status === 401 || status === 403) return away('The payment provider refuses the key of this gateway')
  if (status === tooMany || status >= serverError || code === keyInUse)
    return away(`The payment provider answered with status ${status}`, {
      ...(retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1_000) }),
    })
  return new Fault('upstream_rejected', `The payment provider refuses the request: ${message}`, {
    extras: { upstream: 'stripe', upstream_code: code ?? String(status) },
  })
}

type Request = { method: 'GET' | 'POST' | 'DELETE'; path: string; fields?: FormFields; key?: string }

export function createStripe({ url, key: apiKey, net, portalConfiguration }: Options): Stripe {
  const send = ({ method, path, fields = {}, key }: Request): Promise<NetReply> => {
    const form = formText(fields)
    return net.fetch({
      url: `${url.replace(/\/+$/, '')}/v1/${path}${method === 'POST' || form === '' ? '' : `?${form}`}`,
      method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${apiKey}`,
        'stripe-version': apiVersion,
        ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(method === 'POST' && { body: form }),
      timeoutMs,
      maxBytes,
    })
  }
  type Read<T> = Parameters<typeof readReply<T>>[1]
  const call = async <T>(request: Request, read: Read<T>): Promise<T> => {
    const reply = await send(request)
    if (reply.status !== 200) throw faultOf(reply)
    return readReply(reply.body, read)
  }
  /** Returns undefined where the provider has no such object. */
  const find = async <T>(request: Request, read: Read<T>): Promise<T | undefined> => {
    const reply = await send(request)
    if (reply.status === notFound) return undefined
    if (reply.status !== 200) throw faultOf(reply)
    return readReply(reply.body, read)
  }
  const make = async (request: Request & { key: string }): Promise<Made<Page>> => {
    const reply = await send(request)
    if (reply.status === 200) return { made: readReply(reply.body, pageOf) }
    const refusal = faultOf(reply)
    if (reply.status < serverError && refusal.code !== 'upstream_rejected') throw refusal
    return { refusal }
  }
  const id = encodeURIComponent
  const session = (sessionId: string) =>
    find({ method: 'GET', path: `checkout/sessions/${id(sessionId)}` }, sessionOf)

  return {
    price: (priceId) => call({ method: 'GET', path: `prices/${id(priceId)}` }, priceOf),

    createSession: ({ userId, priceId, successUrl, cancelUrl, expiresAt }, key) =>
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
          metadata: { [userField]: userId },
          subscription_data: { metadata: { [userField]: userId } },
        },
      }),

    session,

    async expireSession(sessionId) {
      const reply = await send({ method: 'POST', path: `checkout/sessions/${id(sessionId)}/expire` })
      if (reply.status === 200) return readReply(reply.body, sessionOf)
      // A session that is not open any more is refused with a status that other failures have too.
      const seen = await session(sessionId)
      if (seen?.status === 'open') throw faultOf(reply)
      return seen
    },

    createChange: ({ customerId, subscriptionId, itemId, priceId, returnUrl }, key) =>
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

    subscription: (subscriptionId) =>
      find({ method: 'GET', path: `subscriptions/${id(subscriptionId)}` }, subscriptionOf),

    setCancelAtPeriodEnd: (subscriptionId, isWanted) =>
      find(
        {
          method: 'POST',
          path: `subscriptions/${id(subscriptionId)}`,
          fields: { cancel_at_period_end: isWanted },
        },
        subscriptionOf,
      ),

    async cancel(subscriptionId) {
      const path = `subscriptions/${id(subscriptionId)}`
      const reply = await send({ method: 'DELETE', path })
      const hasEnded = errorOf(reply.body).code === 'resource_missing'
      if (reply.status !== 200 && !hasEnded) throw faultOf(reply)
    },

    invoices: (subscriptionId) =>
      call(
        {
          method: 'GET',
          path: 'invoices',
          fields: { subscription: subscriptionId, limit: invoicesMax, expand: ['data.payments'] },
        },
        invoicesOf,
      ),

    async payment(paymentIntentId) {
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

    async refund(paymentIntentId) {
      const fields = { payment_intent: paymentIntentId }
      const reply = await send({ method: 'POST', path: 'refunds', fields })
      if (reply.status !== 200 && !doneCodes.includes(errorOf(reply.body).code ?? '')) throw faultOf(reply)
    },
  }
}
