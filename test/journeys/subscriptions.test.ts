/** Plans: paid on a page of the payment provider, and credited exactly once for each paid invoice. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import pg from 'pg'
import Stripe from 'stripe'
import { eventually, freshGateway, http } from '../harness/gateway.ts'
import { cards, day, type Provider, pay, providerOf, sendForm, tryToPay } from '../harness/payer.ts'
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
  yearPrice,
} from './subscription-calls.ts'
import type { Person } from './users.ts'
import { worldOf } from './world.ts'

const apply = 'select ledger_apply($1::jsonb, null, 0, now())'
const plansForSale = [
  `${plusPrice}:plus:${plusCredits}`,
  `${proPrice}:pro:${proCredits}`,
  `${yearPrice}:pro:48000`,
  `${teamPrice}:team:${proCredits}`,
].join()

describe('plans', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let provider: Provider
  let stripe: Stripe
  before(async () => {
    gateway = await freshGateway({ STRIPE_PLANS: plansForSale }, { ownWorld: 'time moves' })
    provider = providerOf(gateway.world)
    const { hostname, port } = new URL((await worldOf(gateway.world)).manifest.urls.stripe)
    stripe = new Stripe('sk_test_portico_local_world', {
      host: hostname,
      port: Number(port),
      protocol: 'http',
    })
  })
  afterEach(async () => {
    await Promise.all([provider.honest(), provider.errors(0), provider.heal()])
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  /** The newest payment of a person, at the provider. */
  const paymentOf = async (person: Person): Promise<string> => {
    const [payment] = (await planOf(person)).payments
    const invoice = await stripe.invoices.retrieve(payment!.invoice_id, { expand: ['payments'] })
    return String(invoice.payments?.data[0]?.payment.payment_intent)
  }
  const disputeOf = async (person: Person) => {
    const { data } = await stripe.disputes.list({ payment_intent: await paymentOf(person) })
    return data[0]!.id
  }
  /** Spends credits of the plan, beside those of the sign-up that are spent first, or puts them on hold. */
  const spend = async (credits: number, person: Person, move: 'transfer' | 'hold' = 'transfer') => {
    const key = `spent:${randomUUID()}`
    const client = new pg.Client({ connectionString: gateway.databaseUrl })
    await client.connect()
    try {
      const { rows } = await client.query(
        `select a.owner, a.sub_account from account a join app_user u on u.id = a.owner
         where u.agent_id = $1 and a.sub_account like 'credits:plan:%' and a.avail >= $2`,
        [person.agentId, credits],
      )
      const [{ owner, sub_account: subAccount }] = rows as [{ owner: string; sub_account: string }]
      const moves = [
        {
          move,
          key,
          debit: { owner, asset: 'credits', subAccount },
          credit: { owner: '00000000-0000-7000-8000-000000000000', asset: 'credits', subAccount: 'external' },
          amountUnits: String(credits),
          reason: 'test',
        },
      ]
      await client.query(apply, [JSON.stringify(moves)])
    } finally {
      await client.end()
    }
    return key
  }
  const release = async (key: string) => {
    const client = new pg.Client({ connectionString: gateway.databaseUrl })
    await client.connect()
    try {
      await client.query(apply, [JSON.stringify([{ move: 'void', key }])])
    } finally {
      await client.end()
    }
  }

  test('a plan is chosen, paid on its page, and brings its credits once', async () => {
    const person = await newPerson(gateway.url)
    const plans = await http<{ plans: { price_id: string; price_usd: string; credits: number }[] }>(
      `${gateway.url}/v1/subscriptions/plans`,
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
    const { location } = await tryToPay(page.checkout_url, cards.paid)
    assert.match(location ?? '', new RegExp(`^${gateway.url}/checkout/paid`))
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

  test('an intent has one page for half an hour, and one price; other pages of the user end', async () => {
    const person = await newPerson(gateway.url)
    const intent = randomUUID()
    const [first, second] = [await opened(person, plusPrice, intent), await opened(person, plusPrice, intent)]
    assert.deepEqual([second.checkout_url, second.reused], [first.checkout_url, true])
    const twins = await Promise.all([1, 2, 3].map(() => opened(person, plusPrice, intent)))
    assert.equal(new Set([first, ...twins].map(({ checkout_url }) => checkout_url)).size, 1)
    const other = await checkout(person, proPrice, { intent })
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
    const elsewhere = await opened(person, proPrice)
    assert.equal((await tryToPay(first.checkout_url, cards.paid)).status, 410)
    await provider.advance(31 * 60)
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

  test('what cannot be bought is refused with what can', async () => {
    const person = await newPerson(gateway.url)
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
    const person = await newPerson(gateway.url)
    const intent = randomUUID()
    await provider.errors(1)
    const page = await opened(person, plusPrice, intent)
    await provider.faults({ drop_reply: true, count: 1, methods: ['POST /v1/checkout/sessions'] })
    const other = await opened(person, proPrice)
    assert.notEqual(other.checkout_url, page.checkout_url)
    const open = (await stripe.checkout.sessions.list({ status: 'open', limit: 100 })).data
    assert.equal(open.filter(({ metadata }) => metadata?.portico_user !== undefined).length >= 1, true)
    await provider.faults({ status: 503 })
    const away = await checkout(person, plusPrice, { intent: randomUUID() })
    assert.deepEqual([away.status, away.body.code], [503, 'unavailable'])
    await provider.heal()
    await pay((await opened(person, plusPrice)).checkout_url)
    await creditsBecome(person, plusCredits)
  })

  test('events that come 50 times and in another order grant once', async () => {
    await provider.dial({ duplicates: 49, reorder: true })
    const person = await subscriber(gateway.url)
    await provider.delivered()
    await provider.advance(600)
    assert.deepEqual([await planCredits(person), await planHistory(person)], [plusCredits, [plusCredits]])
  })

  test('without any event the credits come within five minutes', async () => {
    await provider.dial({ drop: true })
    const person = await newPerson(gateway.url)
    await pay((await opened(person)).checkout_url)
    assert.equal(await planCredits(person), 0)
    await provider.advance(300)
    await creditsBecome(person, plusCredits)
  })

  test('events that are ten minutes late grant once', async () => {
    await provider.dial({ delay_seconds: 600 })
    const person = await newPerson(gateway.url)
    await pay((await opened(person)).checkout_url)
    await provider.advance(300)
    await creditsBecome(person, plusCredits)
    await provider.advance(600)
    await provider.delivered()
    assert.deepEqual(await planHistory(person), [plusCredits])
  })

  test('forged, changed, old and future events, and those of the other mode, grant nothing', async () => {
    await provider.dial({ drop: true, forged: true, changed: true, old: true, future: true, live: true })
    const person = await newPerson(gateway.url)
    await pay((await opened(person)).checkout_url)
    await provider.delivered()
    assert.deepEqual([await planCredits(person), await planEvents(person)], [0, []])
    await provider.advance(300)
    await creditsBecome(person, plusCredits)
  })

  test('a declined card pays nothing, and one that the bank asks about pays after its answer', async () => {
    const person = await newPerson(gateway.url)
    const page = await opened(person)
    assert.equal((await tryToPay(page.checkout_url, cards.declined)).status, 402)
    assert.equal((await tryToPay(page.checkout_url, cards.noFunds)).status, 402)
    assert.match((await tryToPay(page.checkout_url, cards.asks)).text, /Is it you/)
    assert.equal((await planOf(person)).status, 'none')
    assert.equal((await tryToPay(page.checkout_url, cards.asks, { bank: 'yes' })).status, 303)
    await creditsBecome(person, plusCredits)
  })

  test('a refund takes back what is unspent of its grant, in parts and whole, before and after spending', async () => {
    const person = await subscriber(gateway.url)
    await stripe.refunds.create({ payment_intent: await paymentOf(person), amount: 250 })
    await creditsBecome(person, 600)
    await spend(500, person)
    await creditsBecome(person, 100)
    await stripe.refunds.create({ payment_intent: await paymentOf(person) })
    await creditsBecome(person, 0)
    assert.deepEqual(await planHistory(person), [-100, -200, plusCredits])
    const plan = await planOf(person)
    assert.deepEqual(
      [plan.status, plan.payments[0]?.refunded_usd, plan.payments[0]?.credits_taken_back],
      ['active', '10', 300],
    )
  })

  test('a dispute suspends the plan and takes back what is unspent; one that is won returns it', async () => {
    const person = await newPerson(gateway.url)
    await pay((await opened(person)).checkout_url, cards.disputed)
    await planBecomes(person, ({ status }) => status === 'suspended', 'the plan is suspended')
    const refused = await checkout(person, proPrice)
    assert.deepEqual([refused.status, refused.body.reason], [409, 'suspended'])
    assert.equal(await planCredits(person), 0)
    await stripe.disputes.update(await disputeOf(person), {
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
    const person = await newPerson(gateway.url)
    const first = await opened(person)
    // The end of the first page is lost, so that both can be paid.
    const sessions = await stripe.checkout.sessions.list({ status: 'open', limit: 1 })
    const metadata = sessions.data[0]!.metadata!
    const second = await stripe.checkout.sessions.create({
      mode: 'subscription',
      line_items: [{ price: plusPrice, quantity: 1 }],
      success_url: `${gateway.url}/checkout/paid`,
      metadata,
      subscription_data: { metadata },
    })
    await Promise.all([pay(first.checkout_url), pay(second.url!)])
    const refunded = await eventually(async () => {
      const { payments } = await planOf(person)
      return payments.length === 2 && payments.some(({ refunded_usd: usd }) => usd === '10')
        ? payments
        : undefined
    }, 'a refund')
    assert.deepEqual(refunded.map(({ credits }) => credits).sort(), [0, plusCredits])
    assert.equal(await planCredits(person), plusCredits)
    const ended = await stripe.subscriptions.list({ status: 'canceled', limit: 100 })
    const own = ended.data.filter((each) => each.metadata.portico_user === metadata.portico_user)
    assert.equal(own.length, 1)
    await eventually(
      async () => (await planEvents(person)).includes('subscription.duplicate_refunded') || undefined,
      'the event of the refund',
    )
  })

  test('a larger plan is confirmed on a page within the period, and completes its credits', async () => {
    const person = await subscriber(gateway.url)
    await spend(300, person)
    // Credits that a running answer holds are not spent yet.
    const held = await spend(100, person, 'hold')
    await provider.advance(10 * day)
    const page = await opened(person, proPrice)
    assert.equal((await sendForm(page.checkout_url, {})).status, 303)
    await creditsBecome(person, proCredits - 100)
    await release(held)
    await creditsBecome(person, proCredits)
    const plan = await planOf(person)
    assert.deepEqual(
      [plan.plan, plan.payments.length, plan.payments[0]?.credits],
      ['pro', 2, proCredits - 500],
    )
    assert.ok(Number(plan.payments[0]?.amount_usd) < 40, plan.payments[0]?.amount_usd)
    for (const price of [plusPrice, teamPrice]) {
      const smaller = await checkout(person, price)
      assert.deepEqual([smaller.status, smaller.body.reason], [409, 'smaller_plan'], price)
    }
    assert.ok((await planEvents(person)).includes('subscription.changed'))
  })

  test('a change that bills the rest of a period brings that part of the credits', async () => {
    const person = await subscriber(gateway.url)
    await provider.advance(20 * day)
    const [payment] = (await planOf(person)).payments
    const paid = await stripe.invoices.retrieve(payment!.invoice_id)
    const subscription = await stripe.subscriptions.retrieve(
      String(paid.parent?.subscription_details?.subscription),
    )
    const portal = await stripe.billingPortal.sessions.create({
      customer: String(paid.customer),
      configuration: 'bpc_local_kept_period',
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
    const change = await stripe.invoices.retrieve(plan.payments[0]!.invoice_id)
    const billed = change.lines.data.find(({ amount }) => amount > 0)!.amount
    assert.ok(billed > 1_000 && billed < 1_600, String(billed))
    // The plan has as many credits as it costs cents.
    assert.deepEqual([plan.payments[0]!.credits, await planCredits(person)], [billed - plusCredits, billed])
  })

  test('a change of plan is seen without any event', async () => {
    const person = await subscriber(gateway.url)
    await provider.dial({ drop: true })
    const page = await opened(person, proPrice)
    assert.equal((await sendForm(page.checkout_url, {})).status, 303)
    await provider.advance(300)
    await creditsBecome(person, proCredits)
  })

  test('a plan renews by the clock, and its unspent credits end with their period', async () => {
    const person = await subscriber(gateway.url)
    await spend(100, person)
    await provider.advance(32 * day)
    await creditsBecome(person, plusCredits)
    assert.deepEqual(await planHistory(person), [plusCredits, plusCredits])
    assert.deepEqual(await planEvents(person), ['subscription.renewed', 'subscription.started'])
  })

  test('a renewal that fails brings nothing until it is paid on its page', async () => {
    const person = await subscriber(gateway.url, { card: cards.renewalFails })
    await provider.advance(32 * day)
    const due = await planBecomes(person, ({ status }) => status === 'past_due', 'the plan is past due')
    assert.ok(due.pay_url)
    assert.deepEqual(await planHistory(person), [plusCredits])
    const refused = await checkout(person, proPrice)
    assert.deepEqual([refused.status, refused.body.reason], [409, 'past_due'])
    assert.equal((await tryToPay(due.pay_url!, cards.paid)).status, 200)
    const paid = await planBecomes(person, ({ status }) => status === 'active', 'the plan is active')
    assert.equal(paid.pay_url, null)
    assert.deepEqual(await planHistory(person), [plusCredits, plusCredits])
    assert.ok((await planEvents(person)).includes('subscription.payment_failed'))
  })

  test('a renewal that is never paid ends the plan and its credits', async () => {
    const person = await subscriber(gateway.url, { card: cards.renewalFails })
    await provider.advance(32 * day)
    await planBecomes(person, ({ status }) => status === 'past_due', 'the plan is past due')
    await provider.advance(20 * day)
    await planBecomes(person, ({ status }) => status === 'canceled', 'the plan has ended')
    assert.equal(await planCredits(person), 0)
    assert.equal((await person.call('GET /v1/user')).body.plan, 'free')
  })

  test('a plan is cancelled for the end of its period, renews again if that is undone, and ends otherwise', async () => {
    const person = await subscriber(gateway.url)
    const cancel = (body?: object) => person.call<PlanView>('POST /v1/subscriptions/cancel', { body })
    assert.deepEqual((await cancel()).body.cancel_at_period_end, true)
    assert.deepEqual((await cancel()).body.cancel_at_period_end, true)
    assert.deepEqual((await cancel({ undo: true })).body.cancel_at_period_end, false)
    await provider.advance(32 * day)
    await eventually(
      async () => ((await planHistory(person)).length === 2 ? true : undefined),
      'the second period',
    )
    await cancel()
    assert.equal(await planCredits(person), plusCredits)
    await provider.advance(32 * day)
    await planBecomes(person, ({ status }) => status === 'canceled', 'the plan has ended')
    assert.equal(await planCredits(person), 0)
    const events = await planEvents(person)
    assert.deepEqual(events.slice(0, 2), ['subscription.ended', 'subscription.cancelled'])
    await pay((await opened(person)).checkout_url)
    await creditsBecome(person, plusCredits)
  })
})
