import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redact } from './redact.ts'

test('a secret is redacted at any depth, in lists too, and other values are unchanged', () => {
  const facts = {
    token: 'agt_1',
    route: '/v1/chains',
    request: { headers: { authorization: 'Bearer agt_1', accept: 'text/html' } },
    attempts: [{ id: 1, raw: '0xf8' }, 'plain'],
  }
  assert.deepEqual(redact(facts), {
    token: '[redacted]',
    route: '/v1/chains',
    request: { headers: { authorization: '[redacted]', accept: 'text/html' } },
    attempts: [{ id: 1, raw: '[redacted]' }, 'plain'],
  })
  assert.equal(facts.token, 'agt_1', 'the input of the caller is not modified')
})

test('input without a secret is returned as it is, and cyclic input ends', () => {
  const facts = { ms: 1, at: new Date(0), nested: { list: [1, { a: 2 }] }, nothing: null }
  assert.equal(redact(facts), facts)
  const round: Record<string, unknown> = { signed: 'x' }
  round.self = round
  assert.doesNotMatch(JSON.stringify(redact(round)), /"x"/)
})
