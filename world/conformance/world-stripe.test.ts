/** The local payment provider, judged by Stripe's own client. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import Stripe from 'stripe'
import { eventually } from '../../test/harness/gateway.ts'
import { ownWorld } from '../../test/harness/own-world.ts'
import { cards, day, type Provider, pay, providerOf, sendForm, tryToPay } from '../../test/harness/payer.ts'

const key = 'sk_test_portico_local_world'
const secret = 'whsec_portico_local_world'
const plus = 'price_local_plus_month'
const pro = 'price_local_pro_month'

let world: Awaited<ReturnType<typeof ownWorld>>
let provider: Provider
let stripe: Stripe
let shop: Server
let shopUrl: string
let received: { body: string; signature: string }[] = []

const clientWith = (apiKey: string, maxNetworkRetries = 0) => {
  const { hostname, port } = new URL(world.urls.stripe)
  return new Stripe(apiKey, { host: hostname, port: Number(port), protocol: 'http', maxNetworkRetries })
}
before(async () => {
  world = await ownWorld([])
  provider = providerOf(world.urls.control)
  stripe = clientWith(key)
  shop = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const signature = String(request.headers['stripe-signature'])
      received.push({ body: Buffer.concat(chunks).toString(), signature })
      response.writeHead(200).end()
    })
  })
  await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve))
  shopUrl = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`
})
afterEach(async () => {
  await Promise.all([provider.honest(), provider.errors(0), provider.heal()])
})
after(async () => {
  shop?.close()
  await world?.[Symbol.asyncDispose]()
})

type SessionParams = Parameters<Stripe['checkout']['sessions']['create']>[0]
const paramsOf = (more: object = {}): NonNullable<SessionParams> => ({
  mode: 'subscription',
  line_items: [{ price: plus, quantity: 1 }],
  client_reference_id: 'user-1',
  success_url: `${shopUrl}/ok?session_id={CHECKOUT_SESSION_ID}`,
  cancel_url: `${shopUrl}/no`,
  metadata: { user: 'u' },
  subscription_data: { metadata: { user: 'u' } },
  ...more,
})
const create = (more: object = {}, idempotencyKey?: string) =>
  stripe.checkout.sessions.create(paramsOf(more), idempotencyKey ? { idempotencyKey } : {})
const idOf = (reference: unknown): string =>
  typeof reference === 'string' ? reference : (reference as { id: string }).id

async function subscribed(card: string = cards.paid, more: object = {}) {
  const session = await create(more)
  await pay(session.url!, card)
  const paid = await stripe.checkout.sessions.retrieve(session.id)
  const subscription = await stripe.subscriptions.retrieve(idOf(paid.subscription))
  return { session: paid, subscription, customer: idOf(paid.customer) }
}
const errorOf = async (run: () => Promise<unknown>) => {
  const error = await run().then(
    () => assert.fail('the client got an answer'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof Stripe.errors.StripeError, String(error))
  return error
}
const seconds = (from: number) => Math.floor(Date.now() / 1_000) + from
const invoicesOf = async (subscription: string) =>
  (await stripe.invoices.list({ subscription, expand: ['data.payments'] })).data
const paymentOf = (invoice: { payments?: { data: { payment: { payment_intent?: unknown } }[] } }) =>
  idOf(invoice.payments?.data[0]?.payment.payment_intent)

test('a session is made, read, listed and paid, and its subscription renews monthly', async () => {
  const session = await create({ expires_at: seconds(3_600) })
  assert.deepEqual([session.status, session.payment_status, session.amount_total], ['open', 'unpaid', 1_000])
  const page = await (await fetch(session.url!)).text()
  assert.match(page, /Subscribe to Plus/)
  const { location } = await sendForm(session.url!, { card: cards.paid, email: 'ada@example.com' })
  assert.equal(location, `${shopUrl}/ok?session_id=${session.id}`)
  const paid = await stripe.checkout.sessions.retrieve(session.id, {
    expand: ['line_items', 'subscription.latest_invoice'],
  })
  assert.deepEqual([paid.status, paid.payment_status, paid.url], ['complete', 'paid', null])
  const subscription = paid.subscription as Stripe.Subscription
  assert.deepEqual([subscription.status, subscription.metadata.user], ['active', 'u'])
  assert.equal((subscription.latest_invoice as Stripe.Invoice).status, 'paid')
  assert.equal(paid.line_items?.data[0]?.price?.id, plus)
  const item = subscription.items.data[0]!
  const days = (item.current_period_end - item.current_period_start) / day
  assert.ok(days >= 28 && days <= 31, String(days))
  assert.deepEqual(
    (await stripe.checkout.sessions.list({ subscription: subscription.id })).data.map(({ id }) => id),
    [session.id],
  )
})

test('a session expires by a call and by the clock, and is not paid afterwards', async () => {
  const [called, timed] = [await create(), await create({ expires_at: seconds(31 * 60) })]
  assert.equal((await stripe.checkout.sessions.expire(called.id)).status, 'expired')
  assert.match((await errorOf(() => stripe.checkout.sessions.expire(called.id))).message, /status/)
  assert.equal((await tryToPay(called.url!, cards.paid)).status, 410)
  await provider.advance(32 * 60)
  assert.equal((await stripe.checkout.sessions.retrieve(timed.id)).status, 'expired')
})

test('what the API refuses has the type, code and parameter of an error', async () => {
  const price = await errorOf(() => create({ line_items: [{ price: 'price_none', quantity: 1 }] }))
  assert.deepEqual(
    [price.statusCode, price.type, price.code, price.param],
    [400, 'StripeInvalidRequestError', 'resource_missing', 'line_items[0][price]'],
  )
  assert.ok(price.requestId)
  const soon = await errorOf(() => create({ expires_at: seconds(600) }))
  assert.equal(soon.param, 'expires_at')
  const unknown = await errorOf(() => create({ colour: 'red' }))
  assert.deepEqual([unknown.code, unknown.param], ['parameter_unknown', 'colour'])
  const missing = await errorOf(() => stripe.subscriptions.retrieve('sub_none'))
  assert.deepEqual([missing.statusCode, missing.code], [404, 'resource_missing'])
  const live = await errorOf(() => clientWith('sk_live_aaaaaaaaaaaa').prices.retrieve(plus))
  assert.equal(live.type, 'StripeAuthenticationError')
})

test('a key answers as it did the first time, with failures too, and refuses another request', async () => {
  const first = await create({}, 'key-1')
  const second = await create({}, 'key-1')
  assert.equal(second.id, first.id)
  assert.equal(second.lastResponse.headers['idempotent-replayed'], 'true')
  const other = await errorOf(() => create({ line_items: [{ price: pro, quantity: 1 }] }, 'key-1'))
  assert.deepEqual([other.statusCode, other.type], [400, 'StripeIdempotencyError'])
  await provider.errors(1)
  for (const _ of [1, 2]) {
    const failure = await errorOf(() => create({}, 'key-2'))
    assert.deepEqual([failure.statusCode, failure.type], [500, 'StripeAPIError'])
  }
  assert.equal((await create({}, 'key-3')).status, 'open')
  await provider.advance(day + 1)
  assert.notEqual((await create({}, 'key-1')).id, first.id)
  assert.equal((await create({}, 'key-2')).status, 'open')
})

test('the client repeats what got no answer under one key, and makes one session', async () => {
  const client = clientWith(key, 2)
  const before = (await stripe.checkout.sessions.list({ limit: 100 })).data.length
  await provider.faults({ drop_reply: true, count: 1 })
  const session = await client.checkout.sessions.create(paramsOf())
  assert.equal(session.status, 'open')
  const found = await stripe.checkout.sessions.list({ limit: 100 })
  assert.equal(found.data.length, before + 1)
})

test('lists come in pages, newest first, in both directions', async () => {
  const made: string[] = []
  for (let index = 0; index < 5; index += 1) made.unshift((await create()).id)
  const first = await stripe.checkout.sessions.list({ limit: 2 })
  assert.deepEqual([first.data.map(({ id }) => id), first.has_more], [made.slice(0, 2), true])
  const found: string[] = []
  for await (const { id } of stripe.checkout.sessions.list({ limit: 2 })) {
    found.push(id)
    if (found.length === 5) break
  }
  assert.deepEqual(found, made)
  const back = await stripe.checkout.sessions.list({ limit: 2, ending_before: made[3]! })
  assert.deepEqual(
    back.data.map(({ id }) => id),
    made.slice(1, 3),
  )
})

test('each test card does what it is for', async () => {
  const session = await create()
  for (const card of [cards.declined, cards.noFunds]) {
    const { status, text } = await tryToPay(session.url!, card)
    assert.equal(status, 402)
    assert.match(text, card === cards.declined ? /declined/ : /insufficient funds/)
  }
  assert.match((await tryToPay(session.url!, cards.asks)).text, /Is it you/)
  assert.equal((await tryToPay(session.url!, cards.asks, { bank: 'no' })).status, 402)
  assert.equal((await stripe.checkout.sessions.retrieve(session.id)).status, 'open')
  assert.equal((await tryToPay(session.url!, cards.asks, { bank: 'yes' })).status, 303)
  assert.equal((await stripe.checkout.sessions.retrieve(session.id)).status, 'complete')
  const { customer } = await subscribed(cards.disputed)
  const [charge] = (await stripe.charges.list({ customer })).data
  assert.equal(charge?.disputed, true)
  const { data } = await stripe.disputes.list({ payment_intent: idOf(charge?.payment_intent) })
  assert.equal(data[0]?.status, 'needs_response')
  const won = await stripe.disputes.update(data[0]!.id, {
    evidence: { uncategorized_text: 'winning_evidence' },
  })
  assert.equal(won.status, 'won')
})

test('invoices name their payments, which are refunded in parts, and never beyond what was paid', async () => {
  const { subscription } = await subscribed()
  const [invoice] = await invoicesOf(subscription.id)
  assert.equal(invoice?.parent?.subscription_details?.subscription, subscription.id)
  const payment_intent = paymentOf(invoice!)
  const part = await stripe.refunds.create({ payment_intent, amount: 400 })
  assert.equal(part.amount, 400)
  assert.equal((await stripe.refunds.create({ payment_intent })).amount, 600)
  const again = await errorOf(() => stripe.refunds.create({ payment_intent }))
  assert.equal(again.code, 'charge_already_refunded')
  const paid = await stripe.paymentIntents.retrieve(payment_intent, { expand: ['latest_charge'] })
  const charge = paid.latest_charge as Stripe.Charge
  assert.deepEqual([charge.amount_refunded, charge.refunded], [1_000, true])
})

test('subscriptions renew by the clock, and end when they were cancelled', async () => {
  const { subscription } = await subscribed()
  await provider.advance(32 * day)
  assert.deepEqual(
    (await invoicesOf(subscription.id)).map(({ billing_reason: reason, status }) => [reason, status]),
    [
      ['subscription_cycle', 'paid'],
      ['subscription_create', 'paid'],
    ],
  )
  const cancelled = await stripe.subscriptions.update(subscription.id, { cancel_at_period_end: true })
  assert.deepEqual([cancelled.status, cancelled.cancel_at_period_end], ['active', true])
  await provider.advance(32 * day)
  const ended = await stripe.subscriptions.retrieve(subscription.id)
  assert.deepEqual([ended.status, ended.ended_at !== null], ['canceled', true])
  const { subscription: other } = await subscribed()
  assert.equal((await stripe.subscriptions.cancel(other.id)).status, 'canceled')
  assert.equal((await errorOf(() => stripe.subscriptions.cancel(other.id))).code, 'resource_missing')
})

test('a renewal that fails is tried again, is paid on its page, or ends the subscription', async () => {
  const [one, two] = [await subscribed(cards.renewalFails), await subscribed(cards.renewalFails)]
  await provider.advance(32 * day)
  const open = (await invoicesOf(one.subscription.id))[0]!
  assert.deepEqual([open.status, open.attempted], ['open', true])
  assert.equal((await stripe.subscriptions.retrieve(one.subscription.id)).status, 'past_due')
  assert.equal((await tryToPay(open.hosted_invoice_url!, cards.paid)).status, 200)
  assert.equal((await stripe.subscriptions.retrieve(one.subscription.id)).status, 'active')
  await provider.advance(20 * day)
  assert.equal((await stripe.subscriptions.retrieve(two.subscription.id)).status, 'canceled')
})

test('a change is confirmed on a page, begins a new period and deducts what is unused', async () => {
  const { subscription, customer } = await subscribed()
  await provider.advance(10 * day)
  const portal = await stripe.billingPortal.sessions.create({
    customer,
    flow_data: {
      type: 'subscription_update_confirm',
      after_completion: { type: 'redirect', redirect: { return_url: `${shopUrl}/ok` } },
      subscription_update_confirm: {
        subscription: subscription.id,
        items: [{ id: subscription.items.data[0]!.id, price: pro, quantity: 1 }],
      },
    },
  })
  assert.match(await (await fetch(portal.url)).text(), /Due today/)
  assert.equal((await sendForm(portal.url, {})).location, `${shopUrl}/ok`)
  const [change] = await invoicesOf(subscription.id)
  assert.deepEqual([change?.billing_reason, change?.status], ['subscription_update', 'paid'])
  assert.ok(change!.total < 4_000 && change!.total > 3_000, String(change?.total))
  const changed = await stripe.subscriptions.retrieve(subscription.id)
  assert.equal(changed.items.data[0]?.price.id, pro)
  assert.equal((await sendForm(portal.url, {})).status, 410)
})

test('events are signed as the client checks them, and are repeated until they are accepted', async () => {
  await provider.delivered()
  received = []
  const { subscription } = await subscribed()
  await provider.delivered()
  const events = received.map(({ body, signature }) =>
    stripe.webhooks.constructEvent(body, signature, secret, Number.MAX_SAFE_INTEGER),
  )
  const types = events.map(({ type }) => type)
  for (const type of ['customer.subscription.created', 'invoice.paid', 'checkout.session.completed'])
    assert.ok(types.includes(type as never), `${type} of ${types.join()}`)
  const created = events.find(({ type }) => type === 'customer.subscription.created')
  assert.equal((created!.data.object as Stripe.Subscription).id, subscription.id)
  assert.equal((await stripe.events.retrieve(created!.id)).type, created!.type)
})

test('the dial repeats, drops and delays events, and adds those that a shop must refuse', async () => {
  received = []
  await provider.dial({ drop: true })
  await subscribed()
  await provider.delivered()
  assert.equal(received.length, 0)
  await provider.dial({ duplicates: 2, forged: true, changed: true, old: true, future: true, live: true })
  await subscribed()
  await provider.delivered()
  const judged = received.map(({ body, signature }) => {
    const at = Number(/t=(\d+)/.exec(signature)?.[1])
    try {
      return stripe.webhooks.constructEvent(body, signature, secret, 300, undefined, at).livemode
    } catch {
      return 'refused'
    }
  })
  const count = (what: unknown) => judged.filter((each) => each === what).length
  const { length } = received
  assert.equal(count('refused'), (length / 8) * 2, 'forged and changed ones')
  assert.equal(count(true), length / 8)
  await provider.dial({ delay_seconds: 600 })
  received = []
  await subscribed()
  assert.equal(received.length, 0)
  await provider.advance(601)
  await eventually(async () => received.length > 0 || undefined, 'the delayed events')
})

test('endpoints are registered with secrets of their own', async () => {
  received = []
  const endpoint = await stripe.webhookEndpoints.create({
    url: `${shopUrl}/elsewhere`,
    enabled_events: ['invoice.paid'],
  })
  assert.match(endpoint.secret!, /^whsec_/)
  await subscribed()
  await provider.delivered()
  const [event] = received.map(({ body, signature }) =>
    stripe.webhooks.constructEvent(body, signature, endpoint.secret!, Number.MAX_SAFE_INTEGER),
  )
  assert.deepEqual([received.length, event?.type], [1, 'invoice.paid'])
  const moved = await stripe.webhookEndpoints.update(endpoint.id, { url: `${shopUrl}/moved` })
  assert.equal(moved.url, `${shopUrl}/moved`)
  await stripe.webhookEndpoints.del(endpoint.id)
  assert.equal((await stripe.webhookEndpoints.list()).data.length, 0)
})
