import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProtocolError, windowMax } from '#kernel/wire/agent-protocol.ts'
import type { Line } from '#kernel/wire/agent-socket.ts'
import { createEventQueue } from './event-queue.ts'

const opened = () => {
  const sent: number[] = []
  const queue = createEventQueue('r')
  const send = ({ text }: Line) => void sent.push((JSON.parse(text) as { seq: number }).seq)
  return { sent, queue, send }
}
const upTo = (count: number, from = 1) => Array.from({ length: count }, (_, at) => from + at)

test('no more events leave than the window has, and an acknowledgement lets the next ones through', async () => {
  const { sent, queue, send } = opened()
  queue.attach(send, 0)
  const added = upTo(windowMax.events + 3).map(() => queue.add('x', {}))
  assert.deepEqual(sent, upTo(windowMax.events))
  let isSent = false
  void added.at(-1)!.sent.then(() => {
    isSent = true
  })
  await Promise.resolve()
  assert.equal(isSent, false)
  queue.ack(2)
  assert.equal(sent.length, windowMax.events + 2)
  queue.ack(3)
  await added.at(-1)!.sent
  assert.equal(sent.length, windowMax.events + 3)
})

test('bytes fill the window too, and one large event still leaves', () => {
  const { sent, queue, send } = opened()
  queue.attach(send, 0)
  queue.add('chunk', { text: 'x'.repeat(windowMax.bytes * 2) })
  queue.add('chunk', { text: 'x' })
  assert.deepEqual(sent, [1])
  queue.ack(1)
  assert.deepEqual(sent, [1, 2])
})

test('a gateway that comes back gets what it has not seen, and no other', () => {
  const { sent, queue, send } = opened()
  queue.attach(send, 0)
  for (let count = 0; count < 5; count++) queue.add('chunk', {})
  queue.ack(2)
  queue.detach()
  queue.add('chunk', {})
  assert.deepEqual(sent, upTo(5))
  sent.length = 0
  assert.equal(queue.attach(send, 3), true)
  assert.deepEqual(sent, [4, 5, 6])
  assert.equal(queue.attach(send, 1), false, 'the second event is gone')
  assert.equal(queue.attach(send, 7), false, 'the seventh does not exist')
})

test('an acknowledgement of what was not sent is no acknowledgement', () => {
  const { queue, send } = opened()
  queue.attach(send, 0)
  queue.add('chunk', {})
  assert.throws(() => queue.ack(2), ProtocolError)
})

test('an answerer that does not wait for its reader is stopped', () => {
  const { queue } = opened()
  const text = 'x'.repeat(1_000_000)
  for (let count = 0; count < 4; count++) queue.add('chunk', { text })
  assert.throws(() => queue.add('chunk', { text }), /writes more than is read/)
})

test('after its release nobody waits for the window', async () => {
  const { queue } = opened()
  const { sent } = queue.add('chunk', {})
  queue.release()
  await sent
  await queue.add('chunk', {}).sent
})
