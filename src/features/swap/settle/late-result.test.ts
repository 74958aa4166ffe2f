import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { type Late, lateSentence, lateVerdict, resultAfter, totalsAfter } from './late-result.ts'

const token = { symbol: 'USDC', name: 'USD Coin', decimals: 6, address: '0xusdc' }
const view = { chain_id: '8453', token_address: '0xusdc', amount: '49', tx_hash: '0xlate' }
const late = (type: 'refund' | 'fill', amount = '49'): Late => ({
  type,
  token,
  account: '0xown',
  view: { ...view, amount },
  isDeposit: type === 'refund',
  worthMicros: 0n,
})
const data = {
  amount_in: '50',
  amount_out_min: '48',
  usd_micros: '50000000',
  quote: { amount_out: '49' },
} as unknown as SwapTaskData
const swap = {
  amount_in: '50',
  amount_out: '0',
  tx_hash: '0xdeposit',
  refunded: null,
  failure_reason: 'slippage',
}
const none = { fill: '0', back: '0' }
const after = (result: object, each: Late, before = none) => {
  const totals = totalsAfter(before, each)
  const verdict = lateVerdict(data, totals, each)
  return { result: resultAfter(result as never, { late: each, totals, verdict, data }), totals, verdict }
}

test('a late refund is the refund of its swap, and a late fill its output', () => {
  assert.deepEqual(after(swap, late('refund')).result, { ...swap, refunded: view })
  assert.deepEqual(after(swap, late('fill')).result, { ...swap, amount_out: '49', tx_hash: '0xlate' })
})

test('late payments add up, and only all of them together are a fill or a refund', () => {
  const first = after(swap, late('fill', '1'))
  assert.equal(
    lateSentence(late('fill', '1'), first.verdict),
    'A part of the swap was paid after it had failed',
  )
  const second = after(first.result, late('fill', '48'), first.totals)
  assert.deepEqual([second.result.amount_out, second.verdict], ['49', 'filled'])
  const dust = after(swap, late('refund', '1'))
  assert.deepEqual([dust.verdict, dust.result.refunded], ['short', { ...view, amount: '1' }])
  const rest = after(dust.result, late('refund', '48'), dust.totals)
  assert.deepEqual([rest.verdict, rest.result.refunded], ['returned', view])
})

test('where the swap was a leg of a task, its result says that the money is in the wallet', () => {
  const legs = [{ role: 'swap', status: 'failed', amount: '0' }]
  const remaining = { place: 'provider', amount: '50', tx_hash: '0xdeposit' }
  const inWallet = { place: 'wallet', ...view, symbol: 'USDC', account: '0xown' }
  const result = { amount: '0', legs, remaining }
  assert.deepEqual(after(result, late('refund')).result, { ...result, remaining: inWallet })
  const paid = [{ ...legs[0], amount: '49', tx_hash: '0xlate' }]
  assert.deepEqual(after(result, late('fill')).result, { ...result, legs: paid, remaining: inWallet })
})

test('of a leg that was paid in part the rest is still with the provider', () => {
  const remaining = { place: 'provider', amount: '50', tx_hash: '0xdeposit' }
  const left = (each: Late) => (after({ remaining }, each).result.remaining as { amount: string }).amount
  assert.equal(left(late('refund', '1')), '49')
  assert.equal(left(late('fill', '24')), '25')
})
