import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertDocumentedAnswer } from '../harness/documented-answers.ts'

const task = {
  task_id: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11',
  kind: 'earn_deposit',
  status: 'completed',
  result: { position_id: 'p', amount_usdc: '5' },
}

test('an answer that is not as documented fails, in its body, its error and the result of its task', () => {
  const answers: [string, string, number, unknown, RegExp][] = [
    ['GET', '/v1/credits', 200, {}, /GET \/v1\/credits 200/],
    ['POST', '/v1/earn/deposit?wait=true', 422, { detail: [] }, /code/],
    ['GET', '/v1/tasks/x', 404, { detail: 'There is none' }, /code/],
    ['GET', '/v1/tasks', 200, { items: [task], total: 1, skip: 0, limit: 20 }, /\/v1\/tasks 200/],
  ]
  for (const [method, path, status, body, message] of answers)
    assert.throws(() => assertDocumentedAnswer(method, path, { status, body }), message, path)
})

test('what no operation answers is not judged', () => {
  assertDocumentedAnswer('GET', '/faults', { status: 200, body: { any: 1 } })
  assertDocumentedAnswer('GET', '/v1/credits', { status: 418, body: {} })
})
