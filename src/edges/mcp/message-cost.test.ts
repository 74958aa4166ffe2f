import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasLongId, idCharactersMax, idOf, readPoints } from './message-cost.ts'

const tools = new Set(['tasks_list', 'tasks_get', 'tasks_wait'])
const points = (body: unknown) => readPoints(body, tools)
const call = (changes: object = {}, params: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'tasks_list', arguments: {}, ...params },
  ...changes,
})
const named = (given: object | undefined) => call({}, { name: 'call_operation', arguments: given })
const recent = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', other: {} }

test('what reaches an operation costs no read', () => {
  for (const body of [
    call(),
    call({ id: 'a' }),
    call({}, { arguments: undefined }),
    call({}, { name: 'tasks_wait' }),
    named({ name: 'tasks_list' }),
    named({ name: 'tasks_get', arguments: { task_id: 't' } }),
    call({}, { _meta: { progressToken: 'p' } }),
    call({}, { _meta: { ...recent, progressToken: 7 }, requestState: 'x' }),
    call({ method: 'tasks/get', params: { taskId: 't', _meta: recent } }),
    [call(), call({ id: 2 })],
  ])
    assert.equal(points(body), 0, JSON.stringify(body))
})

test('every other message costs one', () => {
  for (const body of [
    undefined,
    null,
    'x',
    {},
    [],
    call({ method: 'prompts/list' }),
    call({ method: 'ping', params: undefined }),
    call({ jsonrpc: '1.0' }),
    call({ id: undefined }),
    call({ id: null }),
    call({ id: 1.5 }),
    call({ params: undefined }),
    call({ params: [] }),
    call({}, { name: 'nothing' }),
    call({}, { name: 7 }),
    call({}, { name: 'find_operation', arguments: { query: 'x' } }),
    named(undefined),
    named({ name: 'nothing' }),
    named({ name: 'tasks_list', arguments: [] }),
    named({ name: 'tasks_list', task_id: 't' }),
    named({ name: 'call_operation' }),
    call({}, { arguments: [] }),
    call({}, { arguments: null }),
    call({}, { _meta: 'x' }),
    call({}, { _meta: { progressToken: {} } }),
    call({}, { _meta: { 'io.modelcontextprotocol/related-task': 7 } }),
    call({}, { task: 7 }),
    call({ method: 'tasks/get', params: { taskId: 't' } }),
    call({ method: 'tasks/get', params: { taskId: 7, _meta: recent } }),
    call({ method: 'tasks/list', params: { taskId: 't', _meta: recent } }),
  ])
    assert.equal(points(body), 1, JSON.stringify(body))
})

test('a list of tools, a handshake and many values cost more', () => {
  assert.equal(points(call({ method: 'tools/list', params: undefined })), 20)
  assert.equal(points(call({ method: 'initialize' })), 3)
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
  assert.equal(points(call({}, { arguments: many(100) })), 0)
  assert.equal(points(call({}, { arguments: many(900) })), 4)
  assert.equal(points(call({}, { arguments: { list: [[many(900)]] } })), 4)
  assert.equal(points(Array(3).fill(call({ method: 'tools/list' }))), 60)
})

test('an id that comes back with each answer is short', () => {
  const [longest, longer] = ['i'.repeat(idCharactersMax), 'i'.repeat(idCharactersMax + 1)]
  assert.ok(!hasLongId(call({ id: longest })) && !hasLongId(call({}, { _meta: { progressToken: longest } })))
  assert.ok(hasLongId(call({ id: longer })) && hasLongId(call({}, { _meta: { progressToken: longer } })))
  assert.ok(hasLongId([call(), call({ id: longer })]))
  assert.deepEqual(
    [idOf(call({ id: longest })), idOf(call()), idOf(call({ id: longer }))],
    [longest, 1, null],
  )
})

test('a batch costs a read for each of its messages that no operation counts', () => {
  assert.equal(points([call(), call({ method: 'ping' }), call({}, { name: 'x' }), 7]), 3)
})
