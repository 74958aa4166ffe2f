import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createOrderUpdates } from './order-updates.ts'
import type { Fill } from './parse-replies.ts'

const fill = (orderId: number, tradeId: number, size: string) => ({ orderId, tradeId, size }) as Fill
const sizes = (fills: readonly Fill[]) => fills.map(({ size }) => size)

describe('stream updates of an order', () => {
  test('are returned at once where they came before the wait', async () => {
    const updates = createOrderUpdates()
    updates.fills([fill(7, 1, '2'), fill(8, 2, '9')])
    assert.deepEqual(await updates.waitFor(7, ({ fills }) => sizes(fills), 1_000), ['2'])
  })

  test('are waited for until they are complete, and a repeated fill counts once', async () => {
    const updates = createOrderUpdates()
    const asked = updates.waitFor(7, ({ fills }) => (fills.length === 2 ? sizes(fills) : undefined), 10_000)
    updates.fills([fill(7, 1, '2')])
    updates.fills([fill(7, 1, '2')])
    updates.order(7, { size: '1', origSize: '5' })
    updates.fills([fill(7, 3, '2')])
    assert.deepEqual(await asked, ['2', '2'])
    assert.equal(await updates.waitFor(7, ({ left }) => left?.origSize, 0), '5')
  })

  test('are undefined after the timeout, and the waiter is removed', async () => {
    const updates = createOrderUpdates()
    let asked = 0
    const read = () => void asked++
    assert.equal(await updates.waitFor(7, read, 1), undefined)
    updates.fills([fill(7, 1, '2')])
    assert.equal(asked, 1)
  })

  test('are dropped when there are too many orders, the oldest first', async () => {
    const updates = createOrderUpdates()
    for (let orderId = 0; orderId <= 4_000; orderId++) updates.fills([fill(orderId, orderId, '1')])
    assert.equal(await updates.waitFor(0, ({ fills }) => fills[0], 0), undefined)
    assert.equal((await updates.waitFor(4_000, ({ fills }) => fills[0], 0))?.tradeId, 4_000)
  })
})
