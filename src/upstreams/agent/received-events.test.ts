import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProtocolError, windowMax } from '#kernel/wire/agent-protocol.ts'
import { createReceived } from './received-events.ts'

test('an event counts once, and one that is missing is noticed', () => {
  const received = createReceived()
  assert.equal(received.take(1, 10), true)
  assert.equal(received.take(1, 10), false)
  assert.equal(received.last(), 1)
  assert.throws(() => received.take(3, 10), ProtocolError)
})

test('what is acknowledged is done with, and all before it', () => {
  const received = createReceived()
  for (const seq of [1, 2, 3]) received.take(seq, 10)
  assert.equal(received.done(2), undefined)
  assert.equal(received.done(1), 2)
  assert.equal(received.done(3), 3)
  assert.equal(received.done(3), undefined)
})

test('a service that sends beyond the window is stopped', () => {
  const many = createReceived()
  for (let seq = 1; seq <= windowMax.events; seq++) many.take(seq, 1)
  assert.throws(() => many.take(windowMax.events + 1, 1), ProtocolError)
  many.done(1)
  assert.equal(many.take(windowMax.events + 1, 1), true)
  const large = createReceived()
  large.take(1, windowMax.bytes)
  assert.throws(() => large.take(2, 1), ProtocolError)
})
