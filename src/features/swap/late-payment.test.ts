import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultAfter } from './late-payment.ts'

const token = { symbol: 'USDC', name: 'USD Coin', decimals: 6, address: '0xusdc' }
const view = { chain_id: '8453', token_address: '0xusdc', amount: '49', tx_hash: '0xlate' }
const late = (type: 'refund' | 'fill') => ({ type, token, account: '0xown', view })
const swap = {
  amount_in: '50',
  amount_out: '0',
  tx_hash: '0xdeposit',
  refunded: null,
  failure_reason: 'slippage',
}

test('a late refund is the refund of its swap, and a late fill its output', () => {
  assert.deepEqual(resultAfter(swap, late('refund')), { ...swap, refunded: view })
  assert.deepEqual(resultAfter(swap, late('fill')), { ...swap, amount_out: '49', tx_hash: '0xlate' })
})

test('where the swap was a leg of a task, its result says that the money is in the wallet', () => {
  const legs = [{ role: 'swap', status: 'failed' }]
  const remaining = { place: 'provider', amount: '50', tx_hash: '0xdeposit' }
  for (const type of ['refund', 'fill'] as const)
    assert.deepEqual(resultAfter({ amount: '0', legs, remaining }, late(type)), {
      amount: '0',
      legs,
      remaining: { place: 'wallet', ...view, symbol: 'USDC', account: '0xown' },
    })
})
