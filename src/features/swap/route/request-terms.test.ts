import assert from 'node:assert/strict'
import { test } from 'node:test'
import { invalid, renameFields } from '#kernel/contract/fault.ts'
import { providerFields } from './request-terms.ts'

test('a fault of a provider names the field that the request has', () => {
  const tooLow = invalid('amount', 'below_minimum', 'Too low')
  const pathOf = (...given: Parameters<typeof providerFields>) => {
    const renamed = renameFields(tooLow, providerFields(...given)) as typeof tooLow
    return renamed.issues[0]!.path
  }
  assert.deepEqual(pathOf({ amount: '1' }), ['amount'])
  assert.deepEqual(pathOf({ amount_usd: '1' }), ['amount_usd'])
  const names = {
    chain_id_in: 'source_chain_id',
    chain_id_out: 'destination_chain_id',
    token_in: 'source_token',
    token_out: 'destination_token',
    amount: 'source_amount',
    amount_usd: 'usd',
  }
  assert.deepEqual(pathOf({ amount: '1' }, names), ['source_amount'])
  assert.deepEqual(pathOf({ amount_usd: '1' }, names), ['usd'])
  const ofChain = renameFields(
    invalid('chain_id_in', 'unsupported_chain', 'No'),
    providerFields({ amount_usd: '1' }, names),
  ) as typeof tooLow
  assert.deepEqual(ofChain.issues[0]!.path, ['source_chain_id'])
})
