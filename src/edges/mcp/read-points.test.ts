import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPoints } from './read-points.ts'

const tools = new Set(['tasks_list', 'tasks_get'])
const points = (body: unknown) => readPoints(body, tools)
const call = (changes: object = {}, params: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'tasks_list', arguments: {}, ...params },
  ...changes,
})
const recent = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', other: {} }

test('what reaches an operation costs no read', () => {
  for (const body of [
    call(),
    call({ id: 'a' }),
    call({}, { arguments: undefined }),
    call({}, { name: 'tasks_wait' }),
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
    call({ method: 'tools/list' }),
    call({ method: 'ping', params: undefined }),
    call({ jsonrpc: '1.0' }),
    call({ id: undefined }),
    call({ id: null }),
    call({ id: 1.5 }),
    call({ params: undefined }),
    call({ params: [] }),
    call({}, { name: 'nothing' }),
    call({}, { name: 7 }),
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

test('a batch costs a read for each of its messages that no operation counts', () => {
  assert.equal(points([call(), call({ method: 'ping' }), call({}, { name: 'x' }), 7]), 3)
})
