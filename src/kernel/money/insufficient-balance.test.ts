import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insufficientBalance } from './insufficient-balance.ts'

const usdc = { symbol: 'USDC', decimals: 6, address: '0xabc' }
const hype = { symbol: 'HYPE', decimals: 4 }

test('a shortage states its figures as decimals, in the sentence and as fields', () => {
  const { code, message, extras } = insufficientBalance(usdc, {
    what: 'The deposit',
    requiredUnits: 20_000_000_000n,
    availableUnits: 9_900_500_000n,
  })
  assert.equal(code, 'insufficient_balance')
  assert.equal(message, 'The deposit needs 20000 USDC, but only 9900.5 USDC is available')
  assert.deepEqual(extras, {
    symbol: 'USDC',
    token: '0xabc',
    decimals: 6,
    required: '20000',
    available: '9900.5',
  })
})

test('a shortage states the cause of the balance', () => {
  const { message, extras } = insufficientBalance(hype, {
    required: '0.01',
    available: '0.0095',
    note: 'the smallest lot is 0.01',
    reason: 'dust',
  })
  assert.equal(
    message,
    'The request needs 0.01 HYPE, but only 0.0095 HYPE is available: the smallest lot is 0.01',
  )
  assert.deepEqual(extras, {
    symbol: 'HYPE',
    token: 'HYPE',
    decimals: 4,
    required: '0.01',
    available: '0.0095',
    reason: 'dust',
  })
})
