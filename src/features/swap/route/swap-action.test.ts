import assert from 'node:assert/strict'
import { test } from 'node:test'
import { swapLimits } from './limits.ts'
import { termsOfSwap } from './swap-action.ts'
import type { SwapTerms } from './terms.ts'

const usdc = { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', symbol: 'USDC', decimals: 6 }
const weth = { address: '0x4200000000000000000000000000000000000006', symbol: 'WETH', decimals: 18 }
const fake = { address: '0x1111111111111111111111111111111111111111', symbol: 'WETH', decimals: 18 }
const chain = { id: '8453', family: 'evm', displayName: 'Base', tokens: [usdc, weth] }
const swapInto = (token: object, maxImpactBps: number = swapLimits.priceImpactBps.default) =>
  termsOfSwap(
    {
      origin: { chain, token: usdc, isNative: false },
      destination: { chain, token, isNative: false },
      maxImpactBps,
    } as unknown as SwapTerms,
    5_000_000_000n,
  )

test('a listed token is named by its symbol, any other one by its address first', () => {
  assert.equal(swapInto(weth).text, 'Swap 5000 USDC into WETH on Base')
  assert.equal(
    swapInto(fake).text,
    `Swap 5000 USDC into ${fake.address} (unreviewed, calls itself WETH) on Base`,
  )
  assert.match(String(swapInto(fake).asset), /^0x1111/)
})

test('a loss beyond the default is named before everything else', () => {
  assert.equal(
    swapInto(weth, 10_000).text,
    'Accept a loss of up to 100 % and swap 5000 USDC into WETH on Base',
  )
})
