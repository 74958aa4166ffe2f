import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchGas } from './batch-plan.ts'

const limits = { txMax: 16_777_216n }

test('a plan raises the gas of its batch to no more than three times what the simulation needs', () => {
  const of = (simulatedGas: bigint, gasMin?: bigint) => batchGas({ simulatedGas, gasMin }, limits)
  assert.equal(of(500_000n), 500_000n)
  assert.equal(of(500_000n, 400_000n), 500_000n)
  assert.equal(of(500_000n, 700_000n), 700_000n)
  assert.equal(of(500_000n, 12_250_000n), 1_500_000n)
  assert.equal(of(6_000_000n, 12_250_000n), 12_250_000n)
})

test('no batch gets more gas than one transaction may have', () => {
  assert.equal(batchGas({ simulatedGas: 6_000_000n, gasMin: 18_000_000n }, limits), limits.txMax)
  assert.equal(batchGas({ simulatedGas: 17_000_000n }, limits), limits.txMax)
})
