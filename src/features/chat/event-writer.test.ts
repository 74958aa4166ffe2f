import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmit } from './answer-emitter.ts'
import { createEventWriter } from './event-writer.ts'
import type { ChatEvent } from './events.ts'

/** A writer whose commits end when the test says so. */
function slowWriter() {
  const commits: { events: string[]; end: () => void }[] = []
  const seen: ChatEvent[] = []
  const writer = createEventWriter({
    append: ({ events }) => {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const shown = events.map(({ seq, event, data }) => `${seq} ${event} ${String(data.text)}`)
      commits.push({ events: shown, end: () => resolve(true) })
      return promise
    },
    chatId: 'chat',
    version: 1,
    seq: 1,
    onStored: (events) => seen.push(...events),
  })
  return { writer, commits, seen }
}
const turnOfEvents = () => new Promise<void>((resolve) => setImmediate(resolve))

test('pieces that wait for a commit are one event, up to 2,000 characters and up to the next other event', async () => {
  const { writer, commits, seen } = slowWriter()
  const stored = ['a', 'b', 'c'].map((text) => writer.add('chunk', { text }))
  void writer.add('planning', { v4_event: 'plan_step', data: { id: '1', text: 'Look' } })
  for (const text of ['d', 'e', 'f'.repeat(1_999), 'g']) stored.push(writer.add('chunk', { text }))
  assert.deepEqual(commits[0]!.events, ['2 chunk a'])
  assert.deepEqual(seen, [])
  commits[0]!.end()
  await stored[0]
  await turnOfEvents()
  assert.deepEqual(commits[1]!.events, [
    '3 chunk bc',
    '4 planning undefined',
    '5 chunk de',
    `6 chunk ${'f'.repeat(1_999)}g`,
  ])
  // A commit that is under way takes no more.
  const late = writer.add('chunk', { text: 'h' })
  commits[1]!.end()
  await Promise.all(stored)
  await turnOfEvents()
  assert.deepEqual(commits[2]!.events, ['7 chunk h'])
  commits[2]!.end()
  await late
  assert.deepEqual(
    seen.map(({ seq }) => seq),
    [2, 3, 4, 5, 6, 7],
  )
})

test('a piece with a result beside it is an event of its own', async () => {
  const { writer, commits } = slowWriter()
  void writer.add('chunk', { text: 'a' })
  const output = { ok: true }
  void writer.add('chunk', { text: 'b' }, { call: { call_id: 'x', output } })
  void writer.add('chunk', { text: 'c' })
  commits[0]!.end()
  await turnOfEvents()
  assert.deepEqual(commits[1]!.events, ['3 chunk b', '4 chunk c'])
})

test('no character is cut between two pieces, wherever the answerer cuts its text', async () => {
  const { writer, commits } = slowWriter()
  const { emit } = createEmit(writer, [])
  const text = `${'x'.repeat(7_999)}🎉 and 🎉`
  void emit.chunk(text.slice(0, -1))
  void emit.chunk(text.slice(-1))
  commits[0]!.end()
  await turnOfEvents()
  const pieces = [...commits[0]!.events, ...commits[1]!.events].map((shown) =>
    shown.replace(/^\d+ chunk /, ''),
  )
  assert.equal(pieces.join(''), text)
  assert.ok(
    pieces.every((piece) => piece.isWellFormed()),
    'each piece has whole characters',
  )
})
