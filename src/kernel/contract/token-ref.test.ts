import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Chain, nativeSentinel } from '#kernel/money/chains.ts'
import { chainNotServed, tokenByRef } from './token-ref.ts'

const usdc = {
  symbol: 'USDC',
  name: 'USD Coin',
  decimals: 6,
  address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
}
const ether = { symbol: 'ETH', name: 'Ether', decimals: 18, address: nativeSentinel }
const base = { family: 'evm', displayName: 'Base', native: ether, tokens: [usdc] } as unknown as Chain
const zero = '0x0000000000000000000000000000000000000000'

test('the native coin has a symbol and two addresses on an EVM chain', () => {
  for (const ref of ['eth', nativeSentinel, nativeSentinel.toLowerCase(), zero])
    assert.deepEqual(tokenByRef(base, ref, 'token_in'), { token: ether, isNative: true }, ref)
  assert.deepEqual(tokenByRef(base, usdc.address.toLowerCase(), 'token_in'), { token: usdc, isNative: false })
})

test('a chain that is no longer served is a temporary failure that says where to look', () => {
  const { code, retryable, message } = chainNotServed('8453')
  assert.deepEqual([code, retryable], ['unavailable', true])
  assert.match(message, /^Chain 8453 is not served now: retry .*`chains_list`/)
})
