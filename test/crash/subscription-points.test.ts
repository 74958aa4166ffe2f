/** kill -9 between the payment provider and the credits: they are right to the unit, and nobody pays twice. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import Stripe from 'stripe'
import { eventually, type Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { pay } from '../harness/payer.ts'
import {
  checkout,
  creditsBecome,
  newPerson,
  planCredits,
  planEvents,
  planHistory,
  planOf,
  plusCredits,
  plusPrice,
  subscriber,
} from '../journeys/subscription-calls.ts'
import type { Person } from '../journeys/users.ts'
import { worldOf } from '../journeys/world.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^(db:(task_accept|task_step|begin|commit|insert plan_\w+|update plan_\w+|delete plan_\w+|ledger_apply|select account)|net:stripe)/
const needed = [/^net:stripe:after/, /^db:task_step:after|^db:commit:after/]
/** Each request to the provider is a point, before and after it. */
const passesOf = (name: string) => (isNightly ? 20 : /^net:|task_step/.test(name) ? 8 : 1)

let app: CrashApp
let survivor: Gateway
let stripe: Stripe
/** The provider sends each event to the survivor, and to the gateway that is to die. */
let endpointOfVictims: string
let secrets: string
const launch = (env: Record<string, string> = {}) => app.gateway({ ...env, STRIPE_WEBHOOK_SECRETS: secrets })
const newEndpoint = () =>
  stripe.webhookEndpoints.create({ url: 'http://127.0.0.1:1/webhooks/stripe', enabled_events: ['*'] })
const direct = (id: string, { url }: Gateway) =>
  stripe.webhookEndpoints.update(id, { url: `${url}/webhooks/stripe` })
before(async () => {
  app = await createCrashApp()
  const { hostname, port } = new URL((await worldOf(app.control)).manifest.urls.stripe)
  stripe = new Stripe('sk_test_portico_local_world', {
    host: hostname,
    port: Number(port),
    protocol: 'http',
  })
  const [own, ofVictims] = [await newEndpoint(), await newEndpoint()]
  secrets = [own.secret, ofVictims.secret].join()
  endpointOfVictims = ofVictims.id
  survivor = await launch()
  await direct(own.id, survivor)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

/** A payer who buys at one gateway, and waits there for the credits. */
async function buy(url: string, person: Person, intent: string): Promise<void> {
  const at = {
    ...person,
    call: ((route, options) => person.call(route, { ...options, at: url })) as Person['call'],
  }
  const page = await checkout(at, plusPrice, { intent })
  assert.equal(page.status, 200, JSON.stringify(page.body))
  await pay(page.body.checkout_url)
  await creditsBecome(at, plusCredits, 20_000)
}

test('a purchase that is killed at any point is credited once', async (t) => {
  const points = await recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'net:stripe:after',
    launch,
    work: async ({ url }) => buy(url, await newPerson(survivor.url), randomUUID()),
  })
  const reached = await killAtEach(points, launch, async (point, victim) => {
    const person = await newPerson(survivor.url)
    const intent = randomUUID()
    victim.child.kill('SIGUSR2')
    const first = await buy(victim.url, person, intent).catch(() => undefined)
    const died = hasDied(victim, first)
    await victim.kill()
    const page = await eventually(
      async () => {
        const answer = await checkout(person, plusPrice, { intent })
        return answer.status === 503 ? undefined : answer
      },
      `${keyAt(point)}: a page or a reason`,
    )
    if (page.status === 200) await pay(page.body.checkout_url).catch(() => undefined)
    else assert.equal(page.status, 409, JSON.stringify(page.body))
    await creditsBecome(person, plusCredits)
    assert.deepEqual(
      [await planCredits(person), await planHistory(person)],
      [plusCredits, [plusCredits]],
      point,
    )
    return died
  })
  t.diagnostic(reached)
  assert.equal(await ledgerDrift(app.admin), 0)
})

type Payer = { person: Person; user: string; paid: string; twin: Stripe.Checkout.Session }

/** A subscriber in whose other tab a page of the same plan is open. */
async function payerWithTwoTabs(): Promise<Payer> {
  const person = await subscriber(survivor.url)
  const { user_id: user } = (await person.call<{ user_id: string }>('GET /v1/user')).body
  const [payment] = (await planOf(person)).payments
  const invoice = await stripe.invoices.retrieve(payment!.invoice_id, { expand: ['payments'] })
  const metadata = { portico_user: user }
  const twin = await stripe.checkout.sessions.create({
    mode: 'subscription',
    line_items: [{ price: plusPrice, quantity: 1 }],
    success_url: `${survivor.url}/checkout/paid`,
    metadata,
    subscription_data: { metadata },
  })
  return { person, user, paid: String(invoice.payments?.data[0]?.payment.payment_intent), twin }
}

/** Whether the refund of a quarter is settled, and the second payment is returned, by the records. */
async function isSettled(user: string): Promise<boolean> {
  const { rows } = await app.admin.query<{ role: string; ended: boolean; refunded: string; taken: string }>(
    `select s.role, s.ended_at is not null as ended, i.refunded_cents as refunded, i.taken_back as taken
     from plan_subscription s join plan_invoice i on i.subscription_id = s.id where s.user_id = $1`,
    [user],
  )
  const [main, duplicate] = ['main', 'duplicate'].map((role) => rows.find((each) => each.role === role))
  return Number(main?.taken) === 200 && duplicate?.ended === true && Number(duplicate.refunded) === 1_000
}

/** Has the victim alone see the refund and the second payment, and the survivor complete what it has left. */
async function refundAt(victim: Gateway, { user, paid, twin }: Payer): Promise<void> {
  survivor.child.kill('SIGSTOP')
  try {
    await pay(twin.url!)
    await stripe.refunds.create({ payment_intent: paid, amount: 250 })
    await eventually(
      async () =>
        (await isSettled(user)) ||
        victim.child.exitCode !== null ||
        victim.child.signalCode !== null ||
        undefined,
      'the refund is settled, or the victim has died',
    )
  } finally {
    survivor.child.kill('SIGCONT')
  }
  await eventually(async () => (await isSettled(user)) || undefined, 'the refund is settled')
}

async function assertReturned({ person, twin }: Payer, at: string): Promise<void> {
  assert.deepEqual([await planCredits(person), await planHistory(person)], [600, [-200, plusCredits]], at)
  const session = await stripe.checkout.sessions.retrieve(twin.id, { expand: ['subscription'] })
  const { status, latest_invoice: invoiceId } = session.subscription as Stripe.Subscription
  assert.equal(status, 'canceled', at)
  const invoice = await stripe.invoices.retrieve(String(invoiceId), { expand: ['payments'] })
  const payment = String(invoice.payments?.data[0]?.payment.payment_intent)
  const refunds = await stripe.refunds.list({ payment_intent: payment })
  assert.deepEqual(
    refunds.data.map(({ amount }) => amount),
    [1_000],
    at,
  )
  const events = await eventually(async () => {
    const found = await planEvents(person)
    return found.length >= 3 ? found.sort() : undefined
  }, `${at}: the events`)
  assert.deepEqual(
    events,
    ['subscription.credits_changed', 'subscription.duplicate_refunded', 'subscription.started'],
    at,
  )
}

test('a refund and a second payment that are killed at any point take and return what they should, once', async (t) => {
  const points = await recordPoints({
    pattern: pointPattern,
    passesOf,
    needed: [...needed, /^db:insert plan_event:after/],
    shortPoint: 'net:stripe:after',
    launch,
    async work(gateway, attempt, clear) {
      const payer = await payerWithTwoTabs()
      await direct(endpointOfVictims, gateway)
      clear()
      await refundAt(gateway, payer)
      await assertReturned(payer, attempt)
    },
  })
  const reached = await killAtEach(
    points,
    launch,
    async (point, victim) => {
      const payer = await payerWithTwoTabs()
      await direct(endpointOfVictims, victim)
      victim.child.kill('SIGUSR2')
      await refundAt(victim, payer)
      const died = victim.child.signalCode === 'SIGKILL'
      await victim.kill()
      await assertReturned(payer, point)
      return died
    },
    { startsAhead: false },
  )
  t.diagnostic(reached)
  assert.equal(await ledgerDrift(app.admin), 0)
})
