/** kill -9 between the payment provider and the credits: each paid invoice is credited once, to the unit. */
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
  planHistory,
  plusCredits,
  plusPrice,
} from '../journeys/subscription-calls.ts'
import type { Person } from '../journeys/users.ts'
import { worldOf } from '../journeys/world.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^(db:(task_accept|task_step|begin|commit|insert plan_\w+|update plan_\w+|delete plan_\w+|ledger_apply|select account)|net:stripe)/
const needed = [/^net:stripe:after/, /^db:task_step:after|^db:commit:after/]

let app: CrashApp
let survivor: Gateway
/** All gateways know the secret of one endpoint, to which the provider sends whatever becomes of the others. */
let secret: string
const launch = (env: Record<string, string> = {}) => app.gateway({ ...env, STRIPE_WEBHOOK_SECRETS: secret })
before(async () => {
  app = await createCrashApp()
  const { hostname, port } = new URL((await worldOf(app.control)).manifest.urls.stripe)
  const stripe = new Stripe('sk_test_portico_local_world', {
    host: hostname,
    port: Number(port),
    protocol: 'http',
  })
  const endpoint = await stripe.webhookEndpoints.create({
    url: 'http://127.0.0.1:1/webhooks/stripe',
    enabled_events: ['*'],
  })
  secret = endpoint.secret!
  survivor = await launch()
  await stripe.webhookEndpoints.update(endpoint.id, { url: `${survivor.url}/webhooks/stripe` })
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
    passesOf: () => 1,
    needed,
    shortPoint: /^net:stripe:after/,
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
