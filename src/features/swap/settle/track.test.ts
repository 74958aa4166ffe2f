import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { ProviderStatus } from '#kernel/money/swap-provider.ts'
import { trackSwap } from './track.ts'

const { signal } = new AbortController()
const start = new Date(1_700_000_000_000)
const minute = (count: number) => new Date(start.getTime() + count * 60_000)
const token = { symbol: 'ETH', name: 'Ether', decimals: 18, address: '0xee' }
const endOn = (chainId: string) => ({ chain_id: chainId, token, is_native: true, account: '0xown' })
const chainOf = (id: string, displayName: string) =>
  ({ id, displayName, family: 'evm', native: token, tokens: [] }) as unknown as Chain

const paid: ProviderStatus = {
  state: 'success',
  reason: null,
  refundReason: null,
  originTxs: [],
  destinationTxs: [{ chainId: '137', txHash: '0xfill' }],
  refund: null,
  paidToken: null,
}

/** A swap whose chains show no payment. */
const track = (status: ProviderStatus, now: Date, earlier: Partial<SwapTaskData> = {}) => {
  const data = {
    origin: endOn('8453'),
    destination: endOn('137'),
    amount_in: '5',
    amount_out_min: '4',
    usd_micros: '5',
    provider: 'relay',
    provider_request_id: '0x1',
    quote: {},
    deposit_tx: '0xdeposit',
    deposited_at: start.toISOString(),
    ...earlier,
  }
  const deps = {
    providers: [{ name: 'relay', status: async () => status }],
    chains: [chainOf('8453', 'Base'), chainOf('137', 'Polygon')],
    arrivals: { of: async () => undefined },
    async watchLatePayment() {},
  } as unknown as SwapDeps
  const task = { id: 't', userId: 'u', data, effects: [], createdAt: start } as unknown as SwapTask
  return trackSwap(deps, task, { now, signal, stopping: signal, next: 'track' })
}
const waiting = async (...given: Parameters<typeof track>) => {
  const result = await track(...given)
  assert.ok('park' in result)
  return result
}

test('an announced payment that no chain proves for ten minutes is for an operator, who sees where it is', async () => {
  const first = await waiting(paid, minute(1))
  assert.deepEqual([first.state, first.data?.paid_since], ['settling', minute(1).toISOString()])
  const since = { paid_since: minute(1).toISOString() }
  assert.equal((await waiting(paid, minute(11), since)).state, 'settling')
  const late = await waiting(paid, minute(12), since)
  assert.deepEqual([late.state, late.outcome], ['review', 'unknown'])
  for (const part of ['0xdeposit on Base', '0x1', '0xfill on Polygon'])
    assert.ok(late.data?.note?.includes(part), late.data?.note ?? 'no note')
})

test('an announcement that is taken back counts from its next time', async () => {
  const since = { paid_since: minute(1).toISOString(), note: 'where it is' }
  const back = await waiting({ ...paid, state: 'settling', destinationTxs: [] }, minute(12), since)
  assert.deepEqual([back.state, back.data?.paid_since, back.data?.note], ['settling', null, null])
})

test('a deposit without an announced payment is for an operator after an hour', async () => {
  const silent = { ...paid, state: 'settling' as const, destinationTxs: [] }
  assert.equal((await waiting(silent, minute(60))).state, 'settling')
  const late = await waiting(silent, minute(61))
  assert.deepEqual([late.state, late.outcome], ['review', 'unknown'])
  assert.match(late.data?.note ?? '', /names no payment/)
})

test('the older a deposit without an end is, the more rarely its provider is asked, and each hour at least', async () => {
  const silent = { ...paid, state: 'settling' as const, destinationTxs: [] }
  const pauseOf = async (hours: number) => (await waiting(silent, minute(hours * 60))).park.afterMs / 60_000
  assert.deepEqual(await Promise.all([1.1, 2, 24, 60, 2_000].map(pauseOf)), [1.1, 2, 24, 60, 60])
})

test('only a swap that ends without its money is watched further, and as a part of it was executed', async () => {
  const failed = { ...paid, state: 'failed' as const, destinationTxs: [] }
  assert.ok('park' in (await track(failed, minute(9), { failed_since: start.toISOString() })))
  const end = await track(failed, minute(10), { failed_since: start.toISOString() })
  assert.ok('end' in end && end.writes)
  assert.deepEqual([end.end, end.outcome], ['failed', 'partial'])
})
