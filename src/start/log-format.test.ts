import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatLogLine } from './log-format.ts'

const time = '2026-01-31T09:08:07.654Z'

test('a line for a terminal shows time, level, sentence and facts', () => {
  const line = { level: 30, time, request_id: 'r-1', status: 200, nested: { a: 1 }, msg: 'request' }
  assert.equal(
    formatLogLine(JSON.stringify(line)),
    '09:08:07.654 INFO  request request_id=r-1 status=200 nested={"a":1}\n',
  )
})

test('the stack of an error and of its cause is below the line', () => {
  const cause = { type: 'Error', message: 'refused', stack: 'Error: refused\n    at connect' }
  const error = { type: 'Fault', message: 'away', stack: 'Fault: away\n    at read', cause }
  assert.deepEqual(
    formatLogLine(JSON.stringify({ level: 50, time, error, msg: 'request failed' })).split('\n'),
    [
      '09:08:07.654 ERROR request failed',
      '    Fault: away',
      '        at read',
      '  caused by',
      '    Error: refused',
      '        at connect',
      '',
    ],
  )
})

test('an error without a stack stays among the facts', () => {
  const line = { level: 40, time, error: { message: 'away' }, msg: 'postponed' }
  assert.equal(formatLogLine(JSON.stringify(line)), '09:08:07.654 WARN  postponed error={"message":"away"}\n')
})

test('nothing in a line reaches the terminal as a control sequence or as a line of its own', () => {
  const hostile = 'a\u001b[2J\nportico ready\u009b31m\u202e'
  const error = { stack: `Error: ${hostile}` }
  const text = formatLogLine(JSON.stringify({ level: 50, time, url: hostile, error, msg: hostile }))
  assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}|\p{Cf}/u)
  // The stack is split at its own line breaks and indented.
  for (const line of text.trimEnd().split('\n')) assert.match(line, /^(?:09:08:07\.654 ERROR | {4})/)
})

test('a control character beyond the first plane is escaped whole, so that two of them stay apart', () => {
  const shown = (url: string) => formatLogLine(JSON.stringify({ level: 30, time, url, msg: 'request' }))
  assert.match(shown('a\u{e0041}'), /url=a\\u\{e0041\}\n$/)
  assert.notEqual(shown('a\u{e0041}'), shown('a\u{e0042}'))
})
