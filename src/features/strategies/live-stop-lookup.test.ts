import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { OwnOrder } from './live-records.ts'
import { withoutEndedStops } from './live-stop-lookup.ts'

const nowMs = 1_000_000
const order = (leg: string, ageMs: number): OwnOrder => ({
  cloid: leg,
  task_id: 'entry',
  leg,
  asset: 'BTC',
  is_buy: false,
  size: '0.01',
  price: '90000',
  trigger_price: '98000',
  reduce_only: true,
  at: new Date(nowMs - ageMs),
})

type Answer = { status?: string | undefined; error?: Fault; ageMs?: number; streamedMs?: number | undefined }

/** Returns the orders that are left of a stop and a target, and how often the venue was asked. */
async function leftOf({ status, error, ageMs = 60_000, streamedMs }: Answer) {
  let asked = 0
  const venue = {
    async order() {
      asked++
      if (error) throw error
      return status === undefined ? undefined : { order: {}, status, atMs: nowMs }
    },
  }
  const deps = {
    venue,
    clock: { now: () => new Date(nowMs) },
    streamedSinceMs: () => streamedMs,
    evmAddressOf: async () => '0x1',
  } as unknown as Parameters<typeof withoutEndedStops>[0]
  const left = await withoutEndedStops(deps, 'user', [order('sl', ageMs), order('tp', ageMs)])
  return [left.map(({ cloid }) => cloid), asked]
}

const both = ['sl', 'tp']

test('a stop is missing once the venue has ended it, or does not know it for a while', async () => {
  assert.deepEqual(await leftOf({ status: 'open' }), [both, 1])
  assert.deepEqual(await leftOf({ status: 'canceled' }), [['tp'], 1])
  assert.deepEqual(await leftOf({ status: 'rejected' }), [['tp'], 1])
  assert.deepEqual(await leftOf({ status: undefined }), [['tp'], 1])
  assert.deepEqual(await leftOf({ status: undefined, ageMs: 5_000 }), [both, 1])
})

test('a stop that fired, or whose target has filled, is not missing', async () => {
  for (const status of ['triggered', 'filled', 'siblingFilledCanceled', 'reduceOnlyCanceled', 'somethingNew'])
    assert.deepEqual(await leftOf({ status }), [both, 1], status)
})

test('the venue is not asked while a stream reports it, and asked again after a gap of it or a failure', async () => {
  assert.deepEqual(await leftOf({ status: 'canceled', streamedMs: nowMs - 60_000 }), [both, 0])
  assert.deepEqual(await leftOf({ status: 'canceled', streamedMs: nowMs - 1_000 }), [['tp'], 1])
  const away = new Fault('unavailable', 'The venue does not answer')
  assert.deepEqual(await leftOf({ error: away }), [both, 1])
})
