import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collateralFor, transferFor } from './collateral-shortfall.ts'
import { noTransfer } from './collateral-transfer.ts'
import type { PendingSpend, Spendings } from './pending-spends.ts'

const venue = (mode: string, total: string, hold = '0') => ({
  accountMode: async () => mode,
  spotBalances: async () => [{ coin: 'USDC', total, hold, entryUsd: '0' }],
})
const missing = { shortfallMicros: 100_000_000n }
const nothing: PendingSpend = { amount: 0n, mayClear: false }
const spendings: Spendings = { onSpot: () => nothing, spotCash: () => nothing, perpCash: () => nothing }

test('with one balance for both sides nothing is transferred, and its free dollars count', async () => {
  for (const mode of ['unifiedAccount', 'portfolioMargin']) {
    const enough = await collateralFor(venue(mode, '150', '50'), '0x1', missing, spendings)
    assert.deepEqual(enough, { transfer: noTransfer, otherMicros: 100_000_000n, pendingSpend: nothing }, mode)
    const short = await collateralFor(venue(mode, '150', '50.000001'), '0x1', missing, spendings)
    assert.deepEqual(short, { transfer: undefined, otherMicros: 99_999_999n, pendingSpend: nothing }, mode)
  }
})

test('with two balances the shortage is transferred from the spot side', async () => {
  for (const mode of ['default', 'disabled', 'dexAbstraction']) {
    const { transfer } = await collateralFor(venue(mode, '100'), '0x1', missing, spendings)
    assert.equal(transfer?.transfer_usd, '100', mode)
    const short = await collateralFor(venue(mode, '99'), '0x1', missing, spendings)
    assert.equal(short.transfer, undefined, mode)
  }
})

test('an account with an unknown mode transfers nothing', async () => {
  await assert.rejects(collateralFor(venue('a mode of tomorrow', '500'), '0x1', missing, spendings), {
    code: 'upstream_changed',
  })
})

test('what the last tasks have spent is not transferred a second time', async () => {
  const spent: Spendings = { ...spendings, spotCash: () => ({ amount: 60_000_000n, mayClear: true }) }
  const { transfer } = await collateralFor(venue('default', '150'), '0x1', missing, spent)
  assert.equal(transfer, undefined)
})

test('a withdrawal ignores pending spends that a read may not show; a purchase does not spend them twice', async () => {
  const needed = {
    what: 'It',
    required: 500n,
    available: 1_000n,
    pendingSpend: { amount: 900n, mayClear: true },
    isLast: true,
  }
  const nothingThere = async () => ({ transfer: undefined, otherMicros: 0n, pendingSpend: nothing })
  assert.deepEqual(await transferFor({ ...needed, isExit: true }, nothingThere), { transfer_usd: null })
  await assert.rejects(transferFor(needed, nothingThere), { code: 'unavailable' })
  const wants: bigint[] = []
  const fromOtherSide = async ({ shortfallMicros }: { shortfallMicros: bigint }) => {
    wants.push(shortfallMicros)
    return { transfer: noTransfer, otherMicros: 0n, pendingSpend: nothing }
  }
  // The read shows 700 left of 1,700, and not that this is after the 1,000 that were spent.
  await transferFor(
    { ...needed, available: 700n, pendingSpend: { amount: 1_000n, mayClear: true } },
    fromOtherSide,
  )
  assert.deepEqual(wants, [500n])
})
