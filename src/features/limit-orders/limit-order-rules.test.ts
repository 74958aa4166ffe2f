import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitOrderRules } from './limit-order-rules.ts'
import type { LimitOrderData } from './view.ts'

const order: LimitOrderData = {
  chain_id_in: '8453',
  chain_id_out: '7565164',
  token_in: '0xAb',
  token_out: 'JUPy',
  decimals_in: 6,
  decimals_out: 6,
  amount: '100',
  price_usd_trigger: '1',
  condition: 'lte',
  trigger_token_address: 'JUPy',
  trigger_token_chain: '7565164',
  priced: 'out',
  usdc: 'in',
  slippage_bps: 100,
}
const soldUnits = (available: bigint) => {
  const swap = limitOrderRules.swapOf(order, available)
  return swap && 'units' in swap.amount ? swap.amount.units : null
}

test('a limit order sells its amount, or what is left of it', () => {
  assert.deepEqual([soldUnits(1_000n), soldUnits(60n), soldUnits(0n)], [100n, 60n, null])
})

test('its price is that of its token, by the name of the ledger on each chain', () => {
  assert.deepEqual(limitOrderRules.priced(order), {
    tokenIn: '8453:0xab',
    tokenOut: '7565164:JUPy',
    priced: 'out',
  })
  assert.equal(limitOrderRules.priced({ ...order, priced: null }), null)
})
