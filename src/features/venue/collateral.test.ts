import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collateralFor, portionFor } from './collateral.ts'
import { portionNone } from './gather.ts'
import type { Spendings, Unseen } from './spending.ts'

const venue = (mode: string, total: string, hold = '0') => ({
  accountMode: async () => mode,
  spotBalances: async () => [{ coin: 'USDC', total, hold, entryUsd: '0' }],
})
const missing = { missingMicros: 100_000_000n }
const nothing: Unseen = { amount: 0n, mayClear: false }
const spendings: Spendings = { onSpot: () => nothing, spotCash: () => nothing, perpCash: () => nothing }

test('with one balance for both sides nothing comes over, and its free dollars count', async () => {
  for (const mode of ['unifiedAccount', 'portfolioMargin']) {
    const enough = await collateralFor(venue(mode, '150', '50'), '0x1', missing, spendings)
    assert.deepEqual(enough, { portion: portionNone, otherMicros: 100_000_000n, unseen: nothing }, mode)
    const short = await collateralFor(venue(mode, '150', '50.000001'), '0x1', missing, spendings)
    assert.deepEqual(short, { portion: undefined, otherMicros: 99_999_999n, unseen: nothing }, mode)
  }
})

test('with two balances what is missing comes over from the spot side', async () => {
  for (const mode of ['default', 'disabled', 'dexAbstraction']) {
    const { portion } = await collateralFor(venue(mode, '100'), '0x1', missing, spendings)
    assert.equal(portion?.gather, '100', mode)
    const short = await collateralFor(venue(mode, '99'), '0x1', missing, spendings)
    assert.equal(short.portion, undefined, mode)
  }
})

test('money of an account whose mode is not known is not moved', async () => {
  await assert.rejects(collateralFor(venue('a mode of tomorrow', '500'), '0x1', missing, spendings), {
    code: 'upstream_changed',
  })
})

test('what the last tasks have spent is not moved a second time', async () => {
  const spent: Spendings = { ...spendings, spotCash: () => ({ amount: 60_000_000n, mayClear: true }) }
  const { portion } = await collateralFor(venue('default', '150'), '0x1', missing, spent)
  assert.equal(portion, undefined)
})

test('money goes home although a read may not show what was spent; a purchase does not take it twice', async () => {
  const needed = {
    what: 'It',
    required: 500n,
    available: 1_000n,
    unseen: { amount: 900n, mayClear: true },
    isLast: true,
  }
  const nothingThere = async () => ({ portion: undefined, otherMicros: 0n, unseen: nothing })
  assert.deepEqual(await portionFor({ ...needed, isExit: true }, nothingThere), { gather: null })
  await assert.rejects(portionFor(needed, nothingThere), { code: 'unavailable' })
  const wants: bigint[] = []
  const told = async ({ missingMicros }: { missingMicros: bigint }) => {
    wants.push(missingMicros)
    return { portion: portionNone, otherMicros: 0n, unseen: nothing }
  }
  // The read shows 700 left of 1,700, and not that this is after the 1,000 that were spent.
  await portionFor({ ...needed, available: 700n, unseen: { amount: 1_000n, mayClear: true } }, told)
  assert.deepEqual(wants, [500n])
})
