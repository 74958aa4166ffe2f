import type { Evm } from './evm.ts'

/** The mined transactions of an account by their nonces, which no method of a node lists. */

export type SentTransaction = { nonce: bigint; hash: string; to: string | null; input: string; block: bigint }
export type NonceRange = { from: bigint; to: bigint }

/** Earlier blocks are not searched: a node without an archive has no state of them. */
const blocksMax = 1n << 20n
/** Further ones are of the same kind: the first of them decide. */
export const sentMax = 50

type Chain = Pick<Evm, 'head' | 'transactionCount' | 'blockTransactions'>

/** Up to `sentMax` of them, the oldest first. Throws where the node does not have the state of that time. */
export async function findSent(
  chain: Chain,
  signer: string,
  { from, to }: NonceRange,
): Promise<SentTransaction[]> {
  const { number: head } = await chain.head()
  const start = await lastBlockBelow(chain, signer, { nonce: from, head })
  const found: SentTransaction[] = []
  for (let nonce = from, after = start; nonce < to && found.length < sentMax; ) {
    const block = await firstBlockAbove(chain, signer, { nonce, after, head })
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

/** A block at which the nonce was not used yet, in steps that double. */
async function lastBlockBelow(
  chain: Chain,
  signer: string,
  { nonce, head }: { nonce: bigint; head: bigint },
): Promise<bigint> {
  for (let step = 1n; step <= blocksMax; step *= 2n) {
    const block = head > step ? head - step : 0n
    if (block === 0n || (await chain.transactionCount(signer, block)) <= nonce) return block
  }
  throw new Error(`nonce ${nonce} of ${signer} was used more than ${blocksMax} blocks ago`)
}

async function firstBlockAbove(
  chain: Chain,
  signer: string,
  { nonce, after, head }: { nonce: bigint; after: bigint; head: bigint },
): Promise<bigint> {
  let [below, above] = [after, head]
  while (above - below > 1n) {
    const middle = (below + above) / 2n
    if ((await chain.transactionCount(signer, middle)) > nonce) above = middle
    else below = middle
  }
  return above
}
