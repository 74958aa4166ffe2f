import type { Rpc } from '#world/evm/rpc.ts'
import { requireChain, requireCurrency, wrappedOn } from './chains.ts'
import { type Hex, type SolverRequest, withStatus } from './request.ts'
import type { Store } from './store.ts'

/** Blocks before the newest one that are searched after a start, and again because they may have changed. */
const searchedBlocksMax = 300
const changedBlocksMax = 4
/** A swap may land in a block after its deadline is seen to pass. */
const graceMs = 60_000

const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const withdrawalTopic = '0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65'
const depositTopic = '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c'

type Log = { address: Hex; topics: Hex[]; data: Hex }
type Receipt = { status: Hex; blockNumber: Hex; logs: Log[] } | null
type Block = { transactions: { hash: Hex; input: Hex }[] } | null

export type Swaps = {
  /** Finds the users' own transactions of swaps, and what became of them. */
  follow: () => Promise<void>
  /** A client says which transaction belongs to a request. */
  notify: (requestId: string, txHash: string) => void
}

const endsIn = (topic: Hex | undefined, address: string): boolean =>
  topic?.slice(-40).toLowerCase() === address.slice(2)

/** Units that reached the recipient, as the events of the transaction show. */
const receivedUnits = (request: SolverRequest, logs: readonly Log[]): bigint => {
  const chain = requireChain(request.originChainId)
  const output = requireCurrency(chain.id, request.destinationCurrency)
  const source = output.metadata.isNative ? wrappedOn(chain)?.address : output.address
  const isReceived = ({ topics }: Log): boolean => {
    if (output.metadata.isNative) return topics[0] === withdrawalTopic
    const isWrap = topics[0] === depositTopic && endsIn(topics[1], request.recipient)
    return isWrap || (topics[0] === transferTopic && endsIn(topics[2], request.recipient))
  }
  return logs
    .filter((log) => log.address.toLowerCase() === source && isReceived(log))
    .reduce((sum, { data }) => sum + BigInt(data), 0n)
}

type SwapsDeps = { store: Store; rpcOf: (chainId: number) => Rpc; nowMs: () => number }

export const createSwaps = ({ store, rpcOf, nowMs }: SwapsDeps): Swaps => {
  const searched = new Map<number, number>()
  const notified = new Map<string, string>()

  const judge = async (id: string, hash: string): Promise<void> => {
    const request = store.find(id)
    if (request?.status !== 'waiting') return
    const receipt = (await rpcOf(request.originChainId).call('eth_getTransactionReceipt', [hash])) as Receipt
    if (!receipt) return
    const tx = { hash, chainId: request.originChainId, block: Number(receipt.blockNumber), atMs: nowMs() }
    const found = { ...request, inTxs: [tx] }
    if (receipt.status !== '0x1')
      store.save(withStatus({ ...found, failReason: 'TRANSACTION_REVERTED' }, 'failure', nowMs()))
    // A transaction that paid nothing was not this swap: an account without code accepts any call.
    else if (receivedUnits(request, receipt.logs) > 0n)
      store.save(withStatus({ ...found, outTxs: [tx] }, 'success', nowMs()))
  }

  const search = async (chainId: number, open: readonly { id: string }[]): Promise<void> => {
    const rpc = rpcOf(chainId)
    const head = Number(await rpc.call('eth_blockNumber'))
    const last = searched.get(chainId) ?? head - searchedBlocksMax
    if (head === last) return
    const from = Math.max(0, Math.min(last, head) - changedBlocksMax)
    const numbers = Array.from({ length: head - from + 1 }, (_, index) => from + index)
    const blocks = (await rpc.batch(
      numbers.map((number) => ({
        method: 'eth_getBlockByNumber',
        params: [`0x${number.toString(16)}`, true],
      })),
    )) as Block[]
    for (const { hash, input } of blocks.flatMap((block) => block?.transactions ?? [])) {
      const text = input.toLowerCase()
      for (const { id } of open) if (text.includes(id.slice(2))) await judge(id, hash)
    }
    searched.set(chainId, head)
  }

  return {
    follow: async () => {
      const open = store.waitingSwaps(nowMs() - graceMs)
      for (const [id, hash] of notified) {
        if (open.some((each) => each.id === id)) await judge(id, hash)
        else notified.delete(id)
      }
      const byChain = Map.groupBy(open, ({ chainId }) => chainId)
      await Promise.all([...byChain].map(([chainId, swaps]) => search(chainId, swaps)))
    },
    notify: (requestId, txHash) => {
      if (store.find(requestId)?.status === 'waiting' && /^0x[0-9a-fA-F]{64}$/.test(txHash))
        notified.set(requestId, txHash)
    },
  }
}
