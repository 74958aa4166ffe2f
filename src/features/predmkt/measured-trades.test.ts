import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OutcomeTrade } from '#kernel/money/prediction-views.ts'
import { besideTrades, measureTrades } from './measured-trades.ts'

const [wallet, cash, exchange] = ['0x1', '0x2', '0x3']
const trade = { tradeId: 't', side: 'buy', settlement: 'confirmed', txHash: '0xa' } as OutcomeTrade

/** What a trade counts as while the chain shows its transaction so. */
const measured = async (receipt: { success: boolean } | undefined, more: Partial<OutcomeTrade> = {}) => {
  const deps = {
    venue: { money: { cashToken: cash } },
    chain: {
      receipts: async (hashes: string[]) => ({ receipts: hashes.map(() => receipt) }),
      transfers: () => [{ token: cash, from: wallet, to: exchange, amountUnits: 5n }],
    },
  } as unknown as Parameters<typeof measureTrades>[0]
  const [found] = await measureTrades(deps, wallet!, [{ ...trade, ...more }])
  return [found!.settlement, found!.netUnits]
}

test('a trade counts as confirmed only by a transaction that the chain shows and that succeeded', async () => {
  assert.deepEqual(await measured({ success: true }), ['confirmed', 5n])
  assert.deepEqual(await measured(undefined), ['mined', null])
  assert.deepEqual(await measured({ success: false }), ['mined', null])
  assert.deepEqual(await measured({ success: true }, { txHash: null }), ['mined', null])
  for (const settlement of ['matched', 'failed'] as const)
    assert.deepEqual(await measured({ success: true }, { settlement }), [settlement, null])
})

test('a trade is measured beside the trades of its transaction that are recorded already', async () => {
  const first = { ...trade, tradeId: 'first' }
  const second = { ...trade, tradeId: 'second' }
  const other = { ...trade, tradeId: 'other', txHash: '0xb' }
  const unsettled = { ...trade, tradeId: 'unsettled', txHash: null }
  const all = [first, second, other, unsettled]
  const beside = (...ids: string[]) =>
    besideTrades(all, ({ tradeId }) => ids.includes(tradeId)).map(({ tradeId }) => tradeId)
  assert.deepEqual(beside('second'), ['first', 'second'])
  assert.deepEqual(beside('other', 'unsettled'), ['other', 'unsettled'])
})
