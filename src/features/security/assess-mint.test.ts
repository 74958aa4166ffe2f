import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MintExtensions, MintFacts } from '#upstreams/solana/solana.ts'
import { assessMint } from './assess-mint.ts'

const noExtensions: MintExtensions = {
  transferFee: null,
  permanentDelegate: null,
  transferHook: null,
  isNonTransferable: false,
  isFrozenByDefault: false,
  pausable: null,
  unknown: [],
}
const judged = (facts: Partial<MintFacts>, extensions: Partial<MintExtensions> = {}) => {
  const { verdict, reasons } = assessMint({
    type: 'mint',
    facts: {
      slot: 1n,
      supplyUnits: 1_000n,
      mintAuthority: null,
      freezeAuthority: null,
      largestUnits: [100n, 50n],
      ...facts,
      extensions: { ...noExtensions, ...extensions },
    },
  })
  return [verdict, reasons.map(({ code, level }) => `${code}:${level}`).join()]
}

test('a mint without powers over its holders is safe', () => {
  assert.deepEqual(judged({}), ['safe', ''])
  assert.deepEqual(judged({ supplyUnits: 0n, largestUnits: [] }), ['safe', ''])
})

test('each power over holders is risky by itself', () => {
  assert.deepEqual(judged({ mintAuthority: 'k' }), ['risky', 'mint_authority:high'])
  assert.deepEqual(judged({ freezeAuthority: 'k' }), ['risky', 'freeze_authority:high'])
  assert.deepEqual(judged({}, { permanentDelegate: 'k' }), ['risky', 'permanent_delegate:high'])
  assert.deepEqual(judged({}, { transferHook: 'k' }), ['risky', 'transfer_hook:high'])
  assert.deepEqual(judged({}, { isNonTransferable: true }), ['risky', 'non_transferable:honeypot'])
  assert.deepEqual(judged({}, { isFrozenByDefault: true }), ['risky', 'frozen_by_default:high'])
  assert.deepEqual(judged({}, { pausable: 'k' }), ['risky', 'pausable:high'])
})

test('a transfer fee is risky where it is high or can be raised', () => {
  const fee = (bps: number, authority: string | null) => judged({}, { transferFee: { bps, authority } })
  assert.deepEqual(fee(0, null), ['safe', ''])
  assert.deepEqual(fee(0, 'k'), ['safe', 'transfer_fee_authority:medium'])
  assert.deepEqual(fee(100, null), ['safe', 'transfer_tax:low'])
  assert.deepEqual(fee(100, 'k'), ['risky', 'transfer_fee_authority:high,transfer_tax:low'])
  assert.deepEqual(fee(1_000, null), ['risky', 'transfer_tax:high'])
})

test('what is not known is not safe', () => {
  assert.deepEqual(judged({}, { unknown: ['futureExtension'] }), ['unknown', 'unknown_extension:unknown'])
  assert.deepEqual(judged({ largestUnits: null }), ['unknown', 'holders_unknown:unknown'])
  assert.equal(assessMint({ type: 'absent', slot: 1n }).verdict, 'risky')
})

test('half of the supply with one holder, or four fifths with ten, is concentrated', () => {
  assert.deepEqual(judged({ largestUnits: [499n] }), ['safe', ''])
  assert.deepEqual(judged({ largestUnits: [500n] }), ['risky', 'holders_concentrated:high'])
  assert.deepEqual(judged({ largestUnits: Array(10).fill(79n) }), ['safe', ''])
  assert.deepEqual(judged({ largestUnits: Array(10).fill(80n) }), ['risky', 'holders_concentrated:high'])
})
