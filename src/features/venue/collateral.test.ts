import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collateralFor } from './collateral.ts'
import { portionNone } from './gather.ts'

const venue = (mode: string, total: string, hold = '0') => ({
  accountMode: async () => mode,
  spotBalances: async () => [{ coin: 'USDC', total, hold, entryUsd: '0' }],
})
const missing = { missingMicros: 100_000_000n }

test('with one balance for both sides nothing comes over, and its free dollars count', async () => {
  for (const mode of ['unifiedAccount', 'portfolioMargin', 'a mode of tomorrow']) {
    const enough = await collateralFor(venue(mode, '150', '50'), '0x1', missing)
    assert.deepEqual(enough, { portion: portionNone, otherMicros: 100_000_000n }, mode)
    const short = await collateralFor(venue(mode, '150', '50.000001'), '0x1', missing)
    assert.deepEqual(short, { portion: undefined, otherMicros: 99_999_999n }, mode)
  }
})

test('with two balances what is missing comes over from the spot side', async () => {
  for (const mode of ['default', 'disabled', 'dexAbstraction']) {
    const { portion } = await collateralFor(venue(mode, '100'), '0x1', missing)
    assert.equal(portion?.gather, '100', mode)
    assert.equal((await collateralFor(venue(mode, '99'), '0x1', missing)).portion, undefined, mode)
  }
})
