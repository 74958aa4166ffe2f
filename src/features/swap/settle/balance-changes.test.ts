import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { WrapLog } from '#upstreams/evm/swap-calls.ts'
import { changesOf } from './balance-changes.ts'

const address = (digit: string) => `0x${digit.repeat(40)}`
const [own, coin, wrapped, pools, router, approvalProxy, stranger] = ['a', 'e', 'b', 'c', 'd', 'f', '1'].map(
  address,
) as [string, string, string, string, string, string, string]
const row = {
  native: { address: coin },
  swaps: { wrapped, routers: [pools], relayRouters: [{ router, approvalProxy }] },
} as unknown as EvmChainRow

const coinsOf = (to: string, value: bigint, wraps: WrapLog[]) =>
  changesOf(row, { account: own, calls: [{ to, value }], transfers: [], wraps }).get(coin) ?? 0n

const unwrapped: WrapLog = { kind: 'unwrapped', account: pools, amountUnits: 9n }
const paid: WrapLog = { kind: 'paid', account: own, amountUnits: 7n }

test('a router of pools unwraps for the account', () => assert.equal(coinsOf(pools, 0n, [unwrapped]), 9n))

test("coins of Relay's router are those that it reports as paid to the account", () => {
  const elsewhere: WrapLog = { kind: 'paid', account: stranger, amountUnits: 2n }
  assert.equal(coinsOf(approvalProxy, 0n, [unwrapped, elsewhere, paid]), 7n)
  assert.equal(coinsOf(router.toUpperCase().replace('0X', '0x'), 10n, [unwrapped, paid]), -3n)
})
