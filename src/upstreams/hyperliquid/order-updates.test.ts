import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createOrderUpdates } from './order-updates.ts'
import type { Fill } from './parse.ts'

const fill = (orderId: number, tradeId: number, size: string) => ({ orderId, tradeId, size }) as Fill
const sizes = (fills: readonly Fill[]) => fills.map(({ size }) => size)

describe('what the streams told of an order', () => {
  test('is known at once where it came before the question', async () => {
    const heard = createOrderUpdates()
    heard.fills([fill(7, 1, '2'), fill(8, 2, '9')])
    assert.deepEqual(await heard.waitFor(7, ({ fills }) => sizes(fills), 1_000), ['2'])
  })

  test('is waited for until there is enough of it, and a fill told twice counts once', async () => {
    const heard = createOrderUpdates()
    const asked = heard.waitFor(7, ({ fills }) => (fills.length === 2 ? sizes(fills) : undefined), 10_000)
    heard.fills([fill(7, 1, '2')])
    heard.fills([fill(7, 1, '2')])
    heard.order(7, { size: '1', origSize: '5' })
    heard.fills([fill(7, 3, '2')])
    assert.deepEqual(await asked, ['2', '2'])
    assert.equal(await heard.waitFor(7, ({ left }) => left?.origSize, 0), '5')
  })

  test('is undefined when the time is over, and the waiter is removed', async () => {
    const heard = createOrderUpdates()
    let asked = 0
    const read = () => void asked++
    assert.equal(await heard.waitFor(7, read, 1), undefined)
    heard.fills([fill(7, 1, '2')])
    assert.equal(asked, 1)
  })

  test('is forgotten when there are too many orders, the oldest first', async () => {
    const heard = createOrderUpdates()
    for (let orderId = 0; orderId <= 4_000; orderId++) heard.fills([fill(orderId, orderId, '1')])
    assert.equal(await heard.waitFor(0, ({ fills }) => fills[0], 0), undefined)
    assert.equal((await heard.waitFor(4_000, ({ fills }) => fills[0], 0))?.tradeId, 4_000)
  })
})
