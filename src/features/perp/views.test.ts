import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenOrder, Position } from '#upstreams/hyperliquid/hyperliquid.ts'
import { positionView, unifiedValue } from './views.ts'

const long: Position = {
  symbol: 'BTC',
  signedSize: '0.01',
  isCross: true,
  leverage: 5,
  entryPrice: '100000',
  valueUsd: '1000',
  unrealizedPnlUsd: '0',
  liquidationPrice: null,
  marginUsedUsd: '200',
  fundingPaidUsd: '0',
}
const exit = (orderId: number, leg: 'tp' | 'sl', more: Partial<OpenOrder> = {}): OpenOrder => ({
  symbol: 'BTC',
  orderId,
  parentId: null,
  cloid: null,
  isBuy: false,
  price: '90000',
  size: '0.01',
  origSize: '0.01',
  kind: 'Stop Market',
  tif: null,
  reduceOnly: true,
  trigger: { price: '90000', condition: 'Price below 90000', leg },
  isPositionTpsl: false,
  atMs: 0,
  ...more,
})

test('a position lists the exits that protect it, and none that waits for another entry', () => {
  const orders = [
    exit(1, 'sl'),
    exit(2, 'tp'),
    exit(3, 'sl', { parentId: 9 }),
    exit(4, 'sl', { isBuy: true }),
    exit(5, 'sl', { symbol: 'ETH' }),
    exit(6, 'sl', { reduceOnly: false }),
    exit(7, 'sl', { trigger: null }),
  ]
  const { side, tp_oids, sl_oids } = positionView(long, orders, '100000')
  assert.deepEqual([side, tp_oids, sl_oids], ['long', ['2'], ['1']])
  const short = positionView({ ...long, signedSize: '-0.01' }, orders, null)
  assert.deepEqual([short.side, short.size, short.tp_oids, short.sl_oids], ['short', '0.01', [], ['4']])
})

test('with one balance for both sides the value of an account includes its spot dollars', () => {
  const usdc = { coin: 'USDC', total: '600.5', hold: '250.25', entryUsd: '0' }
  const hype = { coin: 'HYPE', total: '3', hold: '0', entryUsd: '90' }
  assert.deepEqual(unifiedValue([hype, usdc]), { accountValueUsd: '600.5', withdrawableUsd: '350.25' })
  assert.deepEqual(unifiedValue([{ ...usdc, hold: '700' }]).withdrawableUsd, '0')
  assert.deepEqual(unifiedValue([]), { accountValueUsd: '0', withdrawableUsd: '0' })
})
