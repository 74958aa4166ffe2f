import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Finding } from './order-finding.ts'
import { statusOf } from './order-settle.ts'

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
