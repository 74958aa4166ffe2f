import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { type Entry, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { DecIn, OpenObject } from '#kernel/contract/wire-types.ts'
import { inputReaders } from './input-validation.ts'

const readers = inputReaders(new WeakMap())
const readerOf = (entry: unknown) => readers({ entry: entry as Entry } as never)

const pay = readerOf(
  task('POST /v1/pay/{id}', {
    summary: 'Pay',
    access: 'trade',
    waitSeconds: 60,
    params: T.Object({ id: T.String() }),
    body: T.Object({ amount: DecIn({ places: 6 }) }),
    output: OpenObject,
  }),
)
const list = readerOf(
  read('GET /v1/list', {
    summary: 'List',
    access: 'read',
    query: T.Object({ limit: T.Optional(T.Integer({ default: 10 })) }),
    output: OpenObject,
  }),
)

function issuesOf(run: () => unknown): unknown[] {
  try {
    run()
    return []
  } catch (error) {
    assert.ok(error instanceof Fault)
    return error.issues.map(({ location, path, type }) => [location, ...path, type])
  }
}

test('a flat record becomes the same input as its located form', () => {
  const flat = { id: 'a', amount: 1.5, wait: true, timeout: 5, idempotency_key: 'k-1' }
  const located = pay.readInput({
    path: { id: 'a' },
    query: { wait: true, timeout: 5 },
    body: { amount: 1.5 },
    idempotencyKey: 'k-1',
  })
  assert.deepEqual(pay.readFlatInput(flat), located)
  assert.deepEqual(located, {
    input: { id: 'a', amount: '1.5' },
    wait: true,
    timeoutMs: 5_000,
    key: 'k-1',
  })
  assert.deepEqual(list.readFlatInput({}).input, { limit: 10 })
})

test('an unknown field of a flat record is rejected at its location', () => {
  assert.deepEqual(
    issuesOf(() => pay.readFlatInput({ id: 'a', amount: '1', stop: 1 })),
    [['body', 'stop', 'extra_forbidden']],
  )
  assert.deepEqual(
    issuesOf(() => list.readFlatInput({ limits: 1 })),
    [['query', 'limits', 'extra_forbidden']],
  )
  assert.deepEqual(
    issuesOf(() => list.readFlatInput(JSON.parse('{"__proto__":{"limit":1}}'))),
    [['query', '__proto__', 'extra_forbidden']],
  )
})

test('a flat record names each wrong field once', () => {
  assert.deepEqual(
    issuesOf(() => pay.readFlatInput({ amount: 'x' })),
    [
      ['path', 'id', 'missing'],
      ['body', 'amount', 'string_pattern_mismatch'],
    ],
  )
})

test('an operation of which one flat record could not hold the input is refused at the start', () => {
  const shape = { summary: 'Pay', access: 'trade', waitSeconds: 60, output: OpenObject } as const
  const id = T.Object({ id: T.String() })
  const timeout = T.Object({ timeout: T.Integer() })
  const key = T.Object({ idempotency_key: T.String() })
  const refused = (entry: unknown) => assert.throws(() => readerOf(entry), /is declared in the/)
  refused(task('POST /v1/pay/{id}', { ...shape, params: id, body: id }))
  refused(task('POST /v1/pay/{id}', { ...shape, params: id, query: id, body: OpenObject }))
  refused(task('POST /v1/pay', { ...shape, body: timeout }))
  refused(task('POST /v1/pay', { ...shape, body: key }))
})

test('the identity fields of a query are dropped', () => {
  const query = { agent_id: 'a', application_id: 'b', user_id: 'c' }
  assert.deepEqual(list.readInput({ path: {}, query, body: undefined }).input, { limit: 10 })
})
