import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hookRules } from './hook-order-rules.ts'
import type { HookInput } from './view.ts'

const hook = (sell: string, lot?: string): HookInput => ({
  chain_id: '8453',
  token_address: '0x01',
  symbol: 'T',
  type: 'stop_loss',
  reference: 'entry',
  reference_price_usd: null,
  sell_percentage: sell,
  slippage_bps: 100,
  usdc: '0x02',
  ...(lot !== undefined && { lot_units: lot, lot_left: lot }),
})
const sold = (input: HookInput, units: bigint) => {
  const swap = hookRules.swapOf(input, units)
  return swap && 'units' in swap.amount ? swap.amount.units : null
}

test('a hook sells its fraction of the balance, or of what a swap received, and never more than is there', () => {
  assert.equal(sold(hook('0.25'), 1_000n), 250n)
  assert.equal(sold(hook('1'), 1_000n), 1_000n)
  assert.equal(sold(hook('0.5', '600'), 1_000n), 300n)
  assert.equal(sold(hook('1', '600'), 1_000n), 600n)
  assert.equal(sold(hook('1', '600'), 450n), 450n)
  assert.equal(sold(hook('0.5', '600'), 100n), 100n)
})

test('the price of a hook is that of its token, by the name of the ledger on each chain', () => {
  const evm = { ...hook('1'), token_address: '0xAb', usdc: '0xCd' }
  assert.deepEqual(hookRules.priced(evm), { tokenIn: '8453:0xab', tokenOut: '8453:0xcd', priced: 'in' })
  const svm = { ...hook('1'), chain_id: '7565164', token_address: 'JUPy', usdc: 'EPjF' }
  assert.deepEqual(hookRules.priced(svm), {
    tokenIn: '7565164:JUPy',
    tokenOut: '7565164:EPjF',
    priced: 'in',
  })
})

test('a hook sells with the loss that its owner accepts', () => {
  assert.equal(hookRules.swapOf({ ...hook('1'), max_price_impact_bps: 10_000 }, 5n)?.maxImpactBps, 10_000)
  assert.equal(hookRules.swapOf(hook('1'), 5n)?.maxImpactBps, undefined)
})

test('a hook with nothing to sell makes no swap, and its sale is an exit into USDC', () => {
  assert.equal(sold(hook('0.5'), 1n), null)
  assert.equal(sold(hook('1', '600'), 0n), null)
  const swap = hookRules.swapOf(hook('1'), 5n)
  assert.deepEqual([swap?.isExit, swap?.tokenIn, swap?.tokenOut], [true, '0x01', '0x02'])
})
