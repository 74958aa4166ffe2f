import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { NetReply, NetRequest } from '#kernel/wire/upstream-http.ts'
import { orderReplyOf } from './orders.ts'
import { createRequests } from './requests.ts'
import { TickSize } from './wire-clob.ts'

const url = 'https://venue.test'
const urls = { clob: url, gamma: url, data: url, relayer: url, bridge: url, geoblock: url }
const call = { service: 'clob', method: 'POST', path: '/order', body: '{}' } as const

const answering = (reply: Partial<NetReply> | Fault) => {
  const sent: NetRequest[] = []
  const fetch = async (request: NetRequest): Promise<NetReply> => {
    sent.push(request)
    if (reply instanceof Fault) throw reply
    return { status: 200, body: '{}', ...reply }
  }
  return { sent, ...createRequests({ urls, net: { fetch } }) }
}
const outcomeOf = async (reply: Partial<NetReply> | Fault) => {
  const { act, sent } = answering(reply)
  const answer = await act(call)
  assert.equal(sent.length, 1)
  return 'reason' in answer ? [answer.type, answer.reason, answer.retryAfterMs] : [answer.type]
}
const error = (text: string, more: object = {}) => JSON.stringify({ error: text, ...more })

test('a refusal, an unknown outcome and a request that was not sent are distinguished', async () => {
  assert.deepEqual(await outcomeOf(new Fault('unavailable', 'closed')), ['not_sent'])
  assert.deepEqual(await outcomeOf(new Fault('upstream_timeout', 'silent')), ['unknown'])
  assert.deepEqual(await outcomeOf(new Fault('upstream_rejected', 'too large')), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 502, body: '<html>' }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 200, body: '<html>' }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 400, body: '<html>' }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 500, body: error('internal') }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 503, body: error('upstream connect error') }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 408, body: error('timeout') }), ['unknown'])
  assert.deepEqual(await outcomeOf({ status: 400, body: error('invalid signature') }), ['answered'])
  const duplicate =
    "order 0x1 is invalid. Duplicated. Same order has already been placed, can't be placed again."
  assert.deepEqual(await outcomeOf({ status: 400, body: error(duplicate) }), ['unknown'])
})

test('what the venue refuses for now has a reason and its time', async () => {
  assert.deepEqual(await outcomeOf({ status: 425, body: error('Too Early') }), ['later', 'restarting', null])
  assert.deepEqual(await outcomeOf({ status: 429, body: error('Too Many Requests'), retryAfterMs: 2_000 }), [
    'later',
    'rate_limited',
    2_000,
  ])
  assert.deepEqual(await outcomeOf({ status: 429, body: '<html>' }), ['later', 'rate_limited', null])
  const postOnly = { type: 'POST_ONLY', retry_after_seconds: 90 }
  const words = 'post-only mode: only post-only orders and cancels are allowed'
  assert.deepEqual(await outcomeOf({ status: 503, body: error(words, postOnly) }), [
    'later',
    'post_only',
    90_000,
  ])
  const cancels = 'Trading is currently cancel-only. New orders are not accepted, but cancels are allowed.'
  assert.deepEqual(await outcomeOf({ status: 503, body: error(cancels, { type: 'CANCEL_ONLY' }) }), [
    'later',
    'cancel_only',
    null,
  ])
  const disabled = 'Trading is currently disabled. Check polymarket.com for updates'
  assert.deepEqual(await outcomeOf({ status: 503, body: error(disabled) }), ['later', 'disabled', null])
  const quota = 'quota exceeded: 0 units remaining, resets in 60587 seconds'
  assert.deepEqual(await outcomeOf({ status: 429, body: error(quota), retryAfterMs: 1_000 }), [
    'later',
    'quota',
    60_587_000,
  ])
})

test('a time that the venue names is a day at most', async () => {
  const dayMs = 86_400_000
  const far = 'quota exceeded: 0 units remaining, resets in 999999999 seconds'
  assert.deepEqual(await outcomeOf({ status: 429, body: error(far) }), ['later', 'quota', dayMs])
  for (const retryAfterMs of [1e15, Number.MAX_VALUE])
    assert.deepEqual(await outcomeOf({ status: 429, body: error('too many requests'), retryAfterMs }), [
      'later',
      'rate_limited',
      dayMs,
    ])
  const body = '{"error":"post-only mode: wait","type":"POST_ONLY","retry_after_seconds":1e300}'
  assert.deepEqual(await outcomeOf({ status: 503, body }), ['later', 'post_only', dayMs])
  const past = error('too many requests', { retry_after_seconds: -5 })
  assert.deepEqual(await outcomeOf({ status: 429, body: past }), ['later', 'rate_limited', 0])
})

test('the words of the venue are one line of a length that every row takes', async () => {
  const noise = String.fromCharCode(0, 10, 0x202e)
  const { act } = answering({ status: 400, body: error(`invalid signature${noise}${'x'.repeat(1_000_000)}`) })
  const answer = await act(call)
  assert.ok(answer.type === 'answered')
  assert.match(answer.message, /^invalid signature x{282}$/)
})

test('the budget of the signer is handed to the caller', async () => {
  const headers = {
    'poly-ratelimit-remaining': '-3',
    'poly-ratelimit-reset': '1796031914',
    'poly-ratelimit-tier': 'x',
  }
  const { act, sent } = answering({ status: 400, body: error('no'), headers })
  assert.deepEqual((await act(call)).limit, { remaining: -3, resetAtSeconds: 1_796_031_914, tier: 'x' })
  assert.deepEqual(sent[0]?.replyHeaders, Object.keys(headers))
  assert.equal((await answering({ status: 200 }).act(call)).limit, null)
})

test('a budget of an odd form is a whole number that every database takes, or none', async () => {
  const limitOf = async (remaining: string, reset: string) => {
    const headers = { 'poly-ratelimit-remaining': remaining, 'poly-ratelimit-reset': reset }
    const { limit } = await answering({ status: 200, headers }).act(call)
    return [limit?.remaining, limit?.resetAtSeconds]
  }
  assert.deepEqual(await limitOf('17.5', '1796031914.9'), [17, 1_796_031_914])
  assert.deepEqual(await limitOf('4294967295', '999999999999999'), [1_000_000_000, 100_000_000_000])
  assert.deepEqual(await limitOf('-4294967295', '-1'), [-1_000_000_000, -1])
  for (const odd of ['', 'many', '1e9', 'NaN', 'Infinity', '9'.repeat(31), `1.${'9'.repeat(31)}`])
    assert.deepEqual(await limitOf(odd, odd), [null, null], odd)
})

test('a read fails by its cause', async () => {
  const codeOf = async (reply: Partial<NetReply>) => {
    const failed = await answering(reply)
      .read({ service: 'clob', path: '/tick-size' }, TickSize)
      .then(
        () => undefined,
        (fault: unknown) => fault,
      )
    assert.ok(failed instanceof Fault)
    return [failed.code, failed.extras.reason]
  }
  assert.deepEqual(await codeOf({ body: '{}' }), ['upstream_changed', undefined])
  assert.deepEqual(await codeOf({ body: 'x' }), ['unavailable', undefined])
  assert.deepEqual(await codeOf({ status: 502, body: '<html>' }), ['unavailable', undefined])
  assert.deepEqual(await codeOf({ status: 425, body: '{}' }), ['unavailable', 'restarting'])
  assert.deepEqual(await codeOf({ status: 404, body: error('No orderbook exists') }), [
    'not_found',
    undefined,
  ])
  assert.deepEqual(await codeOf({ status: 401, body: error('Unauthorized/Invalid api key') }), [
    'upstream_rejected',
    'key_invalid',
  ])
  const { readOptional } = answering({ status: 404, body: error('not found') })
  assert.equal(await readOptional({ service: 'clob', path: '/x' }, TickSize), undefined)
  await assert.rejects(
    answering({ status: 404, body: 'Not Found' }).readOptional({ service: 'clob', path: '/x' }, TickSize),
  )
})

test('a query leaves out what is undefined', async () => {
  const { read, sent } = answering({ body: '{"minimum_tick_size":0.01}' })
  await read({ service: 'clob', path: '/tick-size', query: { token_id: '1', cursor: undefined } }, TickSize)
  await read({ service: 'clob', path: '/tick-size', query: { cursor: undefined } }, TickSize)
  assert.deepEqual(
    sent.map((request) => request.url),
    [`${url}/tick-size?token_id=1`, `${url}/tick-size`],
  )
})

test('the answer to an order is accepted or rejected, and anything else is unknown', () => {
  const taken = {
    success: true,
    errorMsg: null,
    orderID: '0x1',
    status: 'matched',
    makingAmount: '',
    takingAmount: '10.5',
    tradeIDs: ['t', 'no id\u0000', 'x'.repeat(1_000)],
    transactionsHashes: ['', 'no hash'],
  }
  assert.deepEqual(orderReplyOf(200, taken, ''), {
    type: 'accepted',
    orderId: '0x1',
    status: 'matched',
    makingUnits: null,
    takingUnits: 10_500_000n,
    tradeIds: ['t'],
    txHashes: [],
  })
  for (const status of ['live', 'delayed', 'unmatched'])
    assert.equal(orderReplyOf(200, { ...taken, status }, '').type, 'accepted')
  const refused = { success: false, errorMsg: 'invalid expiration', orderID: '', status: '' }
  assert.deepEqual(orderReplyOf(200, refused, ''), {
    type: 'rejected',
    reason: 'expiration_invalid',
    message: 'invalid expiration',
  })
  assert.equal(orderReplyOf(400, {}, 'invalid signature').type, 'rejected')
  for (const value of [
    null,
    [],
    {},
    { ...taken, status: 'queued' },
    { ...taken, orderID: '' },
    { ...taken, success: false },
  ])
    assert.equal(orderReplyOf(200, value, '').type, 'unknown', JSON.stringify(value))
})
