import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAnthropicReader } from './anthropic-reader.ts'
import type { ModelEvent } from './turn.ts'

type Fields = { type: string } & Record<string, unknown>
const start: Fields = {
  type: 'message_start',
  message: { usage: { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 1 } },
}
const block = (index: number, content: object): Fields => ({
  type: 'content_block_start',
  index,
  content_block: content,
})
const words = (index: number, text: string): Fields => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'text_delta', text },
})
const json = (index: number, text: string): Fields => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'input_json_delta', partial_json: text },
})
const call = (index: number, id: string, name: string): Fields =>
  block(index, { type: 'tool_use', id, name, input: {} })
const stop = (index: number): Fields => ({ type: 'content_block_stop', index })
const reason = (given: string, output?: number): Fields => ({
  type: 'message_delta',
  delta: { stop_reason: given },
  ...(output !== undefined && { usage: { output_tokens: output } }),
})

function eventsOf(fields: readonly Fields[], key?: string): ModelEvent[] {
  const reader = createAnthropicReader({ toolCallsMax: 10, usedIds: [], key })
  const events = fields.flatMap((each) => reader.read({ event: each.type, data: JSON.stringify(each) }))
  return [...events, ...reader.end()]
}
const read = (...fields: Fields[]) =>
  eventsOf(fields).map((event) => {
    if (event.type === 'text') return event.text
    if (event.type === 'tool_call') return `${event.id} ${event.name} ${event.argumentsText}`
    return event.type === 'usage' ? `${event.inputTokens}+${event.outputTokens}` : event.reason
  })

test('text, calls, usage and reason come in this order', () => {
  const found = read(
    start,
    block(0, { type: 'text', text: '' }),
    { type: 'ping' },
    words(0, 'I look'),
    stop(0),
    call(1, 'a', 'price'),
    json(1, '{"symbol":'),
    json(1, '"ETH"}'),
    stop(1),
    call(2, 'b', 'holdings'),
    stop(2),
    reason('tool_use', 9),
    { type: 'message_stop' },
  )
  assert.deepEqual(found, ['I look', 'a price {"symbol":"ETH"}', 'b holdings ', '10+9', 'tools'])
})

test('blocks that are mixed, have gaps or never stop are read by their index', () => {
  const mixed = read(
    call(5, 'a', 'one'),
    call(2, 'b', 'two'),
    json(2, '{"b":'),
    json(5, '{"a":1}'),
    json(2, '2}'),
    stop(5),
    reason('tool_use'),
  )
  assert.deepEqual(mixed, ['a one {"a":1}', 'b two {"b":2}', 'tools'])
  assert.deepEqual(
    read(block(0, { type: 'tool_use', id: 'a', name: 'one', input: { x: 1 } }), stop(0), reason('tool_use')),
    ['a one {"x":1}', 'tools'],
  )
})

test('each reason is one of four, and the first one counts', () => {
  const reasonOf = (given: string) => read(reason(given)).at(-1)
  assert.deepEqual(['end_turn', 'stop_sequence', 'max_tokens', 'refusal', 'tool_use', 'new'].map(reasonOf), [
    'end',
    'end',
    'length',
    'refusal',
    'end',
    'end',
  ])
  assert.deepEqual(read(words(0, 'Yes'), reason('end_turn'), words(0, ' and no'), reason('max_tokens')), [
    'Yes',
    'end',
  ])
  assert.equal(read(call(0, 'a', 'one'), stop(0), reason('end_turn')).at(-1), 'tools')
})

test('unknown kinds of events, blocks and pieces are skipped', () => {
  const found = read(
    { type: 'future' },
    block(0, { type: 'thinking', thinking: '' }),
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm' } },
    stop(0),
    block(1, { type: 'text', text: 'So' }),
    words(1, ' yes'),
    stop(1),
    reason('end_turn', 2),
  )
  assert.deepEqual(found, ['So', ' yes', '0+2', 'end'])
})

test('usage that is absent is not reported', () => {
  assert.deepEqual(read({ type: 'message_start', message: {} }, reason('end_turn')), ['end'])
})

test('an end without a reason is a break, and what cannot be read a change', () => {
  assert.throws(() => read(start, words(0, 'So ')), { code: 'upstream_timeout' })
  assert.throws(() => read(start, words(0, 'So '), { type: 'message_stop' }), { code: 'upstream_timeout' })
  assert.throws(() => read(json(0, '{}'), reason('end_turn')), { code: 'upstream_changed' })
  const { index: _, ...without } = call(0, 'a', 'one')
  assert.throws(() => read(without, reason('end_turn')), { code: 'upstream_changed' })
})

test('an error within the answer passes or does not, and its words are without the key', () => {
  const error = (fields: object) => () => eventsOf([{ type: 'error', error: fields }], 'sk-secret')
  assert.throws(error({ type: 'overloaded_error', message: 'Overloaded' }), { code: 'unavailable' })
  assert.throws(error({ type: 'api_error' }), { code: 'unavailable' })
  assert.throws(error({ type: 'invalid_request_error' }), { code: 'upstream_rejected' })
  assert.throws(error({ type: 'x', message: 'sk-secret' }), ({ cause }: Error) => {
    assert.equal((cause as Error).message, 'model endpoint: x: [key]')
    return true
  })
})
