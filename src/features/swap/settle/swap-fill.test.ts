import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapTask } from '#features/swap/task-data.ts'
import { filledOf } from './swap-fill.ts'

const token = (address: string) => ({ symbol: 'T', name: 'T', decimals: 6, address })
const chains = [{ id: '1', family: 'evm', usdc: '0xusdc' }] as never
const swap = (settled_by: 'status' | 'receipt') =>
  ({
    userId: 'u',
    data: {
      origin: { chain_id: '1', token: token('0xusdc') },
      destination: { chain_id: '1', token: token('0xbought') },
      amount_in: '500000000',
      amount_out_min: '250',
      usd_micros: '500000000',
      settled_by,
    },
  }) as unknown as SwapTask
const booked = (outUnits: bigint, beforeUnits = 0n, settledBy: 'status' | 'receipt' = 'status') => {
  const { sold, bought, value } = filledOf(
    { chains },
    { task: swap(settledBy), outUnits, beforeUnits, at: new Date(0) },
  )
  return [sold.units, bought.units, value / 10n ** 18n]
}

test('less than the minimum has its part of the cost, and the rest has the rest of it when it comes', () => {
  assert.deepEqual(booked(1n), [2_000_000n, 1n, 2n])
  assert.deepEqual(booked(250n, 1n), [498_000_000n, 249n, 498n])
  assert.deepEqual(booked(260n), [500_000_000n, 260n, 500n])
  assert.deepEqual(booked(260n, 250n), [0n, 10n, 0n])
})

test('a receipt is the end: the whole cost is that of what arrived', () => {
  assert.deepEqual(booked(1n, 0n, 'receipt'), [500_000_000n, 1n, 500n])
})
