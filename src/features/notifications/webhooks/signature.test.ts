import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { secretText, signatureHeader } from './signature.ts'

const headersOf = (secrets: readonly Uint8Array[], id: string, timestampSeconds: number, body: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestampSeconds),
  'webhook-signature': signatureHeader(secrets, { id, timestampSeconds, body }),
})
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 })
const nowSeconds = () => Math.floor(Date.now() / 1_000)

test('a foreign library verifies every signature, with either secret of a rotation', () => {
  fc.assert(
    fc.property(secret, secret, fc.uuid(), fc.json(), (current, former, id, body) => {
      const headers = headersOf([current, former], id, nowSeconds(), body)
      for (const each of [current, former])
        assert.deepEqual(new Webhook(secretText(each)).verify(body, headers), JSON.parse(body))
    }),
  )
})

test('it refuses another secret, and an id, a time or a body that was changed', () => {
  const key = Buffer.alloc(32, 7)
  const body = '{"id":"1"}'
  const headers = headersOf([key], 'msg', nowSeconds(), body)
  const verifier = new Webhook(secretText(key))
  verifier.verify(body, headers)
  assert.throws(() => new Webhook(secretText(Buffer.alloc(32, 8))).verify(body, headers))
  assert.throws(() => verifier.verify('{"id":"2"}', headers))
  assert.throws(() => verifier.verify(body, { ...headers, 'webhook-id': 'other' }))
  assert.throws(() => verifier.verify(body, { ...headers, 'webhook-timestamp': String(nowSeconds() - 1) }))
})
