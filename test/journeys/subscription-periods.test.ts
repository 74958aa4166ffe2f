/** Plans over time: pages end, periods renew or are not paid, and a larger plan begins within one. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { cards, day, pay, sendForm, tryToPay } from '../harness/payer.ts'
import { openShop, type Shop } from './plan-shop.ts'
import { signedInPerson } from './signed-in.ts'
import {
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
  yearPrice,
} from './subscription-calls.ts'

/** A price of the provider's account that the settings of the gateway do not name. */
const unnamedPrice = 'price_local_old_month'

let shop: Shop
before(async () => {
  shop = await openShop({}, { ownWorld: 'time moves' })
})
afterEach(() => shop.calm())
after(() => shop?.close())

test('an intent has one page for half an hour, and one price; other pages of the user end', async () => {
  const person = await newPerson(shop.gateway.url)
  const intent = randomUUID()
  const [first, second] = [await opened(person, plusPrice, intent), await opened(person, plusPrice, intent)]
  assert.deepEqual([second.checkout_url, second.reused], [first.checkout_url, true])
  const twins = await Promise.all([1, 2, 3].map(() => opened(person, plusPrice, intent)))
  assert.equal(new Set([first, ...twins].map(({ checkout_url }) => checkout_url)).size, 1)
  const other = await checkout(person, proPrice, { intent })
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
  const elsewhere = await opened(person, proPrice)
  assert.equal((await tryToPay(first.checkout_url, cards.paid)).status, 410)
  await shop.provider.advance(31 * 60)
  assert.equal((await tryToPay(elsewhere.checkout_url, cards.paid)).status, 410)
  const renewed = await eventually(async () => {
    const page = await opened(person, plusPrice, intent)
    return page.checkout_url === first.checkout_url ? undefined : page
  }, 'a new page')
  assert.equal(renewed.checkout_id, first.checkout_id)
  await pay(renewed.checkout_url)
  await creditsBecome(person, plusCredits)
  const paid = await checkout(person, plusPrice, { intent })
  assert.deepEqual([paid.status, paid.body.reason], [409, 'paid'])
})

test('without any event the credits come within five minutes', async () => {
  await shop.provider.dial({ drop: true })
  const person = await newPerson(shop.gateway.url)
  await pay((await opened(person)).checkout_url)
  assert.equal(await planCredits(person), 0)
  await shop.provider.advance(300)
  await creditsBecome(person, plusCredits)
})

test('events that are ten minutes late grant once', async () => {
  await shop.provider.dial({ delay_seconds: 600 })
  const person = await newPerson(shop.gateway.url)
  await pay((await opened(person)).checkout_url)
  await shop.provider.advance(300)
  await creditsBecome(person, plusCredits)
  await shop.provider.advance(600)
  await shop.provider.delivered()
  assert.deepEqual(await planHistory(person), [plusCredits])
})

test('a larger plan is confirmed on a page within the period, and completes its credits', async () => {
  const person = await subscriber(shop.gateway.url, { person: await signedInPerson(shop.gateway) })
  await shop.spend(300, person)
  // Credits that a running answer holds are not spent yet.
  const held = await shop.spend(100, person, 'hold')
  await shop.provider.advance(10 * day)
  const [page, secondPage] = [await opened(person, proPrice), await opened(person, proPrice)]
  assert.equal((await sendForm(page.checkout_url, {})).status, 303)
  await creditsBecome(person, proCredits - 100)
  await shop.release(held)
  await creditsBecome(person, proCredits)
  const plan = await planOf(person)
  assert.deepEqual([plan.plan, plan.payments.length, plan.payments[0]?.credits], ['pro', 2, proCredits - 500])
  assert.ok(Number(plan.payments[0]?.amount_usd) < 40, plan.payments[0]?.amount_usd)
  for (const price of [plusPrice, teamPrice]) {
    const smaller = await checkout(person, price)
    assert.deepEqual([smaller.status, smaller.body.reason], [409, 'smaller_plan'], price)
  }
  assert.ok((await planEvents(person)).includes('subscription.changed'))
  // The provider ends no page of a change: one that was opened before may be confirmed once the credits are spent.
  await shop.spend(proCredits - 500, person)
  assert.equal((await sendForm(secondPage.checkout_url, {})).status, 303)
  const again = await planBecomes(
    person,
    ({ payments }) => payments.length === 3,
    'the second page is confirmed',
  )
  assert.deepEqual([again.payments[0]?.credits, await planCredits(person)], [0, 500])
})

test('a change that bills the rest of a period brings that part of the credits', async () => {
  const person = await subscriber(shop.gateway.url)
  // The page of a change charges the stored card, so a program does not get its address.
  const byProgram = await checkout(person, proPrice)
  assert.deepEqual([byProgram.status, byProgram.body.code], [403, 'step_up_required'])
  const renewed = await person.call('POST /v1/subscriptions/cancel', { body: { undo: true } })
  assert.deepEqual([renewed.status, renewed.body.code], [403, 'step_up_required'])
  await shop.provider.advance(20 * day)
  const [payment] = (await planOf(person)).payments
  const paid = await shop.stripe.invoices.retrieve(payment!.invoice_id)
  const subscription = await shop.stripe.subscriptions.retrieve(
    String(paid.parent?.subscription_details?.subscription),
  )
  const portal = await shop.stripe.billingPortal.sessions.create({
    customer: String(paid.customer),
    configuration: 'bpc_local_same_period',
    flow_data: {
      type: 'subscription_update_confirm',
      subscription_update_confirm: {
        subscription: subscription.id,
        items: [{ id: subscription.items.data[0]!.id, price: proPrice, quantity: 1 }],
      },
    },
  })
  assert.equal((await sendForm(portal.url, {})).status, 200)
  const plan = await planBecomes(
    person,
    (found) => found.plan === 'pro' && found.payments.length === 2,
    'the plan is pro',
  )
  const change = await shop.stripe.invoices.retrieve(plan.payments[0]!.invoice_id)
  const billed = change.lines.data.find(({ amount }) => amount > 0)!.amount
  assert.ok(billed > 1_000 && billed < 1_600, String(billed))
  // The plan has as many credits as it costs cents.
  assert.deepEqual([plan.payments[0]!.credits, await planCredits(person)], [billed - plusCredits, billed])
})

test('a plan ends also while the provider holds a smaller price for its next period', async () => {
  const person = await subscriber(shop.gateway.url, { person: await signedInPerson(shop.gateway) })
  const [smaller, larger] = [await opened(person, proPrice), await opened(person, yearPrice)]
  assert.equal((await sendForm(larger.checkout_url, {})).status, 303)
  await planBecomes(person, ({ payments }) => payments.length === 2, 'the larger plan')
  assert.equal((await sendForm(smaller.checkout_url, {})).status, 303)
  const [subscription] = (await shop.stripe.subscriptions.list({ limit: 1 })).data
  assert.match(String(subscription!.schedule), /^sub_sched_/)
  await assert.rejects(
    shop.stripe.subscriptions.update(subscription!.id, { cancel_at_period_end: true }),
    /managed by the subscription schedule/,
  )
  const { body } = await person.call<PlanView>('POST /v1/subscriptions/cancel')
  assert.deepEqual([body.plan, body.cancel_at_period_end], ['pro', true])
  await shop.provider.advance(367 * day)
  await planBecomes(person, ({ status }) => status === 'canceled', 'the plan has ended')
})

test('a change of plan is seen without any event', async () => {
  const person = await subscriber(shop.gateway.url, { person: await signedInPerson(shop.gateway) })
  await shop.provider.dial({ drop: true })
  const page = await opened(person, proPrice)
  assert.equal((await sendForm(page.checkout_url, {})).status, 303)
  await shop.provider.advance(300)
  await creditsBecome(person, proCredits)
})

test('a plan renews by the clock, and its unspent credits end with their period', async () => {
  const person = await subscriber(shop.gateway.url)
  await shop.spend(100, person)
  const { plan_until: until } = (await person.call<{ plan_until: string }>('GET /v1/user')).body
  const [item] = (await shop.stripe.subscriptions.list({ limit: 1 })).data[0]!.items.data
  const periodSeconds = item!.current_period_end - item!.current_period_start
  assert.equal(new Date(until).getTime(), item!.current_period_end * 1_000)
  // On the last day it is read every hour, so that a renewal whose event is lost is found soon.
  await shop.provider.advance(periodSeconds - day / 2)
  const intervals = () =>
    shop.sql<{ every_seconds: number }>(
      `select w.every_seconds from plan_watch w join plan_subscription s using (id)
       join app_user u on u.id = s.user_id where u.agent_id = $1`,
      [person.agentId],
    )
  await eventually(
    async () => (await intervals())[0]?.every_seconds === 3_600 || undefined,
    'hourly readings',
  )
  await shop.provider.advance(3 * day)
  await creditsBecome(person, plusCredits)
  assert.deepEqual(await planHistory(person), [plusCredits, plusCredits])
  assert.deepEqual(await planEvents(person), ['subscription.renewed', 'subscription.started'])
})

test('a renewal that fails brings nothing until it is paid on its page', async () => {
  const person = await subscriber(shop.gateway.url, { card: cards.renewalFails })
  await shop.provider.advance(32 * day)
  const due = await planBecomes(person, ({ status }) => status === 'past_due', 'the plan is past due')
  assert.ok(due.pay_url)
  assert.deepEqual(await planHistory(person), [plusCredits])
  for (const price of [plusPrice, proPrice]) {
    const refused = await checkout(person, price)
    assert.deepEqual([refused.status, refused.body.reason], [409, 'past_due'], price)
  }
  assert.equal((await tryToPay(due.pay_url!, cards.paid)).status, 200)
  const paid = await planBecomes(person, ({ status }) => status === 'active', 'the plan is active')
  assert.equal(paid.pay_url, null)
  assert.deepEqual(await planHistory(person), [plusCredits, plusCredits])
  assert.ok((await planEvents(person)).includes('subscription.payment_failed'))
})

test('a renewal that is never paid ends the plan and its credits', async () => {
  const person = await subscriber(shop.gateway.url, { card: cards.renewalFails })
  await shop.provider.advance(32 * day)
  await planBecomes(person, ({ status }) => status === 'past_due', 'the plan is past due')
  await shop.provider.advance(20 * day)
  await planBecomes(person, ({ status }) => status === 'canceled', 'the plan has ended')
  assert.equal(await planCredits(person), 0)
  assert.equal((await person.call('GET /v1/user')).body.plan, 'free')
})

test('a plan is cancelled for the end of its period, renews again if that is undone, and ends otherwise', async () => {
  const person = await subscriber(shop.gateway.url, { person: await signedInPerson(shop.gateway) })
  const cancel = (body?: object) => person.call<PlanView>('POST /v1/subscriptions/cancel', { body })
  assert.deepEqual((await cancel()).body.cancel_at_period_end, true)
  assert.deepEqual((await cancel()).body.cancel_at_period_end, true)
  assert.deepEqual((await cancel({ undo: true })).body.cancel_at_period_end, false)
  await shop.provider.advance(32 * day)
  await eventually(
    async () => ((await planHistory(person)).length === 2 ? true : undefined),
    'the second period',
  )
  await cancel()
  assert.equal(await planCredits(person), plusCredits)
  await shop.provider.advance(32 * day)
  await planBecomes(person, ({ status }) => status === 'canceled', 'the plan has ended')
  assert.equal(await planCredits(person), 0)
  const events = await planEvents(person)
  assert.deepEqual(events.slice(0, 2), ['subscription.ended', 'subscription.cancelled'])
  await pay((await opened(person)).checkout_url)
  await creditsBecome(person, plusCredits)
})

test('a paid invoice whose price the gateway does not know brings nothing, is reported in the log and read again', async () => {
  const person = await newPerson(shop.gateway.url)
  const { user_id: userId } = (await person.call<{ user_id: string }>('GET /v1/user')).body
  const page = await shop.foreignPage(shop.gateway.url, userId, unnamedPrice)
  await pay(page.url!)
  await planBecomes(person, ({ plan }) => plan === unnamedPrice, 'the plan is known')
  assert.equal(await planCredits(person), 0)
  assert.ok(shop.gateway.lines.some((line) => line.includes('a paid invoice brings no credits')))
  const [watched] = await shop.sql<{ every_seconds: number }>(
    `select every_seconds from plan_watch where id like 'sub_%' and user_id = $1`,
    [userId],
  )
  assert.equal(watched?.every_seconds, 120)
})
