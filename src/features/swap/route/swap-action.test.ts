import assert from 'node:assert/strict'
import { test } from 'node:test'
import { swapLimits } from './limits.ts'
import { termsOfSwap } from './swap-action.ts'
import type { SwapTerms } from './terms.ts'

const usdc = { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', symbol: 'USDC', decimals: 6 }
const weth = { address: '0x4200000000000000000000000000000000000006', symbol: 'WETH', decimals: 18 }
const fake = { address: '0x1111111111111111111111111111111111111111', symbol: 'WETH', decimals: 18 }
const chain = { id: '8453', family: 'evm', displayName: 'Base', tokens: [usdc, weth] }
const swapInto = (
  token: object,
  maxImpactBps: number = swapLimits.priceImpactBps.default,
  outMicros: bigint | null = 4_985_004_000n,
) =>
  termsOfSwap(
    {
      origin: { chain, token: usdc, isNative: false },
      destination: { chain, token, isNative: false },
      maxImpactBps,
      slippageBps: 100,
      valueInMicros: 5_000_000_000n,
    } as unknown as SwapTerms,
    5_000_000_000n,
    { amountOutUnits: 1_423_456_789_123_456_789n, outMicros },
  )

test('a listed token is named by its symbol, any other one by its address first', () => {
  assert.equal(swapInto(weth).text, 'Swap 5000 USDC into WETH on Base')
  assert.equal(
    swapInto(fake).text,
    `Swap 5000 USDC into ${fake.address} (unreviewed, calls itself WETH) on Base`,
  )
  assert.match(String(swapInto(fake).asset), /^0x1111/)
})

test('the quote of the moment is named with its loss, and then the bounds of the next quote', () => {
  assert.equal(
    swapInto(weth).cost,
    'Quoted now: 1.42345 WETH, worth 4985.00 USD, 0.29 % less than what leaves, fees included. It is quoted anew when you approve: it does not run at a loss above 25 %, and at most 1 % less than the new quote arrives',
  )
  assert.match(String(swapInto(weth, 2_500, 5_000_000_001n).cost), /worth 5000\.00 USD, fees included/)
  assert.match(String(swapInto(weth, 2_500, null).cost), /^Quoted now: 1\.42345 WETH, fees included/)
})

test('a loss beyond the default is named before everything else', () => {
  assert.equal(
    swapInto(weth, 10_000).text,
    'Accept a loss of up to 100 % and swap 5000 USDC into WETH on Base',
  )
})
