import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  declaresTasks,
  type ReadTask,
  tasksExtension,
  toCreatedTask,
  toProtocolTask,
} from './protocol-task.ts'

const task = (fields: Partial<ReadTask> = {}): ReadTask => ({
  task_id: 't1',
  status: 'running',
  state: 'submitted',
  message: 'On its way',
  error: null,
  created_at: '2026-07-28T10:00:00.000Z',
  updated_at: '2026-07-28T10:00:00.000Z',
  ...fields,
})

test('a live task is working, has no result, and names its time to live', () => {
  for (const status of ['pending', 'running'])
    assert.deepEqual(toProtocolTask(task({ status }), 86_400_000), {
      taskId: 't1',
      status: 'working',
      statusMessage: 'On its way',
      createdAt: '2026-07-28T10:00:00.000Z',
      lastUpdatedAt: '2026-07-28T10:00:00.000Z',
      ttlMs: 86_400_000,
      pollIntervalMs: 1_000,
    })
})

test('an ended task has its result, and a failure of its tool is a result with isError', () => {
  const error = { code: 'insufficient_margin', message: 'The margin is too small' }
  for (const [status, isError] of [
    ['completed', false],
    ['failed', true],
  ] as const) {
    const ended = task({ status, error: isError ? error : null })
    const { result, ...shown } = toProtocolTask(ended, null)
    assert.equal(shown.status, 'completed')
    assert.equal(result?.isError, isError)
    assert.deepEqual(result?.structuredContent, ended)
    assert.deepEqual(JSON.parse(result?.content[0]?.text ?? ''), ended)
  }
  assert.equal(toProtocolTask(task({ status: 'cancelled' }), null).status, 'cancelled')
})

test('only an internal error is a failure of the request', () => {
  const error = { code: 'internal', message: 'An internal error stopped the task' }
  const failed = toProtocolTask(task({ status: 'failed', error }), null)
  assert.equal(failed.status, 'failed')
  assert.deepEqual(failed.error, { code: -32_603, message: error.message, data: { code: 'internal' } })
  assert.equal(failed.result, undefined)
})

test('a task that waits for somebody else is polled less often', () => {
  for (const [state, pollIntervalMs] of [
    ['submitted', 1_000],
    ['awaiting_approval', 10_000],
  ] as const)
    assert.equal(toProtocolTask(task({ state }), null).pollIntervalMs, pollIntervalMs)
})

test('the handle of a new task carries the idempotency key and no result', () => {
  const _meta = { 'portico/idempotency_key': 'k' }
  const created = toCreatedTask(task({ status: 'completed' }), { ttlMs: null, _meta })
  assert.deepEqual([created.resultType, created._meta], ['task', _meta])
  assert.ok(!('result' in created) && !('content' in created))
})

test('the extension counts where the request declares it', () => {
  const of = (extensions: unknown) => ({ 'io.modelcontextprotocol/clientCapabilities': { extensions } })
  assert.equal(declaresTasks(of({ [tasksExtension]: {} })), true)
  for (const envelope of [undefined, {}, of(undefined), of({}), of({ [tasksExtension]: true })])
    assert.equal(declaresTasks(envelope), false)
})
