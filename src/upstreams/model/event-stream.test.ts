import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createEventParser, type ServerEvent } from './event-stream.ts'

/** The events of a body that arrives in these pieces. */
function eventsOf(pieces: readonly Uint8Array[], charactersMax = 10_000): ServerEvent[] {
  const decoder = new TextDecoder()
  const parser = createEventParser(charactersMax)
  return pieces.flatMap((piece) => parser.push(decoder.decode(piece, { stream: true })))
}
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const body = 'event: a\ndata: {"t":"Grüße – 🎉"}\n\n: a comment\n\ndata: one\ndata: two\n\ndata:[DONE]\n\n'
const expected: ServerEvent[] = [
  { event: 'a', data: '{"t":"Grüße – 🎉"}' },
  { event: undefined, data: 'one\ntwo' },
  { event: undefined, data: '[DONE]' },
]

for (const [name, end] of [
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
])
  test(`lines that end in ${name} are the same events wherever the bytes are cut`, () => {
    const bytes = bytesOf(body.replaceAll('\n', end!))
    for (let at = 0; at <= bytes.length; at++)
      assert.deepEqual(eventsOf([bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at ${at}`)
    assert.deepEqual(eventsOf([...bytes].map((byte) => Uint8Array.of(byte))), expected)
  })

test('any events in any pieces are read as they were written', () => {
  const line = fc
    .string({ unit: 'grapheme', maxLength: 20 })
    .map((text) => text.replace(/[\r\n\uFEFF]/gu, ''))
  const event = fc.record({ event: fc.option(line), data: fc.array(line, { minLength: 1, maxLength: 3 }) })
  const end = fc.constantFrom('\n', '\r\n', '\r')
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), end, fc.infiniteStream(fc.nat(9)), (events, eol, cuts) => {
      const written = events.map(({ event: name, data }) => {
        const head = name === null ? [] : [`event: ${name}`]
        return [': comment', ...head, ...data.map((each) => `data: ${each}`), '', ''].join(eol)
      })
      const bytes = bytesOf(written.join(''))
      const pieces: Uint8Array[] = []
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + cuts.next().value!
        pieces.push(bytes.subarray(at, at + size))
        at += size
      }
      const read = events.map(({ event: name, data }) => ({
        event: name || undefined,
        data: data.join('\n'),
      }))
      assert.deepEqual(eventsOf(pieces), read)
    }),
  )
})

test('an event that its end never came for is none, and a name without data neither', () => {
  assert.deepEqual(eventsOf([bytesOf('data: one\n\ndata: two\n')]), [{ event: undefined, data: 'one' }])
  assert.deepEqual(eventsOf([bytesOf('event: ping\n\nid: 1\nretry: 5\n\ndata\n\n')]), [
    { event: undefined, data: '' },
  ])
})

test('an event is bounded, whether in one line, in many, or in many pieces, and comments do not count', () => {
  const long = (text: string) => () => eventsOf([bytesOf(text)], 100)
  assert.throws(long(`data: ${'x'.repeat(200)}`), { code: 'upstream_rejected' })
  assert.throws(long('data: 0123456789\n'.repeat(20)), { code: 'upstream_rejected' })
  assert.throws(() => eventsOf(Array(20).fill(bytesOf('data: 0123456789')), 100), {
    code: 'upstream_rejected',
  })
  assert.deepEqual(long(`: ${'x'.repeat(200)}`)(), [])
  assert.deepEqual(long(': 0123456789\n'.repeat(20))(), [])
  assert.equal(long('data: 0123456789\n\n'.repeat(20))().length, 20)
})
