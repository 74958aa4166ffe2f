/** Anybody may post to the address for provider events: only what the provider signed is taken, once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import Stripe from 'stripe'
import { freshGateway, http } from '../harness/gateway.ts'
import { unlimitedRates } from './support/unlimited.ts'

const secret = 'whsec_portico_local_world'
const { webhooks } = new Stripe('sk_test_any')
const path = '/webhooks/stripe'

let gateway: Awaited<ReturnType<typeof freshGateway>>
before(async () => {
  gateway = await freshGateway(unlimitedRates)
})
after(() => gateway?.[Symbol.asyncDispose]())

const eventOf = (more: object = {}) => ({
  id: `evt_${Math.random().toString(36).slice(2)}`,
  object: 'event',
  type: 'customer.subscription.created',
  livemode: false,
  data: { object: { id: 'sub_unknown', object: 'subscription', metadata: {} } },
  ...more,
})
const post = (payload: string, signature?: string) =>
  http<{ received?: string; code?: string }>(gateway.url + path, {
    method: 'POST',
    body: payload,
    headers: signature === undefined ? {} : { 'stripe-signature': signature },
  })
const signed = (payload: string, offset = 0) =>
  post(
    payload,
    webhooks.generateTestHeaderString({
      payload,
      secret,
      timestamp: Math.floor(Date.now() / 1_000) + offset,
    }),
  )

test('an event is taken once, with a signature of now, and never of the other mode', async () => {
  const payload = JSON.stringify(eventOf())
  assert.deepEqual(
    [(await signed(payload)).body.received, (await signed(payload)).body.received],
    ['foreign', 'repeated'],
  )
  assert.equal((await signed(JSON.stringify(eventOf({ livemode: true })))).body.received, 'other_mode')
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
