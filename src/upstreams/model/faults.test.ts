import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRetried, statusFault } from './faults.ts'

const key = 'sk-canary-0123456789'
const faultOf = (status: number, body = '', retryAfterMs?: number) =>
  statusFault({ status, body, retryAfterMs, model: 'm', key })

test('a status is a fault that says whether a later turn can succeed', () => {
  const codes = [400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 529].map((status) => faultOf(status).code)
  assert.deepEqual(codes, [
    ...Array.from({ length: 6 }, () => 'upstream_rejected'),
    ...Array.from({ length: 5 }, () => 'unavailable'),
  ])
  assert.deepEqual(
    [302, 400, 404, 429, 500, 529].filter((status) => isRetried(status)),
    [429, 500, 529],
  )
})

test('a limit says when to come back', () => {
  assert.deepEqual(faultOf(429, '', 1_500).extras, {
    upstream: 'model',
    upstream_status: 429,
    retry_after: 2,
  })
  assert.deepEqual(faultOf(503).extras, { upstream: 'model', upstream_status: 503 })
})

test('no text of a fault has the key, whatever the endpoint repeats', () => {
  const echo = JSON.stringify({ error: { type: key, code: key, message: `the key ${key}\r\nis ${key}` } })
  for (const status of [400, 401, 403, 404, 429, 500]) {
    const { message, extras, cause } = faultOf(status, echo)
    const texts = JSON.stringify([message, extras, (cause as Error | undefined)?.message])
    assert.ok(!texts.includes(key) && !texts.includes('\\n'), `${status}: ${texts}`)
  }
  assert.equal(faultOf(401, JSON.stringify({ error: { message: 'sk-cana***6789' } })).cause, undefined)
})

test('the words of the endpoint are the cause, and a page has none', () => {
  const words = { error: { type: 'invalid_request_error', code: null, message: 'too long' } }
  assert.equal(
    (faultOf(400, JSON.stringify(words)).cause as Error).message,
    'model endpoint 400: invalid_request_error: too long',
  )
  assert.equal((faultOf(502, '<html>').cause as Error).message, 'model endpoint 502: ')
})
