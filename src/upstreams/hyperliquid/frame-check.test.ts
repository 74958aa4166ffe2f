import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isReadableFrame } from './frame-check.ts'

const isRead = (frame: object): boolean => isReadableFrame(JSON.stringify(frame))

test('an error reaches the library only where it can read it', () => {
  const isErrorRead = (data?: unknown) => isRead({ channel: 'error', data })
  for (const text of [
    'Already subscribed: {"type":"userFills","user":"0xa"}',
    'too many pending post requests id=1',
    'Internal error',
    '',
  ])
    assert.ok(isErrorRead(text), text)
  for (const data of [
    'Too many subscriptions {users: 10}',
    'x {"a":1} y {"b":2}',
    '{"method":"subscribe",...}',
    undefined,
    null,
    5,
    {},
    ['x'],
  ])
    assert.ok(!isErrorRead(data), JSON.stringify(data))
})

test('replies to requests that nobody made, and confirmations of nothing, are dropped', () => {
  assert.ok(!isRead({ channel: 'post', data: { id: 1, response: { type: 'info' } } }))
  assert.ok(!isRead({ channel: 'subscriptionResponse', data: null }))
  assert.ok(!isRead({ channel: 'subscriptionResponse', data: 'x' }))
  assert.ok(isRead({ channel: 'subscriptionResponse', data: { method: 'subscribe', subscription: {} } }))
})

test('only frames with the name of a channel are read', () => {
  for (const payload of ['no JSON', 'null', '5', '[]', '{}', '{"channel":5}', new Blob(['{}']), undefined])
    assert.ok(!isReadableFrame(payload), String(payload))
  assert.ok(isReadableFrame('{"channel":"pong"}'))
})
