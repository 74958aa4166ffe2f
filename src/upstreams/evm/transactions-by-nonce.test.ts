import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Fault } from '#kernel/contract/fault.ts'
import { findSent, nonceAt, sentMax } from './transactions-by-nonce.ts'

const signer = '0xAa00000000000000000000000000000000000001'

/** How many transactions the account has in each block; others send one in each. */
function chainOf(blocks: readonly number[], { hasHistory = true, blocksMax = 16 } = {}) {
  let asked = 0
  const before = (block: bigint) =>
    blocks.slice(0, Number(block) + 1).reduce((sum, count) => sum + BigInt(count), 0n)
  return {
    head: async () => ({ number: BigInt(blocks.length - 1) }) as never,
    // A block each second.
    headAt: async (block: bigint) => ({ timestampSeconds: Number(block) }) as never,
    transactionCount: async (_signer: string, at: unknown) => {
      if (at !== 'latest' && !hasHistory) throw new Fault('upstream_rejected', 'no state of this block')
      return before(at === 'latest' ? BigInt(blocks.length - 1) : (at as bigint))
    },
    blockTransactions: async (block: bigint) => {
      asked += 1
      await Promise.resolve()
      const together = asked
      await Promise.resolve()
      asked = 0
      if (together > blocksMax) throw new Fault('upstream_rejected', 'the answer is too long')
      return transactionsOf(block)
    },
  }
  function transactionsOf(block: bigint) {
    return [
      { hash: '0xother', from: '0xbb', nonce: 0n, to: null, valueUnits: 0n, input: '0x' },
      ...Array.from({ length: blocks[Number(block)]! }, (_, index) => ({
        hash: `0x${before(block - 1n) + BigInt(index)}`,
        from: signer.toLowerCase(),
        nonce: before(block - 1n) + BigInt(index),
        to: '0xcc',
        valueUnits: 0n,
        input: '0x',
      })),
    ]
  }
}

test('the transactions of a range of nonces are found, wherever they were mined', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 40 }),
      fc.nat(40),
      fc.boolean(),
      fc.constantFrom(1, 5, 16),
      async (later, skipped, hasHistory, blocksMax) => {
        const blocks = [0, ...later]
        const total = BigInt(blocks.reduce((sum, count) => sum + count, 0))
        const from = BigInt(skipped) % (total + 1n)
        const found = await findSent(chainOf(blocks, { hasHistory, blocksMax }), signer, { from, to: total })
        const wanted = Array.from({ length: Number(total - from) }, (_, n) => from + BigInt(n))
        const first = hasHistory ? wanted.slice(0, sentMax) : wanted
        assert.deepEqual(
          found.map(({ nonce, hash }) => [nonce, hash]),
          first.map((nonce) => [nonce, `0x${nonce}`]),
        )
      },
    ),
  )
})

test('the nonce at a time is that of the last block until then', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 40 }),
      fc.nat(45),
      fc.boolean(),
      async (later, second, hasHistory) => {
        const blocks = [0, ...later]
        const wanted = blocks.slice(0, second + 1).reduce((sum, count) => sum + BigInt(count), 0n)
        const at = new Date(second * 1_000)
        assert.equal(await nonceAt(chainOf(blocks, { hasHistory }), signer, at), wanted)
      },
    ),
  )
})

test('without history each block is read once, also by a search that was aborted', async () => {
  const count = 2 * sentMax + 1
  const chain = chainOf([0, ...Array.from({ length: count }, () => 1)], { hasHistory: false })
  const aborted = new AbortController()
  const reads: bigint[] = []
  const counted = {
    ...chain,
    async blockTransactions(block: bigint) {
      reads.push(block)
      if (reads.length === sentMax) aborted.abort()
      return chain.blockTransactions(block)
    },
  }
  const blocks = { found: [] }
  const range = { from: 0n, to: BigInt(count) }
  await assert.rejects(findSent(counted, signer, range, { signal: aborted.signal, blocks }), /aborted/)
  const found = await findSent(counted, signer, range, { blocks })
  assert.equal(found.length, count)
  assert.equal(await nonceAt(counted, signer, new Date(3_000), { blocks }), 3n)
  assert.equal(new Set(reads).size, reads.length)
})
