import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { frameBytesMax, framesPerMessageMax, ProtocolError } from './agent-protocol.ts'
import { createLines, toLine, watchLiveness } from './agent-socket.ts'

test('frames of one round leave as one message, within its bytes and its number of frames', async () => {
  const messages: string[] = []
  const lines = createLines((message) => messages.push(message))
  lines.add(toLine({ a: 1 }))
  lines.add(toLine({ b: 2 }))
  assert.equal(messages.length, 0)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(messages, ['{"a":1}\n{"b":2}'])

  messages.splice(0)
  const large = toLine({ text: 'x'.repeat(frameBytesMax / 2 - 20) })
  for (let count = 0; count < 5; count++) lines.add(large)
  for (let count = 0; count < framesPerMessageMax; count++) lines.add(toLine({}))
  lines.flush()
  assert.ok(messages.length >= 3)
  for (const message of messages) {
    assert.ok(Buffer.byteLength(message) <= frameBytesMax)
    assert.ok(message.split('\n').length <= framesPerMessageMax)
  }
  assert.equal(messages.join('\n').split('\n').length, 5 + framesPerMessageMax)
})

test('a frame above the limit is not sent', () => {
  assert.throws(() => toLine({ text: 'x'.repeat(frameBytesMax) }), ProtocolError)
})

test('a silent connection is pinged, and ended after its time', () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    const seen: string[] = []
    let now = 0
    const socket = { ping: () => seen.push('ping'), terminate: () => seen.push('end') }
    using live = watchLiveness(socket, { pingEveryMs: 10, deadAfterMs: 25 }, () => now)
    const tick = () => {
      now += 10
      mock.timers.tick(10)
    }
    tick()
    tick()
    live.received()
    tick()
    tick()
    assert.deepEqual(seen, ['ping', 'ping', 'ping', 'ping'])
    tick()
    assert.equal(seen.at(-1), 'end')
  } finally {
    mock.timers.reset()
  }
})
