/** Plans: paid on a page of the payment provider, and credited exactly once for each paid invoice. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import { eventually, http } from '../harness/gateway.ts'
import { cards, day, pay, tryToPay } from '../harness/payer.ts'
import { openShop, type Shop } from './plan-shop.ts'
import {
  allCredits,
  checkout,
  creditsBecome,
  newPerson,
  opened,
  type PlanView,
  planBecomes,
  planCredits,
  planEvents,
  planHistory,
  planOf,
  plusCredits,
  plusPrice,
  proCredits,
  proPrice,
  subscriber,
  teamPrice,
} from './subscription-calls.ts'

const secret = 'whsec_portico_local_world'
const unknownSubscription = { id: 'sub_unknown', object: 'subscription', metadata: {} }

let shop: Shop
before(async () => {
  // Wrong signatures of these tests come from one address.
  shop = await openShop({ RATE_REFUSED: '1000' })
})
afterEach(() => shop.calm())
after(() => shop?.close())

const eventOf = (object: object) => ({
  id: `evt_${randomUUID()}`,
  object: 'event',
  type: 'customer.subscription.updated',
  livemode: false,
  data: { object },
})
const post = (payload: string, signature?: string) =>
  http<{ received?: string; code?: string }>(`${shop.gateway.url}/webhooks/stripe`, {
    method: 'POST',
    body: payload,
    headers: signature === undefined ? {} : { 'stripe-signature': signature },
  })
const signed = (payload: string, offset = 0) => {
  const timestamp = Math.floor(Date.now() / 1_000) + offset
  return post(payload, shop.stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }))
}

test('a plan is chosen, paid on its page, and brings its credits once', async () => {
  const person = await newPerson(shop.gateway.url)
  const plans = await http<{ plans: { price_id: string; price_usd: string; credits: number }[] }>(
    `${shop.gateway.url}/v1/subscriptions/plans`,
  )
  assert.deepEqual(
    plans.body.plans.map((each) => [each.price_id, each.price_usd, each.credits]),
    [
      ['price_local_plus_month', '10', 800],
      ['price_local_pro_month', '40', 4_000],
      ['price_local_pro_year', '400', 48_000],
      [teamPrice, '40', proCredits],
    ],
  )
  assert.equal((await planOf(person)).status, 'none')
  const before = await allCredits(person)
  const page = await opened(person)
  const { plan, price_usd, interval, status, reused } = page
  assert.deepEqual([plan, price_usd, interval, status, reused], ['plus', '10', 'month', 'open', false])
  // A token that may only read sees the task, and not the address with which the page can be paid or confirmed.
  const tasks = JSON.stringify((await person.call('GET /v1/tasks?kind=subscriptions_checkout')).body)
  assert.ok(tasks.includes(page.checkout_id) && !tasks.includes(page.checkout_url), tasks)
  const { location } = await tryToPay(page.checkout_url, cards.paid)
  assert.match(location ?? '', new RegExp(`^${shop.gateway.url}/checkout/paid`))
  assert.match(await (await fetch(location!)).text(), /Thank you/)
  await creditsBecome(person, plusCredits)
  assert.equal(await allCredits(person), before + plusCredits)
  const user = (await person.call('GET /v1/user')).body
  assert.deepEqual([user.plan, user.plan_status], ['plus', 'active'])
  assert.ok(new Date(String(user.plan_until)).getTime() > Date.now() + 27 * day * 1_000)
  assert.deepEqual(await planHistory(person), [plusCredits])
  assert.deepEqual(await planEvents(person), ['subscription.started'])
  const again = await checkout(person)
  assert.deepEqual([again.status, again.body.code, again.body.reason], [409, 'conflict', 'subscribed'])
})

test('what cannot be bought is refused with what can', async () => {
  const person = await newPerson(shop.gateway.url)
  const unknown = await checkout(person, 'price_none')
  assert.equal(unknown.status, 422)
  assert.match(JSON.stringify(unknown.body), /price_local_pro_year/)
  assert.equal(
    (await checkout(person, plusPrice, { intent: '00000000-0000-1000-8000-000000000000' })).status,
    422,
  )
  const cancelled = await person.call<PlanView>('POST /v1/subscriptions/cancel')
  assert.deepEqual([cancelled.status, cancelled.body.code], [409, 'conflict'])
})

test('a page is made once although the provider fails, its answer is lost, or it is away', async () => {
  const person = await newPerson(shop.gateway.url)
  const intent = randomUUID()
  await shop.provider.errors(1)
  const page = await opened(person, plusPrice, intent)
  await shop.provider.faults({ drop_reply: true, count: 1, methods: ['POST /v1/checkout/sessions'] })
  const other = await opened(person, proPrice)
  assert.notEqual(other.checkout_url, page.checkout_url)
  const open = (await shop.stripe.checkout.sessions.list({ status: 'open', limit: 100 })).data
  assert.equal(open.filter(({ metadata }) => metadata?.portico_user !== undefined).length >= 1, true)
  await shop.provider.faults({ status: 503 })
  const away = await checkout(person, plusPrice, { intent: randomUUID() })
  assert.deepEqual([away.status, away.body.code], [503, 'unavailable'])
  await shop.provider.heal()
  await pay((await opened(person, plusPrice)).checkout_url)
  await creditsBecome(person, plusCredits)
})

test('events that come 50 times and in another order grant once', async () => {
  await shop.provider.dial({ duplicates: 49, reorder: true })
  const person = await subscriber(shop.gateway.url)
  await shop.provider.delivered()
  assert.deepEqual([await planCredits(person), await planHistory(person)], [plusCredits, [plusCredits]])
})

test('forged, changed, old and future events, and those of the other mode, grant nothing', async () => {
  await shop.provider.dial({ drop: true, forged: true, changed: true, old: true, future: true, live: true })
  const person = await newPerson(shop.gateway.url)
  await pay((await opened(person)).checkout_url)
  await shop.provider.delivered()
  assert.deepEqual([await planCredits(person), await planEvents(person)], [0, []])
  // The true one is a hint to read what was paid.
  const [paid] = (await shop.stripe.subscriptions.list({ limit: 1 })).data
  assert.equal((await signed(JSON.stringify(eventOf(paid!)))).body.received, 'read')
  await creditsBecome(person, plusCredits)
})

test('an event is taken once, with a signature of now, and never of the other mode', async () => {
  const payload = JSON.stringify(eventOf(unknownSubscription))
  assert.deepEqual(
    [(await signed(payload)).body.received, (await signed(payload)).body.received],
    ['foreign', 'repeated'],
  )
  const live = { ...eventOf(unknownSubscription), livemode: true }
  assert.equal((await signed(JSON.stringify(live))).body.received, 'other_mode')
  for (const answer of [
    await post(payload),
    await post(payload, 't=1,v1=00'),
    await signed(payload, -301),
    await signed(payload, 302),
  ])
    assert.deepEqual([answer.status, answer.body.code], [400, 'bad_request'])
  assert.equal((await signed('{"id":1}')).status, 503)
  const large = 'x'.repeat(257 * 1024)
  assert.deepEqual([(await signed(large)).status, (await post(large)).status], [413, 400])
})

test('a declined card pays nothing, and one that the bank asks about pays after its answer', async () => {
  const person = await newPerson(shop.gateway.url)
  const page = await opened(person)
  assert.equal((await tryToPay(page.checkout_url, cards.declined)).status, 402)
  assert.equal((await tryToPay(page.checkout_url, cards.noFunds)).status, 402)
  assert.match((await tryToPay(page.checkout_url, cards.asks)).text, /Is it you/)
  assert.equal((await planOf(person)).status, 'none')
  assert.equal((await tryToPay(page.checkout_url, cards.asks, { bank: 'yes' })).status, 303)
  await creditsBecome(person, plusCredits)
})

test('a refund takes back what is unspent of its grant, in parts and whole, before and after spending', async () => {
  const person = await subscriber(shop.gateway.url)
  await shop.stripe.refunds.create({ payment_intent: await shop.paymentOf(person), amount: 250 })
  await creditsBecome(person, 600)
  await shop.spend(500, person)
  await creditsBecome(person, 100)
  await shop.stripe.refunds.create({ payment_intent: await shop.paymentOf(person) })
  await creditsBecome(person, 0)
  assert.deepEqual(await planHistory(person), [-100, -200, plusCredits])
  const plan = await planOf(person)
  assert.deepEqual(
    [plan.status, plan.payments[0]?.refunded_usd, plan.payments[0]?.credits_taken_back],
    ['active', '10', 300],
  )
})

test('a dispute suspends the plan and takes back what is unspent; one that is won returns it', async () => {
  const person = await newPerson(shop.gateway.url)
  await pay((await opened(person)).checkout_url, cards.disputed)
  await planBecomes(person, ({ status }) => status === 'suspended', 'the plan is suspended')
  const refused = await checkout(person, proPrice)
  assert.deepEqual([refused.status, refused.body.reason], [409, 'suspended'])
  assert.equal(await planCredits(person), 0)
  await shop.stripe.disputes.update(await shop.disputeOf(person), {
    evidence: { uncategorized_text: 'winning_evidence' },
  })
  await creditsBecome(person, plusCredits)
  assert.equal((await planOf(person)).status, 'active')
  assert.equal(
    (await planHistory(person)).reduce((sum, credits) => sum + credits, 0),
    plusCredits,
  )
})

test('of two pages that are paid at once one is the plan, and the other is cancelled and refunded', async () => {
  const person = await newPerson(shop.gateway.url)
  const first = await opened(person)
  // The end of the first page is lost, so that both can be paid.
  const { user_id: userId } = (await person.call<{ user_id: string }>('GET /v1/user')).body
  const second = await shop.foreignPage(shop.gateway.url, userId)
  await Promise.all([pay(first.checkout_url), pay(second.url!)])
  const refunded = await eventually(async () => {
    const { payments } = await planOf(person)
    return payments.length === 2 && payments.some(({ refunded_usd: usd }) => usd === '10')
      ? payments
      : undefined
  }, 'a refund')
  assert.deepEqual(refunded.map(({ credits }) => credits).sort(), [0, plusCredits])
  assert.equal(await planCredits(person), plusCredits)
  const ended = await shop.stripe.subscriptions.list({ status: 'canceled', limit: 100 })
  const own = ended.data.filter((each) => each.metadata.portico_user === userId)
  assert.equal(own.length, 1)
  await eventually(
    async () => (await planEvents(person)).includes('subscription.duplicate_refunded') || undefined,
    'the event of the refund',
  )
})

test('a cancellation shows although a reading that saw the plan before it ends later', async () => {
  const person = await subscriber(shop.gateway.url)
  const { id } = (await shop.stripe.subscriptions.list({ limit: 1 })).data[0]!
  await shop.provider.dial({ drop: true })
  const readings = async () =>
    (await shop.sql<{ reading: string }>('select reading from plan_subscription where id = $1', [id]))[0]!
      .reading
  await shop.provider.faults({ latency_ms: 3_000, count: 1, methods: [`POST /v1/subscriptions/${id}`] })
  const before = await readings()
  const cancelled = person.call<PlanView>('POST /v1/subscriptions/cancel')
  await eventually(async () => (await shop.provider.hits()) > 0 || undefined, 'the cancellation is under way')
  assert.equal((await signed(JSON.stringify(eventOf({ id, object: 'subscription' })))).body.received, 'read')
  await eventually(async () => (await readings()) !== before || undefined, 'a reading')
  assert.equal((await cancelled).body.cancel_at_period_end, true)
  assert.equal((await planOf(person)).cancel_at_period_end, true)
})

test('senders who never complete their bodies hold a few places for seconds, and are refused in the end', async () => {
  const payload = JSON.stringify(eventOf(unknownSubscription))
  const timestamp = Math.floor(Date.now() / 1_000)
  const signature = shop.stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  const hold = () => {
    const sent = request(`${shop.gateway.url}/webhooks/stripe`, {
      method: 'POST',
      headers: { 'content-length': 1_000, 'stripe-signature': signature },
    })
    sent.on('error', () => {})
    sent.write('x')
    const status = new Promise<number | undefined>((resolve) =>
      sent.on('response', (reply) => resolve(reply.resume().statusCode)),
    )
    return { sent, status }
  }
  const becomes = (status: number, what: string) =>
    eventually(async () => (await signed(payload)).status === status || undefined, what)
  // There are 24 places, so that some of these find none; the others are answered seconds later.
  const left = Array.from({ length: 30 }, hold)
  assert.equal(await Promise.race(left.map(({ status }) => status)), 503)
  for (const { sent } of left) sent.destroy()
  await becomes(200, 'a free place')
  // These stay, so that the gateway ends them; with those before, the address has left too many then.
  const staying = Array.from({ length: 30 }, hold)
  await becomes(429, 'the address is refused')
  for (const { sent } of staying) sent.destroy()
})
