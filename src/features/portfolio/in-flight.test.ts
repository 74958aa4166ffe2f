import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inFlightOf } from './in-flight.ts'

const fees = { venueWithdrawalUsd: '1' }
const change = (amount: string, chain_id = '8453') => ({
  chain_id,
  token_address: '0xa',
  symbol: 'USDC',
  amount,
  decimals: 6,
})
const read = (kind: string, step: string, data: object) =>
  inFlightOf({ kind, step, data: data as never }, fees)

test('what has left and not arrived is in flight', () => {
  assert.deepEqual(read('swap', 'fill', { balance_changes: [change('-50000000')] }), {
    tokens: [{ chainId: '8453', tokenAddress: '0xa', symbol: 'USDC', amount: '50' }],
  })
})

test('nothing is in flight before anything left, once it has arrived, or where it was spent', () => {
  const nothing = { tokens: [] }
  assert.deepEqual(read('swap', 'sign', {}), nothing)
  assert.deepEqual(
    read('swap', 'fill', { balance_changes: [change('-50000000'), change('49900000', '137')] }),
    nothing,
  )
  assert.deepEqual(read('wallets_transfer', 'confirm', { balance_changes: [change('-1')] }), nothing)
})

test('a withdrawal from the venue is in flight from its debit until its payout, less the fee', () => {
  assert.deepEqual(read('perp_withdraw', 'confirm', { amount_usd: '20' }), { tokens: [] })
  assert.deepEqual(read('perp_withdraw', 'arrive', { amount_usd: '20' }), { usd: '19' })
  assert.equal(
    read('perp_withdraw', 'swap', { amount_usd: '20', balance_changes: [change('19000000')] }),
    'unknown',
  )
})

test('cash from the prediction market is in flight until it is unwrapped', () => {
  assert.deepEqual(read('predmkt_withdraw', 'confirm', { units: '5000000' }), { tokens: [] })
  assert.deepEqual(read('predmkt_withdraw', 'prepare', { units: '5000000' }), { usd: '5' })
  assert.equal(
    read('predmkt_withdraw', 'swap', { units: '5000000', balance_changes: [change('5000000', '137')] }),
    'unknown',
  )
})
