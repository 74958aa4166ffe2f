import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58 } from './base58.ts'
import { findTransfers, paymentsTo, transfersTo, walletChanges } from './incoming-transfers.ts'
import { memo, transferLamports } from './instruction-builder.ts'
import { compileMessage, joinTransaction } from './message.ts'
import type { HistoryEntry, HistoryOptions, LandedTransaction, Solana } from './solana.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [sponsor, user, wallet, mint, other, native] = [1, 2, 3, 4, 5, 6].map(key) as [
  string,
  string,
  string,
  string,
  string,
  string,
]
const instructions = [memo('the task'), transferLamports(user, wallet, 7n)]
const bytes = compileMessage({
  feePayer: sponsor,
  instructions,
  tables: [],
  staticAddresses: [],
  blockhash: key(9),
})
const signature = new Uint8Array(64)
/** Fee payer, user, wallet, and what their message names beside them. */
const landed: LandedTransaction = {
  slot: 5n,
  blockSeconds: 1,
  raw: Buffer.from(joinTransaction([signature, signature], bytes)).toString('base64'),
  failure: undefined,
  feeLamports: 1n,
  lamportsBefore: [100n, 10n, 0n, 1n, 1n],
  lamportsAfter: [99n, 3n, 7n, 1n, 1n],
  tokensBefore: [],
  tokensAfter: [],
}
const target = { wallet, tokens: [mint], signature: 's', native }
const paid = {
  signature: 's',
  slot: 5n,
  index: 0,
  payer: user,
  token: native,
  amountUnits: 7n,
  memo: 'the task',
}

test('a transfer has its payer and memo from the message, and its amount from the balances', () => {
  assert.deepEqual(transfersTo(landed, target), [paid])
  assert.deepEqual(transfersTo({ ...landed, failure: 'no' }, target), [])
  assert.deepEqual(transfersTo(landed, { ...target, wallet: other }), [])
})

test('tokens count for their owner, beside the coins, and what is taken does not count', () => {
  const held = (owner: string, amountUnits: bigint) => ({
    accountIndex: 3,
    mint,
    owner,
    amountUnits,
    decimals: 6,
  })
  const tokensAfter = [held(wallet, 9n), held(other, 50n)]
  const both = transfersTo({ ...landed, tokensBefore: [held(wallet, 4n)], tokensAfter }, target)
  assert.deepEqual(both, [paid, { ...paid, index: 1, token: mint, amountUnits: 5n }])
  const taken = transfersTo({ ...landed, tokensBefore: [held(wallet, 9n)] }, target)
  assert.deepEqual(taken, [paid])
})

test('two payers or two memos are none, and then the payer of the fee counts', () => {
  const twice = compileMessage({
    feePayer: sponsor,
    instructions: [...instructions, memo('another'), transferLamports(sponsor, wallet, 1n)],
    tables: [],
    staticAddresses: [],
    blockhash: key(9),
  })
  const raw = Buffer.from(joinTransaction([signature, signature], twice)).toString('base64')
  const [found] = transfersTo({ ...landed, raw }, target)
  assert.deepEqual([found?.payer, found?.memo], [sponsor, undefined])
  const cut = { ...landed, raw: Buffer.from('00', 'hex').toString('base64') }
  assert.deepEqual(transfersTo(cut, target), [])
})

test('the history is read back to the slot, in pages, and each unknown transaction once', async () => {
  const entry = (n: number): HistoryEntry => ({ signature: `s${n}`, slot: BigInt(n), failed: n % 500 === 0 })
  // Newest first: 2,500 transactions.
  const all = Array.from({ length: 2_500 }, (_, n) => entry(2_500 - n))
  const read: string[] = []
  const chain = {
    row: { id: '7565164', displayName: 'Solana', finality: 'confirmed', native: { address: native } },
    height: async () => ({ slot: 2_600n, height: 2_600n }),
    history: async (address: string, { before, limit }: { before?: string; limit: number }) => {
      if (address !== wallet) return []
      const from = before === undefined ? 0 : all.findIndex((each) => each.signature === before) + 1
      return all.slice(from, from + limit)
    },
    transaction: async (given: string) => {
      read.push(given)
      return landed
    },
  } as unknown as Solana
  const { transfers, searchedTo } = await findTransfers(chain, {
    wallet,
    tokens: [mint],
    fromSlot: 990n,
    isKnown: async () => new Set(['s2499']),
  })
  const expected = Array.from({ length: 1_511 }, (_, n) => 990 + n).filter(
    (n) => n % 500 !== 0 && n !== 2_499,
  )
  assert.deepEqual(read.toSorted(), expected.map((n) => `s${n}`).toSorted())
  assert.equal(transfers.length, expected.length)
  assert.equal(searchedTo, 2_600n)
})

test('what the node has thrown away was not searched, but for a search of everything', async () => {
  const sought: unknown[] = []
  const chain = {
    row: { id: '7565164', displayName: 'Solana', finality: 'confirmed', native: { address: native } },
    height: async () => ({ slot: 2_600n, height: 2_600n }),
    async history(_address: string, { since }: HistoryOptions) {
      sought.push(since)
      return []
    },
  } as unknown as Solana
  const search = { wallet, tokens: [], isKnown: async () => new Set<string>() }
  await findTransfers(chain, { ...search, fromSlot: 990n })
  await findTransfers(chain, { ...search, fromSlot: 0n })
  assert.deepEqual(sought, [990n, undefined])
})

test('each transfer of one transaction is a payment, where its message states all of them', () => {
  const twice = compileMessage({
    feePayer: sponsor,
    instructions: [transferLamports(user, wallet, 3n), transferLamports(user, wallet, 4n)],
    tables: [],
    staticAddresses: [],
    blockhash: key(9),
  })
  const raw = Buffer.from(joinTransaction([signature, signature], twice)).toString('base64')
  const paying = (lamports: bigint) => ({ ...landed, raw, lamportsAfter: [99n, 3n, lamports, 1n, 1n] })
  assert.deepEqual([...paymentsTo(paying(7n), wallet, native)], [[native, [3n, 4n]]])
  // A program paid as well: only the sum is known.
  assert.deepEqual([...paymentsTo(paying(9n), wallet, native)], [[native, [9n]]])
  assert.deepEqual([...paymentsTo(landed, wallet, native)], [[native, [7n]]])
})

test('what moved a wallet is listed with what it took, and one that the node lacks leaves it open', async () => {
  const entries: HistoryEntry[] = [
    { signature: 'b', slot: 5n, failed: false },
    { signature: 'no', slot: 5n, failed: true },
  ]
  const chainOf = (record: LandedTransaction | undefined) =>
    ({
      row: { finality: 'finalized', native: { address: native } },
      history: async (address: string) => (address === user ? entries : []),
      transaction: async () => record,
    }) as unknown as Solana
  const asked = { wallet: user, tokens: [native], fromSlot: 1n }
  assert.deepEqual(await walletChanges(chainOf(landed), asked), [
    { signature: 'b', slot: 5n, units: new Map([[native, -7n]]) },
  ])
  assert.equal(await walletChanges(chainOf(undefined), asked), undefined)
})
