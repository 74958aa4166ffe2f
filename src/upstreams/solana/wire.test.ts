import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokensOf } from './wire.ts'

const parsed = (mint: string, amount: string) => ({
  pubkey: 'p',
  account: {
    data: { parsed: { info: { mint, tokenAmount: { amount, decimals: 6 } } }, program: 'spl-token' },
  },
})

test('an account that the node cannot parse is omitted, and hides none of the others', () => {
  const unparsed = { pubkey: 'q', account: { data: ['AAEC', 'base64'], owner: 'o' } }
  const result = { context: { slot: 7 }, value: [unparsed, parsed('M', '5'), parsed('N', 'many'), null] }
  assert.deepEqual(tokensOf(result, 'program'), [
    { mint: 'M', amountUnits: 5n, decimals: 6, program: 'program' },
  ])
})

test('an answer without a list of accounts is invalid', () => {
  assert.throws(() => tokensOf({ context: { slot: 7 }, value: null }, 'program'), { code: 'unavailable' })
})
