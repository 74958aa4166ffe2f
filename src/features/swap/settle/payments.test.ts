import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask } from '#features/swap/task-data.ts'
import { type Chain, nativeSentinel } from '#kernel/money/chains.ts'
import type { ProviderStatus } from '#kernel/money/swap-provider.ts'
import type { ArrivalQuery, Gain } from './arrivals.ts'
import { findPayments } from './payments.ts'

const account = `0x${'aa'.repeat(20)}`
const token = { symbol: 'ETH', name: 'Ether', decimals: 18, address: nativeSentinel }
const listed = { symbol: 'USDC.e', name: 'USD Coin', decimals: 6, address: `0x${'bb'.repeat(20)}` }
const chainOf = (id: string) => ({ id, family: 'evm', native: token, tokens: [listed] }) as unknown as Chain
const endOn = (chain_id: string) => ({ chain_id, token, is_native: true, account })

/** A swap of a million units for as many, with a minimum of a hundredth of a percent less. */
const task = {
  id: 't',
  createdAt: new Date(0),
  data: {
    origin: endOn('8453'),
    destination: endOn('137'),
    amount_in: '1000000',
    amount_out_min: '999900',
    quote: { amount_out: '1000000' },
    usd_micros: '1000000',
  },
} as unknown as SwapTask

const depsOf = (gained: (query: ArrivalQuery) => Gain[]) =>
  ({
    chains: ['8453', '137'].map(chainOf),
    db: { query: async () => ({ rows: [] }) },
    arrivals: {
      of: async (query: ArrivalQuery) => ({
        gained: gained(query),
        isFinal: true,
        block: 9,
        at: new Date(1),
      }),
    },
  }) as unknown as SwapDeps
const gain = (units: number, part = 'native'): Gain => ({
  token: nativeSentinel,
  amountUnits: BigInt(units),
  part,
})
/** Only balances show what arrived. */
const byBalance = (units: number) =>
  depsOf(({ unitsMax }) => (BigInt(units) <= unitsMax ? [gain(units)] : []))
const search = async (deps: SwapDeps, of: SwapTask, chainId: string, state: ProviderStatus['state']) =>
  findPayments(deps, of, {
    status: { state, refund: null, paidToken: null } as ProviderStatus,
    announced: [{ chainId, txHash: '0xfill' }],
    claims: 'own',
  })
const fillOf = async (deps: SwapDeps, of = task) => (await search(deps, of, '137', 'success')).fill?.units

test('balances prove a fill up to 2 % above its quote, however tight the minimum is', async () => {
  const fill = async (units: number) => fillOf(byBalance(units))
  for (const units of [999_900, 1_000_100, 1_000_101, 1_020_000])
    assert.equal(await fill(units), BigInt(units))
  for (const units of [1_020_001, 2_000_000]) assert.equal(await fill(units), undefined)
  const loose = { ...task, data: { ...task.data, amount_out_min: '900000' } }
  const looseFill = async (units: number) => fillOf(byBalance(units), loose)
  assert.equal(await looseFill(1_100_000), 1_100_000n)
  assert.equal(await looseFill(1_100_001), undefined)
})

test('balances prove no refund of more than the deposit', async () => {
  const refund = async (units: number) =>
    (await search(byBalance(units), task, '8453', 'refunded')).returns[0]?.units
  assert.equal(await refund(1_000_000), 1_000_000n)
  assert.equal(await refund(1_000_001), undefined)
})

test('of two payments of one transaction the quoted one is the fill, also where the other is little more', async () => {
  const deps = depsOf(() => [gain(1_010_000, 'native:0'), gain(1_000_000, 'native:1')])
  assert.equal(await fillOf(deps), 1_000_000n)
})

test('a payment in another listed token of the other chain counts once its provider has refunded or failed', async () => {
  const deps = depsOf(() => [{ token: listed.address, amountUnits: 990_000n, part: '3' }])
  const found = async (state: ProviderStatus['state']) =>
    (await search(deps, task, '137', state)).returns.map(({ units, place }) => [units, place.token.symbol])
  assert.deepEqual(await found('success'), [])
  for (const state of ['refunded', 'failed'] as const)
    assert.deepEqual(await found(state), [[990_000n, 'USDC.e']], state)
})
