import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58 } from './base58.ts'
import { computeLimit, transferLamports } from './instruction-builder.ts'
import { svmDecoder } from './instructions.ts'
import { compileMessage, decodeMessage, joinTransaction } from './message.ts'
import { executionOfReference, findReferenced, referenceOf } from './reference.ts'
import type { HistoryEntry, LandedTransaction } from './solana.ts'

const addressOf = (byte: number) => base58(new Uint8Array(32).fill(byte))
const [sponsor, wallet, stranger] = [addressOf(1), addressOf(2), addressOf(3)]
const executionId = '00b6f012-34ff-eabc-0def-0123456789ab'
const reference = referenceOf({ executionId, sequence: 1 })

test('a reference is an address of its execution, and read back from it', () => {
  assert.deepEqual(executionOfReference(reference), { executionId, sequence: 1 })
  assert.notEqual(reference, referenceOf({ executionId, sequence: 0 }))
  assert.deepEqual([wallet, 'not an address'].map(executionOfReference), [undefined, undefined])
})

const messageOf = (from: string) =>
  compileMessage({
    feePayer: sponsor!,
    instructions: [computeLimit(9, [reference]), transferLamports(from, sponsor!, 1n)],
    tables: [],
    staticAddresses: [reference],
    blockhash: sponsor!,
  })

test('custody decodes the limit of a message with its reference, which signs and changes nothing', () => {
  const [limit] = decodeMessage(messageOf(wallet!)).instructions
  assert.deepEqual(svmDecoder.decodeInstruction(limit!), { name: 'compute_limit', units: 9n, reference })
  const [account] = limit!.accounts
  const writable = { ...limit!, accounts: [{ ...account!, isWritable: true }] }
  assert.equal(svmDecoder.decodeInstruction(writable), undefined)
  const two = { ...limit!, accounts: [account!, { ...account!, address: stranger! }] }
  assert.equal(svmDecoder.decodeInstruction(two), undefined)
})

test('a look-up finds the transaction of the wallet, and no failed or foreign one that names its reference', async () => {
  const raws = new Map(
    [wallet, stranger].map((from) => {
      const signatures = [new Uint8Array(64), new Uint8Array(64)]
      return [from, Buffer.from(joinTransaction(signatures, messageOf(from!))).toString('base64')]
    }),
  )
  const landed = (signature: string): LandedTransaction | undefined => {
    if (signature === 'pending') return undefined
    return { raw: raws.get(signature === 'foreign' ? stranger : wallet) } as LandedTransaction
  }
  const chainOf = (...signatures: string[]) => ({
    row: { finality: 'finalized' } as never,
    history: async (): Promise<HistoryEntry[]> =>
      signatures.map((signature) => ({ signature, slot: 1n, failed: signature === 'failed' })),
    transaction: async (signature: string) => landed(signature),
  })
  const search = { reference, account: wallet! }
  assert.equal((await findReferenced(chainOf('failed', 'foreign', 'own'), search))?.signature, 'own')
  assert.equal(await findReferenced(chainOf('failed', 'foreign'), search), undefined)
  await assert.rejects(findReferenced(chainOf('pending'), search), /not final yet/)
  await assert.rejects(
    findReferenced(chainOf(...Array(100).fill('foreign')), search),
    /too many transactions/,
  )
})
