import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CashSource, expectedCash, reconciledTransfers } from './cash-reconciliation.ts'
import { cashBalanceKey, type FillRow, spotBalanceKey } from './expected-balances.ts'

const fill = (more: Partial<FillRow>): FillRow => ({
  trade_id: 1,
  order_id: 1,
  cloid: null,
  symbol: 'BTC',
  base: null,
  quote: null,
  signed_size: '0.01',
  price: '100000',
  fee: '0.45',
  fee_token: 'USDC',
  cause: 'order',
  realized_pnl: '0',
  tx_hash: null,
  at_ms: 200,
  ...more,
})
const change = (balance_key: string, amount: string, atMs = 200) => ({
  key: `${balance_key}:${amount}`,
  kind: 'test',
  balance_key,
  amount,
  reason: null,
  at_ms: atMs,
})
const perp = { balanceKey: cashBalanceKey, total: '5000', sinceMs: 100 }
const spot = { balanceKey: spotBalanceKey('USDC'), total: '100', sinceMs: 100 }

test('cash equals the earlier cash less the costs of fills and transfers, and older entries do not count', () => {
  const changes = [
    change(cashBalanceKey, '-16'),
    change(spotBalanceKey('USDC'), '7'),
    change(cashBalanceKey, '9', 100),
  ]
  assert.deepEqual(expectedCash(perp, [fill({}), fill({ at_ms: 100 })], changes), {
    total: '3983.55',
    entries: 2,
  })
})

test('the dollars of the spot side change by spot fills, and by fees in dollars only', () => {
  const bought = fill({ base: 'HYPE', quote: 'USDC', signed_size: '2', price: '40', fee_token: 'HYPE' })
  const sold = fill({ base: 'HYPE', quote: 'USDC', signed_size: '-1', price: '40', fee: '0.5' })
  assert.equal(expectedCash(spot, [bought, sold, fill({})], []).total, '59.5')
})

const account = '0x0000000000000000000000000000000000000001'
const source = (cashUsd: string): CashSource =>
  ({
    account: async () => ({ cashUsd }),
    spotBalances: async () => [],
    fillsSince: async () => [],
    fundingSince: async () => [],
    ledgerSince: async () => [],
    spots: async () => ({ markets: [], at: 0 }),
  }) as unknown as CashSource

test('a balance that no list explains contradicts the lists, and an unchanged one agrees', async () => {
  await reconciledTransfers(source('5000'), account, perp)
  await assert.rejects(reconciledTransfers(source('4984'), account, perp), /is 4984 at the venue and 5000/)
})
