import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAiReader } from './openai-reader.ts'
import { openAiBody } from './openai-request.ts'
import type { ModelEvent } from './turn.ts'

const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const call = (fields: object) => chunk({ tool_calls: [fields] })
const usage = (input: number, output: number) => ({
  choices: [],
  usage: { prompt_tokens: input, completion_tokens: output },
})
/** The events of a stream that ends after these chunks; text is data as it is. */
function eventsOf(chunks: readonly (object | string)[], key?: string): ModelEvent[] {
  const reader = openAiReader({ toolCallsMax: 10, usedIds: [], key })
  const events = chunks.flatMap((each) =>
    reader.read({ event: undefined, data: typeof each === 'string' ? each : JSON.stringify(each) }),
  )
  return [...events, ...reader.end()]
}
const brief = (events: readonly ModelEvent[]) =>
  events.map((event) => {
    if (event.type === 'text') return event.text
    if (event.type === 'tool_call') return `${event.id} ${event.name} ${event.argumentsText}`
    return event.type === 'usage' ? `${event.inputTokens}+${event.outputTokens}` : event.reason
  })
const read = (...chunks: (object | string)[]) => brief(eventsOf(chunks))

test('text, calls, usage and reason come in this order', () => {
  const found = read(
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'I look' }),
    call({ index: 0, id: 'a', type: 'function', function: { name: 'price', arguments: '' } }),
    call({ index: 0, function: { arguments: '{"symbol":' } }),
    call({ index: 1, id: 'b', type: 'function', function: { name: 'holdings', arguments: '' } }),
    call({ index: 0, function: { arguments: '"ETH"}' } }),
    chunk({}, 'tool_calls'),
    usage(10, 5),
    '[DONE]',
  )
  assert.deepEqual(found, ['I look', 'a price {"symbol":"ETH"}', 'b holdings ', '10+5', 'tools'])
})

test('each reason is one of four, and calls decide between tools and end', () => {
  const reasonOf = (finish: string, ...before: object[]) => read(...before, chunk({}, finish)).at(-1)
  const made = call({ index: 0, id: 'a', function: { name: 'price', arguments: '{}' } })
  assert.deepEqual(
    ['stop', 'length', 'content_filter', 'eos'].map((finish) => reasonOf(finish)),
    ['end', 'length', 'refusal', 'end'],
  )
  assert.equal(reasonOf('stop', made), 'tools')
  assert.equal(reasonOf('function_call', made), 'tools')
  assert.equal(reasonOf('length', made), 'length')
  assert.equal(reasonOf('tool_calls'), 'end')
  assert.equal(reasonOf('stop', chunk({ refusal: 'I do not.' })), 'refusal')
  assert.throws(() => reasonOf('error'), { code: 'unavailable' })
})

test('what compatible servers write differently is read as well', () => {
  const noIndex = read(
    call({ id: 'a', function: { name: 'one', arguments: '{"x":' } }),
    call({ function: { arguments: '1}' } }),
    call({ id: 'b', function: { name: 'two', arguments: {} } }),
    chunk({}, 'stop'),
  )
  assert.deepEqual(noIndex, ['a one {"x":1}', 'b two {}', 'tools'])
  const oneIndex = read(
    call({ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }),
    call({ index: 0, id: 'b', function: { name: 'two', arguments: '{}' } }),
    chunk({}, 'stop'),
  )
  assert.deepEqual(oneIndex, ['a one {}', 'b two {}', 'tools'])
  const repeated = read(
    call({ index: 0, id: 'a', function: { name: 'one', arguments: '{"x"' } }),
    call({ index: 0, id: 'a', function: { name: 'one', arguments: ':1}' } }),
    chunk({}, 'stop'),
  )
  assert.deepEqual(repeated, ['a one {"x":1}', 'tools'])
  const lateName = read(
    call({ index: 0, id: 'a', function: { arguments: '' } }),
    call({ index: 0, function: { name: 'one', arguments: '{}' } }),
    chunk({}, 'stop'),
  )
  assert.deepEqual(lateName, ['a one {}', 'tools'])
  const reasoning = read(chunk({ reasoning_content: 'Hm' }), chunk({ content: 'Yes' }), chunk({}, 'stop'))
  assert.deepEqual(reasoning, ['Yes', 'end'])
})

test('a second reason, an empty chunk, another choice and what follows the reason change nothing', () => {
  const found = read(
    { choices: [] },
    {},
    { choices: [{ index: 1, delta: { content: 'other' }, finish_reason: 'length' }] },
    chunk({ content: 'Yes' }),
    chunk({}, 'stop'),
    chunk({ content: ' and no' }, 'length'),
    usage(1, 2),
    chunk({}, 'stop', { usage: null }),
  )
  assert.deepEqual(found, ['Yes', '1+2', 'end'])
})

test('counts that are none are not reported', () => {
  for (const wrong of [-1, 1.5, '3', null])
    assert.deepEqual(read(chunk({}, 'stop'), { choices: [], usage: { prompt_tokens: wrong } }), ['end'])
  assert.deepEqual(read(chunk({}, 'stop', { usage: { completion_tokens: 3 } })), ['0+3', 'end'])
})

test('an end without a reason is a break', () => {
  assert.throws(() => read(chunk({ content: 'So ' })), { code: 'upstream_timeout' })
  assert.throws(() => read(chunk({ content: 'So ' }), '[DONE]'), { code: 'upstream_timeout' })
  assert.throws(() => read(), { code: 'upstream_timeout' })
  assert.throws(() => read('<html>'), { code: 'upstream_changed' })
  assert.throws(() => read('[1]'), { code: 'upstream_changed' })
})

test('an error within the answer passes or does not, and its words are without the key', () => {
  const error = (fields: object) => () => eventsOf([{ error: fields }], 'sk-secret')
  assert.throws(error({ type: 'server_error', message: 'x' }), { code: 'unavailable' })
  assert.throws(error({ code: 503, message: 'x' }), { code: 'unavailable' })
  assert.throws(error({ code: 'rate_limit_exceeded' }), { code: 'unavailable' })
  assert.throws(error({ type: 'invalid_request_error' }), { code: 'upstream_rejected' })
  assert.throws(error({ message: 'the key sk-secret is bad' }), ({ cause }: Error) => {
    assert.equal((cause as Error).message, 'model endpoint: the key [key] is bad')
    return true
  })
})

test('texts in parts are texts, and thoughts in any form are none', () => {
  const part = (type: string, text: string) => ({ type, text })
  assert.deepEqual(
    read(
      chunk({ content: [{ type: 'thinking', thinking: [part('text', 'I sell.')] }] }),
      chunk({ content: [part('text', 'Ho'), part('text', 'ld.')] }),
      chunk({}, 'stop'),
    ),
    ['Hold.', 'end'],
  )
  assert.deepEqual(
    read(chunk({ content: '<think>I sell.' }), chunk({ content: '</think>\n\nHold.' }), chunk({}, 'stop')),
    ['Hold.', 'end'],
  )
  assert.deepEqual(read(chunk({ content: '<th' }), chunk({}, 'stop')), ['<th', 'end'])
  for (const field of ['reasoning', 'reasoning_content']) {
    const reader = openAiReader({ toolCallsMax: 10, usedIds: [] })
    assert.deepEqual(
      reader.read({ event: undefined, data: JSON.stringify(chunk({ [field]: 'I sell.' })) }),
      [],
    )
    assert.ok(reader.hasBegun(), field)
  }
})

test('what an endpoint wants back with its call is sent back with it', () => {
  const extra_content = { google: { thought_signature: 'c2lnbmVk' } }
  const made = { index: 0, id: 'a', function: { name: 'price', arguments: '{}' }, extra_content }
  const calls = eventsOf([call(made), chunk({}, 'tool_calls')]).filter((event) => event.type === 'tool_call')
  const body = openAiBody(
    { instructions: '', messages: [{ role: 'assistant', text: '', calls }], tools: [] },
    { model: 'm', tokensMax: 1, rejected: new Set() },
  )
  const [message] = body.messages as { tool_calls: object[] }[]
  assert.deepEqual(message!.tool_calls, [
    { id: 'a', type: 'function', function: { name: 'price', arguments: '{}' }, extra_content },
  ])
  const long = { ...made, extra_content: { signature: 'x'.repeat(9_000) } }
  assert.ok(eventsOf([call(long), chunk({}, 'tool_calls')]).every((event) => !('extra' in event)))
})
