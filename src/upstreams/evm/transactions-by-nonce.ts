import { Fault } from '#kernel/contract/fault.ts'
import { findUnreached, firstReached } from './block-search.ts'
import type { Evm } from './evm.ts'

/** Finds the mined transactions of an account by their nonces, which no method of a node lists. */

export type SentTransaction = { nonce: bigint; hash: string; to: string | null; input: string; block: bigint }
export type NonceRange = { from: bigint; to: bigint }

/** The most blocks read one by one if the node lacks old state; a search that continues another has no limit. */
const readBlocksMax = 50_000n
const readAtOnce = 16n
/** `findSent` returns at most this many transactions where the node has old state. */
export const sentMax = 50

/** Blocks that were read one by one, from the head backwards, and the account's transactions in them, oldest first. */
export type BlocksRead = { head?: bigint; oldest?: bigint; found: SentTransaction[] }
/** A search that was aborted continues below the `blocks` that it has read. */
export type SearchOptions = { signal?: AbortSignal; blocks?: BlocksRead }

type Chain = Pick<Evm, 'head' | 'headAt' | 'transactionCount' | 'blockTransactions'>

/**
 * Returns the account's transactions in a range of nonces, oldest first: the first `sentMax`, or all if every block
 * had to be read. Throws when aborted.
 */
export const findSent = (
  chain: Chain,
  signer: string,
  range: NonceRange,
  options: SearchOptions = {},
): Promise<SentTransaction[]> =>
  findByState(chain, signer, range, options.signal).catch(async (error: unknown) => {
    if (!(error instanceof Fault)) throw error
    const isEnough = async (found: readonly SentTransaction[]) =>
      found.some(({ nonce }) => nonce <= range.from)
    const sent = await readBack(chain, signer, { isEnough, ...options })
    return sent.filter(({ nonce }) => nonce >= range.from && nonce < range.to)
  })

async function findByState(
  chain: Chain,
  signer: string,
  { from, to }: NonceRange,
  signal: AbortSignal | undefined,
): Promise<SentTransaction[]> {
  const { number: head } = await chain.head()
  const isUsed = (nonce: bigint) => async (block: bigint) =>
    (await chain.transactionCount(signer, block)) > nonce
  const start = await findUnreached(isUsed(from), head)
  const found: SentTransaction[] = []
  for (let nonce = from, after = start; nonce < to && found.length < sentMax; ) {
    signal?.throwIfAborted()
    const block = await firstReached(isUsed(nonce), { below: after, upTo: head })
    const sent = (await chain.blockTransactions(block)).filter(
      (each) => each.from.toLowerCase() === signer.toLowerCase(),
    )
    if (sent.length === 0) throw new Error(`block ${block} has no transaction of ${signer}`)
    for (const { nonce: at, hash, to: receiver, input } of sent) {
      if (at >= nonce && at < to) found.push({ nonce: at, hash, to: receiver, input, block })
      if (at >= nonce) nonce = at + 1n
    }
    after = block
  }
  return found.slice(0, sentMax)
}

type Reading = SearchOptions & {
  isEnough: (found: readonly SentTransaction[], oldest: bigint) => Promise<boolean>
}

/** Reads back from the newest block until `isEnough`, and returns the account's transactions, oldest first. */
async function readBack(
  chain: Chain,
  signer: string,
  { isEnough, signal, blocks }: Reading,
): Promise<SentTransaction[]> {
  const read = blocks ?? { found: [] }
  const head = read.head ?? (await chain.head()).number
  read.head = head
  let atOnce = readAtOnce
  while (read.oldest !== 0n && !(read.oldest !== undefined && (await isEnough(read.found, read.oldest)))) {
    signal?.throwIfAborted()
    const last = (read.oldest ?? head + 1n) - 1n
    if (!blocks && head - last > readBlocksMax)
      throw new Error(`the last ${readBlocksMax} blocks are not enough`)
    const first = last >= atOnce ? last - atOnce + 1n : 0n
    const numbers = Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index))
    const all = await Promise.all(
      numbers.map(async (block) =>
        (await chain.blockTransactions(block)).map((each) => ({ ...each, block })),
      ),
    ).catch((error: unknown) => {
      // Full blocks together may exceed the size limit of one answer.
      if (!(error instanceof Fault) || atOnce === 1n) throw error
      atOnce /= 2n
      return undefined
    })
    if (!all) continue
    const own = all.flat().filter((each) => each.from.toLowerCase() === signer.toLowerCase())
    read.found.unshift(...own.map(({ nonce, hash, to, input, block }) => ({ nonce, hash, to, input, block })))
    read.oldest = first
  }
  return read.found
}

/**
 * Returns the next nonce that an account had at a given time. The gateway starts there if it has stored no nonce of the
 * account.
 */
export const nonceAt = (
  chain: Chain,
  signer: string,
  at: Date,
  options: SearchOptions = {},
): Promise<bigint> =>
  nonceByState(chain, signer, at).catch(async (error: unknown) => {
    if (!(error instanceof Fault)) throw error
    const timeOf = async (block: bigint) => (await chain.headAt(block)).timestampSeconds * 1_000
    const isEnough = async (_found: unknown, oldest: bigint) => (await timeOf(oldest)) <= at.getTime()
    const sent = await readBack(chain, signer, { isEnough, ...options })
    for (const { block, nonce } of sent) if ((await timeOf(block)) > at.getTime()) return nonce
    return chain.transactionCount(signer, 'latest')
  })

async function nonceByState(chain: Chain, signer: string, at: Date): Promise<bigint> {
  const { number: head } = await chain.head()
  const isLater = async (block: bigint) => (await chain.headAt(block)).timestampSeconds * 1_000 > at.getTime()
  if (!(await isLater(head))) return chain.transactionCount(signer, 'latest')
  const below = await findUnreached(isLater, head)
  const first = await firstReached(isLater, { below, upTo: head })
  return chain.transactionCount(signer, first > 0n ? first - 1n : 0n)
}
