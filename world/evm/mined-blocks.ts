import type { MinedAt } from './call-journal.ts'
import type { Rpc } from './rpc.ts'

type Hex = `0x${string}`
type Transaction = { hash: Hex; blockNumber: Hex | null } | null
type Receipt = { transactionHash: Hex; blockNumber: Hex; transactionIndex: Hex } | null
type Block = { number: Hex; timestamp: Hex } | null

const byNumber = (number: Hex | 'latest') => ({ method: 'eth_getBlockByNumber', params: [number, false] })

/**
 * The mined ones among the transactions, with their blocks; one round trip where all are in the newest block. Their
 * receipts are asked for, because the node still calls a transaction pending for a moment after it has shown the block.
 */
export const findMined = async (rpc: Rpc, hashes: readonly Hex[]): Promise<Map<Hex, MinedAt>> => {
  const [latest, ...found] = (await rpc.batch([
    byNumber('latest'),
    ...hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
  ])) as [Block, ...Receipt[]]
  const times = new Map(latest ? [[latest.number, latest.timestamp]] : [])
  const numbers = new Set(found.flatMap((each) => (each ? [each.blockNumber] : [])))
  const others = [...numbers].filter((number) => !times.has(number))
  for (const block of (await rpc.batch(others.map(byNumber))) as Block[])
    if (block) times.set(block.number, block.timestamp)
  const mined = new Map<Hex, MinedAt>()
  for (const each of found) {
    const time = each ? times.get(each.blockNumber) : undefined
    if (!each || time === undefined) continue
    const [block, index] = [Number(each.blockNumber), Number(each.transactionIndex)]
    const { transactionHash: hash } = each
    mined.set(hash, { hash, block, index, atSeconds: Number(time) })
  }
  return mined
}

const findTransactions = async (rpc: Rpc, hashes: readonly Hex[]): Promise<NonNullable<Transaction>[]> => {
  const found = (await rpc.batch(
    hashes.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] })),
  )) as Transaction[]
  return found.filter((each) => each !== null)
}

/** Transactions that the node has, in its pool or in a block. */
export const findKnown = async (rpc: Rpc, hashes: readonly Hex[]): Promise<Set<Hex>> =>
  new Set((await findTransactions(rpc, hashes)).map(({ hash }) => hash))

/** Transactions in the node's pool. */
export const findPending = async (rpc: Rpc, hashes: readonly Hex[]): Promise<Set<Hex>> =>
  new Set(
    (await findTransactions(rpc, hashes)).flatMap(({ hash, blockNumber }) =>
      blockNumber === null ? [hash] : [],
    ),
  )
