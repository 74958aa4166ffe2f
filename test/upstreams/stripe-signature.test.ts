import assert from 'node:assert/strict'
import { test } from 'node:test'
import Stripe from 'stripe'
import { hasValidSignature } from '#upstreams/stripe/signature.ts'

const { webhooks } = new Stripe('sk_test_any')
const now = new Date(1_800_000_000_000)
const payload = JSON.stringify({ id: 'evt_1', type: 'invoice.paid', text: 'ü "€"' })
const headerOf = (secret: string, offsetSeconds = 0) =>
  webhooks.generateTestHeaderString({ payload, secret, timestamp: now.getTime() / 1_000 + offsetSeconds })
const isValid = (header: string | undefined, secrets = ['whsec_a'], text = payload) =>
  hasValidSignature({ bytes: Buffer.from(text), header, secrets, now })

test('headers of the provider are accepted with any of the secrets', () => {
  assert.ok(isValid(headerOf('whsec_a')))
  assert.ok(isValid(headerOf('whsec_b'), ['whsec_a', 'whsec_b']))
  // While a secret is replaced, the provider signs with both.
  const other = /v1=(\w+)/.exec(headerOf('whsec_b'))?.[1]
  assert.ok(isValid(`${headerOf('whsec_a')},v1=${other}`, ['whsec_b']))
})

test('another secret, a changed body and other schemes are refused', () => {
  const header = headerOf('whsec_a')
  assert.ok(!isValid(header, ['whsec_b']))
  assert.ok(!isValid(header, []))
  assert.ok(!isValid(header, ['whsec_a'], `${payload} `))
  assert.ok(!isValid(header.replace('v1=', 'v0=')))
  assert.ok(!isValid(`${header},t=1`))
  for (const broken of [undefined, '', 't=', 'v1=', 't=1', 'x'.repeat(10_000), `${header.slice(0, -1)}`])
    assert.ok(!isValid(broken), broken)
})

test('a time is valid for 300 seconds before and after', () => {
  for (const offset of [-300, 300]) assert.ok(isValid(headerOf('whsec_a', offset)), String(offset))
  for (const offset of [-301, 301, 3_600]) assert.ok(!isValid(headerOf('whsec_a', offset)), String(offset))
})
