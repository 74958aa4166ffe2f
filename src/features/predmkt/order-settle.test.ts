import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Finding } from './order-finding.ts'
import { isSettled, statusOf } from './order-settle.ts'

/** What the venue shows of an order whose own record lags: trades of so many shares. */
const traded = (...sizes: bigint[]): Finding => ({
  isKnown: true,
  order: undefined,
  trades: sizes.map((sizeUnits) => ({ sizeUnits })) as unknown as Finding['trades'],
})
const statusWith = (found: Finding, order_type: 'gtc' | 'fak') =>
  statusOf(found, {
    status: 'matched',
    row: { order_type, size: '10', expires_at: null },
    isDelayed: false,
    now: new Date(0),
  })

test('an order that may rest has matched without its record only once its trades have all of it', () => {
  assert.equal(statusWith(traded(4n), 'gtc'), undefined)
  assert.equal(statusWith(traded(4n, 6n), 'gtc'), 'matched')
  assert.equal(statusWith(traded(4n), 'fak'), 'matched')
  assert.equal(statusWith(traded(), 'fak'), undefined)
})

test('what the trades of an order lack by rounding counts as listed once it is overdue', () => {
  const found = (matchedUnits: bigint, sizeUnits: bigint) =>
    ({
      isKnown: true,
      order: { matchedUnits, tradeIds: [] },
      trades: [{ tradeId: 't', sizeUnits, settlement: 'confirmed' }],
    }) as unknown as Finding
  const rounded = found(5_000_001n, 5_000_000n)
  assert.deepEqual(
    [isSettled(rounded, [], { isOverdue: false }), isSettled(rounded, [], { isOverdue: true })],
    [false, true],
  )
  assert.equal(isSettled(found(5_010_000n, 5_000_000n), [], { isOverdue: true }), false)
  assert.equal(isSettled(rounded, ['missing'], { isOverdue: true }), false)
})
