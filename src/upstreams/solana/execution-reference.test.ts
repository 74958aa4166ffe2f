import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { base58 } from './base58.ts'
import { executionOfReference, referenceOf, referenceSearch, sentExecutions } from './execution-reference.ts'
import { computeLimit, transferLamports } from './instruction-builder.ts'
import { svmDecoder } from './instruction-decoder.ts'
import { compileMessage, decodeMessage, joinTransaction } from './message.ts'
import type { HistoryEntry, HistoryOptions, LandedTransaction } from './solana.ts'

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

const raws = new Map(
  [wallet, stranger].map((from) => {
    const signatures = [new Uint8Array(64), new Uint8Array(64)]
    return [from, Buffer.from(joinTransaction(signatures, messageOf(from!))).toString('base64')]
  }),
)
/** Signatures, newest first, by the first word of which the transaction is known. */
function chainOf(...signatures: string[]) {
  const reads: string[] = []
  return {
    reads,
    row: { finality: 'finalized' } as never,
    async history(_address: string, { before, limit }: HistoryOptions) {
      const from = before === undefined ? 0 : signatures.indexOf(before) + 1
      const entryOf = (signature: string): HistoryEntry => ({
        signature,
        slot: 1n,
        failed: signature.startsWith('failed'),
      })
      return signatures.slice(from, from + limit).map(entryOf)
    },
    async transaction(signature: string, commitment: string): Promise<LandedTransaction | undefined> {
      reads.push(signature)
      if (signature.startsWith('pending') && commitment === 'finalized') return undefined
      return { raw: raws.get(signature.includes('foreign') ? stranger : wallet) } as LandedTransaction
    },
  }
}
const since = new Date('2030-01-01T00:00:00Z')
const search = { reference, account: wallet!, since }
const { signal } = new AbortController()

test('a search finds the transaction of the wallet, and no failed or foreign one that names its reference', async () => {
  assert.equal((await referenceSearch(chainOf('failed', 'foreign', 'own'))(search))?.signature, 'own')
  assert.equal(await referenceSearch(chainOf('failed', 'foreign'))(search), undefined)
  await assert.rejects(referenceSearch(chainOf('pending'))(search), /not final yet/)
})

test('strangers who name a reference without end cannot stop its search', async () => {
  assert.equal(await referenceSearch(chainOf('pending foreign'))(search), undefined)
  const foreign = Array.from({ length: 1_150 }, (_, index) => `foreign ${index}`)
  for (const [signatures, found] of [
    [foreign, undefined],
    [[...foreign, 'own'], 'own'],
  ] as const) {
    const chain = chainOf(...signatures)
    const find = referenceSearch(chain)
    for (let round = 0; round < 11; round++) await assert.rejects(find(search), /still read/)
    assert.equal((await find(search))?.signature, found)
    const read = chain.reads.filter((signature) => signature !== 'own')
    assert.equal(read.length, new Set(read).size, 'each is read once')
  }
})

test('a node that does not know the page before proves no end of a history', async () => {
  const signatures = Array.from({ length: 1_500 }, (_, index) => `foreign ${index}`)
  const chain = chainOf(...signatures)
  const forgetful = {
    ...chain,
    history: async (address: string, page: HistoryOptions) =>
      page.before === undefined ? chain.history(address, page) : [],
  }
  const find = referenceSearch(forgetful)
  for (let round = 0; round < 9; round++) await assert.rejects(find(search), /still read/)
  await assert.rejects(find(search), /does not know the page before/)
  const sent = { since: new Date(0), signal }
  await assert.rejects(sentExecutions(withTimes(forgetful), sponsor!, sent), /does not know the page before/)
  await sentExecutions(withTimes(chain), sponsor!, sent)
  assert.equal(new Set(chain.reads).size, 1_500)
})

test('nothing was executed only where the node keeps all since then', async () => {
  const pruned = <Chain extends ReturnType<typeof chainOf>>(chain: Chain) => ({
    ...chain,
    async history(address: string, page: HistoryOptions) {
      const listed = await chain.history(address, page)
      if (page.since === since && listed.length < page.limit) throw new Fault('unavailable', 'too little')
      return listed
    },
  })
  for (const listed of [[], Array.from({ length: 1_050 }, (_, index) => `failed ${index}`)]) {
    await assert.rejects(referenceSearch(pruned(chainOf(...listed)))(search), /too little/)
    const sent = sentExecutions(withTimes(pruned(chainOf(...listed)), 60), sponsor!, { since, signal })
    await assert.rejects(sent, /too little/)
  }
})

test('what was sent up to a minute before a moment is found, since blocks have the time of other clocks', async () => {
  const chain = chainOf('own 5', 'own 0', 'own -59', 'own -60', 'own -90')
  const found = await sentExecutions(withTimes(chain), sponsor!, { since, signal })
  assert.deepEqual(
    found.map(({ signature }) => signature),
    ['own 5', 'own 0', 'own -59'],
  )
  assert.ok(!chain.reads.includes('own -90'), 'nothing older is read')
})

/** The last word of a signature is the time of its block, in seconds after the moment. */
const withTimes = <Chain extends ReturnType<typeof chainOf>>(chain: Chain, seconds?: number) => ({
  ...chain,
  transaction: async (...given: Parameters<Chain['transaction']>) => ({
    ...(await chain.transaction(given[0] as string, given[1] as string))!,
    blockSeconds: since.getTime() / 1_000 + (seconds ?? Number((given[0] as string).split(' ').at(-1))),
  }),
})
