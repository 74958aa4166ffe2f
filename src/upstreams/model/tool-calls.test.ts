import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCallCollector, parseArguments } from './tool-calls.ts'

const options = { toolCallsMax: 5, usedIds: [] }

test('arguments are an object, none at all, or a problem', () => {
  assert.deepEqual(parseArguments('{"a":[1,"x"]}'), { isValid: true, value: { a: [1, 'x'] } })
  for (const empty of ['', ' ', '\n']) assert.deepEqual(parseArguments(empty), { isValid: true, value: {} })
  for (const text of ['{"a":', '{a:1}', '{} {}', "{'a':1}"])
    assert.deepEqual(
      parseArguments(text),
      { isValid: false, problem: 'the arguments are no valid JSON' },
      text,
    )
  for (const text of ['[]', '"x"', '1', 'null', 'true'])
    assert.deepEqual(
      parseArguments(text),
      { isValid: false, problem: 'the arguments are no JSON object' },
      text,
    )
})

test('calls whose pieces are mixed in any way are whole again, in the order in which they began', () => {
  const call = fc.record({ name: fc.string(), input: fc.dictionary(fc.string(), fc.jsonValue()) })
  const calls = fc.array(call, { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(calls, fc.infiniteStream(fc.nat(1_000)), (wanted, numbers) => {
      const collector = createCallCollector(options)
      const next = (below: number) => numbers.next().value! % below
      const left = wanted.map(({ input }) => [...JSON.stringify(input)])
      for (const [key, { name }] of wanted.entries()) collector.start(key, { id: `id-${key}`, name })
      for (;;) {
        const open = [...left.keys()].filter((key) => left[key]!.length > 0)
        if (open.length === 0) break
        const key = open[next(open.length)]!
        collector.append(key, left[key]!.splice(0, 1 + next(4)).join(''))
      }
      const events = collector.finishAll()
      assert.deepEqual(
        events.map(({ name, argumentsText }) => ({ name, argumentsText })),
        wanted.map(({ name, input }) => ({ name, argumentsText: JSON.stringify(input) })),
      )
      assert.ok(events.every((event) => event.arguments.isValid))
    }),
  )
})

test('no two calls of a conversation have one id', () => {
  const collector = createCallCollector({ toolCallsMax: 9, usedIds: ['call_1', 'x'] })
  for (const [key, id] of ['a', 'a', 'a_1', '', '', 'x'].entries())
    collector.start(key, { id, name: 'price' })
  const ids = collector.finishAll().map(({ id }) => id)
  assert.deepEqual(ids, ['a', 'a_1', 'a_1_1', 'call_2', 'call_3', 'x_1'])
})

test('a call that takes the place of an open one is another call', () => {
  const collector = createCallCollector(options)
  collector.start(0, { id: 'a', name: 'first' })
  collector.append(0, '{"a":1}')
  collector.start(0, { id: 'b', name: 'second' })
  collector.append(0, '{"b":2}')
  assert.deepEqual(
    collector.finishAll().map(({ name, argumentsText }) => [name, argumentsText]),
    [
      ['first', '{"a":1}'],
      ['second', '{"b":2}'],
    ],
  )
})

test('a call more than the limit is a fault', () => {
  const collector = createCallCollector(options)
  for (let key = 0; key < 5; key++) collector.start(key, { id: '', name: 'price' })
  assert.throws(() => collector.start(5, { id: '', name: 'price' }), { code: 'upstream_rejected' })
})
