import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  framesPerMessageMax,
  ProtocolError,
  readEvent,
  readGatewayFrames,
  readServiceFrames,
} from './agent-protocol.ts'

const event = (data: object, name = 'chunk') =>
  JSON.stringify({ type: 'event', run_id: 'r', seq: 1, event: name, data })

test('a message has one frame in each line, with its bytes', () => {
  const lines = [event({ text: 'é' }), JSON.stringify({ type: 'accepted', run_id: 'r' })]
  const read = readServiceFrames(lines.join('\n'))
  assert.deepEqual(
    read.map(({ frame }) => frame.type),
    ['event', 'accepted'],
  )
  assert.deepEqual(
    read.map(({ bytes }) => bytes),
    lines.map((line) => Buffer.byteLength(line)),
  )
})

test('unknown frames, events and fields are ignored', () => {
  assert.deepEqual(readServiceFrames('{"type":"later","run_id":7}'), [])
  assert.deepEqual(readServiceFrames('{"type":"toString"}'), [])
  assert.equal(readServiceFrames('{"type":"accepted","run_id":"r","more":[1]}').length, 1)
  assert.equal(readEvent({ event: 'later', data: { any: 1 } }), undefined)
  assert.equal(readEvent({ event: 'constructor', data: {} }), undefined)
  assert.equal(readEvent({ event: 'chunk', data: { text: 'a', more: 1 } })?.event, 'chunk')
})

test('a known frame or event of another form ends the connection', () => {
  for (const text of [
    '',
    'null',
    '[]',
    '{"type":"accepted"}',
    '{"type":"accepted","run_id":7}',
    `{"type":"accepted","run_id":"${'r'.repeat(65)}"}`,
    '{"type":"event","run_id":"r","seq":0,"event":"chunk","data":{}}',
    '{"type":"event","run_id":"r","seq":1,"event":"chunk","data":[]}',
    Array.from({ length: framesPerMessageMax + 1 }, () => '{}').join('\n'),
  ])
    assert.throws(() => readServiceFrames(text), ProtocolError, text.slice(0, 80))
  assert.throws(() => readEvent({ event: 'chunk', data: { text: 7 } }), ProtocolError)
  assert.throws(() => readEvent({ event: 'chunk', data: { text: 'x'.repeat(200_001) } }), ProtocolError)
  assert.throws(() => readGatewayFrames('{"type":"start","run_id":"r"}'), ProtocolError)
})

test('text that a database refuses does not come through', () => {
  const [read] = readServiceFrames(
    '{"type":"event","run_id":"r","seq":1,"event":"x","data":{"a\\u0000":["\\u0000b\\ud800c"]}}',
  )
  assert.deepEqual(read?.frame, {
    type: 'event',
    run_id: 'r',
    seq: 1,
    event: 'x',
    data: { a: ['b\ufffdc'] },
  })
  const [pair] = readServiceFrames(
    '{"type":"event","run_id":"r","seq":1,"event":"x","data":{"a":"\\ud83d\\ude00"}}',
  )
  assert.deepEqual(pair?.frame.type === 'event' && pair.frame.data, { a: '😀' })
})
