import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemProgram } from './program-ids.ts'
import { balanceOf, parseAccount, parseExactly, resultOf, tokensOf } from './wire.ts'

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

test('an account without lamports does not exist, which a simulation shows as empty and a read as null', () => {
  const account = { owner: systemProgram, data: ['', 'base64'], executable: false }
  assert.equal(parseAccount({ ...account, lamports: 0 }), undefined)
  assert.equal(parseAccount(null), undefined)
  assert.equal(parseAccount({ ...account, lamports: 1 })?.lamports, 1n)
})

test('an amount beyond the range of a float keeps every digit', () => {
  const result = parseExactly('{"context":{"slot":7},"value":9007199254740993}')
  assert.deepEqual(balanceOf(result), { slot: 7n, lamports: 9_007_199_254_740_993n })
})

test('an error of the node is an unavailable node', () => {
  assert.throws(() => resultOf({ error: { code: -32005, message: 'behind' } }), {
    code: 'unavailable',
    message: /behind/,
  })
})
