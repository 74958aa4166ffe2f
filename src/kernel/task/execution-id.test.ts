import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUuid } from '#kernel/id.ts'
import { armedExecutionId, firedExecutionId, rearmedExecutionId, requestExecutionId } from './execution-id.ts'

const request = { userId: 'u1', operation: 'earn_deposit', key: 'k1' }

test('The execution id of a request follows from its user, operation and key alone, and never changes', () => {
  assert.equal(requestExecutionId(request), requestExecutionId({ ...request }))
  assert.equal(requestExecutionId(request), 'd0e9eb45-918e-a538-617f-b3fbad31678d')
  const others = [{ userId: 'u2' }, { operation: 'swap' }, { key: 'k2' }].map((other) =>
    requestExecutionId({ ...request, ...other }),
  )
  const ids = [requestExecutionId(request), ...others]
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.every(isUuid))
})

test('No two splits of one text are the same request', () => {
  assert.notEqual(
    requestExecutionId({ userId: 'u', operation: 'a', key: 'b\nc' }),
    requestExecutionId({ userId: 'u', operation: 'a\nb', key: 'c' }),
  )
  assert.notEqual(
    requestExecutionId({ userId: 'u', operation: 'a', key: '","b' }),
    requestExecutionId({ userId: 'u', operation: 'a","', key: 'b' }),
  )
})

test('An order fires under one execution id in all its attempts, and at a venue under one for each', () => {
  const order = (attempts: number) => ({ id: 'o1', execution_id: null, attempts })
  const chain = { perAttempt: false }
  const venue = { perAttempt: true }
  assert.equal(firedExecutionId(order(1), chain), firedExecutionId(order(2), chain))
  assert.notEqual(firedExecutionId(order(1), venue), firedExecutionId(order(2), venue))
  assert.notEqual(firedExecutionId(order(1), chain), firedExecutionId(order(1), venue))
})

test('An order whose payment came back fires under another execution id, the same after each loss of the database', () => {
  const first = { id: 'o1', execution_id: null, attempts: 1 }
  const second = { ...first, execution_id: rearmedExecutionId(first), attempts: 2 }
  const third = { ...second, execution_id: rearmedExecutionId(second), attempts: 3 }
  const ids = [first, second, third].map((order) => firedExecutionId(order, { perAttempt: false }))
  assert.equal(new Set(ids).size, 3)
  assert.equal(rearmedExecutionId({ ...first }), second.execution_id)
})

test('An order that is armed again under the same key fires under the same execution id, whatever its own id is', () => {
  const armed = armedExecutionId(requestExecutionId(request), 'take_profit')
  const order = (id: string) => ({ id, execution_id: armed, attempts: 1 })
  assert.equal(
    firedExecutionId(order('o1'), { perAttempt: false }),
    firedExecutionId(order('o2'), { perAttempt: false }),
  )
  assert.notEqual(armed, armedExecutionId(requestExecutionId(request), 'stop_loss'))
})
