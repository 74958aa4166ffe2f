import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonLine, jsonText, rowLines, tableLines } from './output.ts'

const at = new Date('2026-01-02T03:04:05Z')

test('columns are as wide as their widest cell, and an absent value is a dash', () => {
  const lines = rowLines(
    [
      { id: 1n, at, note: null },
      { id: 20n, at, note: { a: 5n } },
    ],
    { json: false },
  )
  assert.deepEqual(lines, [
    'id  at                        note',
    '1   2026-01-02T03:04:05.000Z  -',
    '20  2026-01-02T03:04:05.000Z  {"a":"5"}',
  ])
  assert.deepEqual(rowLines([], { json: false }), ['(none)'])
})

test('as JSON each row is one line, with integers beyond 2^53 as text', () => {
  assert.deepEqual(rowLines([{ id: 2n ** 60n, at }], { json: true }), [
    '{"id":"1152921504606846976","at":"2026-01-02T03:04:05.000Z"}',
  ])
  assert.deepEqual(rowLines([], { json: true }), [])
})

test('control characters of user text are escaped', () => {
  const name = 'a\u001b[2J\nagt_1  frozen\u009b31m\u202eevil\u2028'
  const shown = 'a\\u001b[2J\\u000aagt_1  frozen\\u009b31m\\u202eevil\\u2028'
  assert.deepEqual(tableLines([{ name }]), ['name', shown])
  assert.equal(tableLines([{ input: { name } }]).length, 2)
  const line = jsonLine({ name })
  assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\u2028]/u)
  assert.deepEqual(JSON.parse(line), { name })
  assert.deepEqual(JSON.parse(jsonText({ name })), { name })
  assert.doesNotMatch(jsonText({ name }).replaceAll('\n', ''), /[\p{Cc}\p{Cf}\u2028]/u)
})
