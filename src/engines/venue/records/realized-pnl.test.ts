import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realizedPnlOf } from './realized-pnl.ts'

test('net profit is gross profit less every fee, to the last digit', () => {
  const fills = [
    { closedPnlUsd: '12.345678', feeUsd: '0.045', feeToken: 'USDC' },
    { closedPnlUsd: '-2.345678', feeUsd: '-0.005', feeToken: 'USDC' },
  ]
  assert.deepEqual(realizedPnlOf(fills), { realized_pnl_gross_usd: '10', realized_pnl_net_usd: '9.96' })
})

test('a fee in another token leaves the net profit unknown', () => {
  const fills = [{ closedPnlUsd: '0', feeUsd: '0.0007', feeToken: 'HYPE' }]
  assert.deepEqual(realizedPnlOf(fills), { realized_pnl_gross_usd: '0', realized_pnl_net_usd: null })
})

test('without fills the realised profit is zero', () => {
  assert.deepEqual(realizedPnlOf([]), { realized_pnl_gross_usd: '0', realized_pnl_net_usd: '0' })
})
