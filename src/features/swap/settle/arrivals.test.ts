import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EvmChainRow, nativeSentinel } from '#kernel/money/chains.ts'
import type { BlockTransaction, Receipt } from '#upstreams/evm/evm.ts'
import type { TransferLog } from '#upstreams/evm/token-calls.ts'
import { createArrivals, type Gain, isEarlier, paymentsOf, unnumberedGains } from './arrivals.ts'

/** A chain whose node shows no calls, so that balances have to prove a payment in native coins. */

const owner = `0x${'aa'.repeat(20)}`
const contract = `0x${'cc'.repeat(20)}`
const solver = `0x${'dd'.repeat(20)}`
const usdc = `0x${'c5'.repeat(20)}`
const venueBridge = `0x${'ee'.repeat(20)}`
const plain = { nonce: 0n, valueUnits: 0n, input: '0x' }
const own = { ...plain, hash: '0x1', from: solver, to: contract }
const row = { family: 'evm', native: { address: nativeSentinel }, confirmations: 1 } as EvmChainRow

type Node = {
  transactions?: BlockTransaction[]
  /** The calls of our own transactions, by hash. */
  batches?: Record<string, { to: string; value: bigint }[]>
  reverted?: string[]
  balances?: [bigint, bigint]
  traced?: bigint
  to?: string
  transfers?: TransferLog[]
  /** Of the receipt. */
  blockHash?: string
}
const gainOf = async ({
  transactions = [own],
  balances = [5n, 12n],
  traced,
  to = contract,
  transfers = [],
  batches = {},
  reverted = [],
  blockHash = '0x9',
}: Node) => {
  const receiptOf = (hash: string) =>
    ({ success: !reverted.includes(hash), block: 9n, blockHash, logs: [] }) as unknown as Receipt
  const head = { number: 9n, hash: '0x9', timestampSeconds: 100, baseFeeWei: 0n } as const
  const arrivals = createArrivals({
    evmOf: () => ({
      row,
      receipts: async (hashes) => ({ head, receipts: hashes.map(receiptOf) }),
      headAt: async () => head,
      transfers: () => transfers,
      transaction: async () => ({ from: solver, to, valueUnits: 3n }),
      nativeBalances: async (_, blocks) => {
        assert.deepEqual(blocks, [8n, 9n])
        return balances
      },
      nativeGains: async () => (traced === undefined ? undefined : [traced]),
      blockTransactions: async () => transactions,
    }),
    solana: undefined,
    ownCalls: async ({ txHash }) => batches[txHash],
    wrapsOf: () => [],
    otherPayers: [{ chainId: '8453', address: venueBridge.toUpperCase().replace('0X', '0x') }],
  })
  const query = { chainId: '8453', txHash: '0x1', owner, token: nativeSentinel, unitsMax: 7n }
  const arrival = await arrivals.of(query)
  return arrival?.gained[0]?.amountUnits
}

test('a plain payment names its value, and calls show what a contract paid', async () => {
  assert.equal(await gainOf({ to: owner.toUpperCase().replace('0X', '0x') }), 3n)
  assert.equal(await gainOf({ traced: 4n }), 4n)
  assert.equal(await gainOf({ traced: 0n }), undefined)
})

test('the receipt of a block that is not on the chain proves nothing', async () => {
  assert.equal(await gainOf({ traced: 4n, blockHash: '0x9' }), 4n)
  assert.equal(await gainOf({ traced: 4n, blockHash: '0xf0' }), undefined)
})

test('without calls the balances of the block prove a payment that is the only one', async () => {
  assert.equal(await gainOf({}), 7n)
  const others = { ...plain, hash: '0x2', from: solver, to: contract }
  assert.equal(await gainOf({ transactions: [own, others] }), 7n)
})

test('plain payments and our own batches of the block are subtracted', async () => {
  const gift = { ...plain, hash: '0x2', from: solver, to: owner, valueUnits: 4n }
  const spent = { ...plain, hash: '0x3', from: solver, to: owner, input: '0xe9ae5c53' }
  const transactions = [own, gift, spent]
  const batches = { '0x3': [2n, 1n].map((value) => ({ to: solver, value })) }
  assert.equal(await gainOf({ transactions, batches, balances: [5n, 12n] }), 6n)
  assert.equal(await gainOf({ transactions, batches, balances: [5n, 12n], reverted: ['0x3'] }), 3n)
  assert.equal(await gainOf({ transactions, batches, balances: [5n, 8n], reverted: ['0x2'] }), 6n)
})

test('where another transaction may have moved coins of the account, balances prove nothing', async () => {
  const named = `0x12345678${owner.slice(2).padStart(64, '0')}`
  for (const other of [
    { ...plain, hash: '0x2', from: solver, to: owner, input: '0x12345678' },
    { ...plain, hash: '0x2', from: owner, to: null },
    // The fill of another swap, by a contract as well.
    { ...plain, hash: '0x2', from: solver, to: contract, input: named },
  ])
    assert.equal(await gainOf({ transactions: [own, other] }), undefined)
  const tokens = named.replace('12345678', 'a9059cbb')
  assert.equal(
    await gainOf({ transactions: [own, { ...plain, hash: '0x2', from: solver, to: usdc, input: tokens }] }),
    7n,
  )
})

test('a gain above what the swap can bring is of another payment', async () => {
  assert.equal(await gainOf({ balances: [5n, 13n] }), undefined)
  assert.equal(await gainOf({ balances: [5n, 5n] }), undefined)
})

test('a payout of the venue is no fill, also beside one', async () => {
  const paid = (from: string, amountUnits: bigint) =>
    ({ token: usdc, from, to: owner, amountUnits }) as TransferLog
  assert.equal(await gainOf({ traced: 0n, transfers: [paid(venueBridge, 7n)] }), undefined)
  assert.equal(await gainOf({ traced: 0n, transfers: [paid(venueBridge, 7n), paid(solver, 5n)] }), 5n)
})

test('a payment of before the swap is none of its own, by its position and not by clocks', () => {
  const createdAt = new Date(1_000_000)
  const chain = { createdAt, family: 'evm', headAt: undefined } as const
  const byClock = { ...chain, head: undefined }
  assert.equal(isEarlier({ at: new Date(939_999), block: 9 }, byClock), true)
  assert.equal(isEarlier({ at: new Date(940_000), block: 9 }, byClock), false)
  assert.equal(isEarlier({ at: undefined, block: 9 }, byClock), false)
  const late = { at: new Date(0), block: 100 }
  assert.equal(isEarlier(late, { ...chain, head: 104 }), false)
  assert.equal(isEarlier({ ...late, at: createdAt }, { ...chain, head: 105 }), true)
})

test('a payment of just before the swap is none of its own either, but one in a block that has replaced another is', () => {
  const createdAt = new Date(1_000_000)
  const headAt = new Date(999_000)
  const begin = { createdAt, family: 'evm', head: 104, headAt } as const
  for (const [block, at, isBefore] of [
    [104, headAt, true],
    [101, new Date(996_000), true],
    [103, new Date(1_001_000), false],
    [105, headAt, false],
  ] as const)
    assert.equal(isEarlier({ block, at }, begin), isBefore, `${block}`)
  const onSolana = { ...begin, family: 'solana', headAt: undefined } as const
  assert.equal(isEarlier({ block: 103, at: undefined }, onSolana), true)
  assert.equal(isEarlier({ block: 104, at: undefined }, onSolana), false)
})

test('of several transfers of one transaction a swap takes the one that fits it, else those that are too small', () => {
  const gains = (...units: bigint[]) =>
    units.map((amountUnits, at): Gain => ({ token: usdc, amountUnits, part: String(at) }))
  const range = { minUnits: 10n, maxUnits: 20n }
  const chosen = (gained: Gain[], free = gained) =>
    paymentsOf({ gained, free }, range)
      .map(({ part }) => part)
      .join()
  assert.equal(chosen(gains(9n, 15n, 21n)), '1')
  assert.equal(chosen(gains(12n, 15n)), '1')
  assert.equal(chosen(gains(15n, 15n), gains(15n, 15n).slice(1)), '1')
  assert.equal(chosen(gains(6n, 7n)), '0,1')
  // What is larger than the swap can be is of another one.
  assert.equal(chosen(gains(15n, 30n), gains(15n, 30n).slice(1)), '')
  assert.equal(chosen(gains(6n, 30n)), '0')
  // The only transfer is of the swap, also one that is too small or generous.
  assert.equal(chosen(gains(3n)), '0')
  assert.equal(chosen(gains(30n)), '0')
  assert.equal(chosen(gains(3n), []), '')
})

test('several payments without numbers are each one, and their sum is the last resort', () => {
  const chosen = (units: bigint[], range: { minUnits: bigint; maxUnits: bigint }, taken: string[] = []) => {
    const gained = unnumberedGains(usdc, units, 'native')
    const free = gained.filter(({ part }) => !taken.includes(part))
    return paymentsOf({ gained, free }, range).map(({ part, amountUnits }) => `${part} ${amountUnits}`)
  }
  const range = { minUnits: 10n, maxUnits: 20n }
  assert.deepEqual(chosen([3n], range), ['native 3'])
  assert.deepEqual(chosen([12n, 5n], range), ['native:0 12'])
  assert.deepEqual(chosen([6n, 6n], range), ['native 12'])
  assert.deepEqual(chosen([3n, 4n], range), ['native:0 3', 'native:1 4'])
  assert.deepEqual(chosen([6n, 6n], range, ['native', 'native:0']), ['native:1 6'])
  assert.deepEqual(chosen([12n, 15n], range, ['native', 'native:1']), ['native:0 12'])
})
