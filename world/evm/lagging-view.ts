/**
 * View of a node whose newest block is older than that of its siblings: requests are rewritten so that the real node
 * answers them at that block, and answers about later blocks are emptied.
 */
export type RpcCall = { id?: unknown; method?: unknown; params?: unknown }
export type RpcReply = { jsonrpc?: unknown; id?: unknown; result?: unknown; error?: unknown }

/** Position of the block parameter of each method that reads at a block. */
const blockParameter: Record<string, number> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_createAccessList: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
  eth_getProof: 2,
  eth_feeHistory: 1,
  eth_simulateV1: 1,
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getBlockTransactionCountByNumber: 0,
  eth_getTransactionByBlockNumberAndIndex: 0,
}

const readsBlock = new Set([
  'eth_getBlockByNumber',
  'eth_getBlockReceipts',
  'eth_getBlockTransactionCountByNumber',
  'eth_getTransactionByBlockNumberAndIndex',
])

const hex = (value: number) => `0x${value.toString(16)}`

const numberOf = (tag: unknown): number | undefined =>
  typeof tag === 'string' && /^0x[0-9a-f]+$/i.test(tag) && tag.length < 20 ? Number(tag) : undefined

const isHead = (tag: unknown) => tag === undefined || tag === null || tag === 'latest' || tag === 'pending'

type Rewritten = { call: RpcCall; reply: (reply: RpcReply) => RpcReply }

const unchanged = (reply: RpcReply) => reply
const replyWith =
  (outcome: { result: unknown } | { error: { code: number; message: string } }) =>
  ({ id }: RpcReply): RpcReply =>
    ({ jsonrpc: '2.0', id, ...outcome }) as RpcReply

/** Replaces the answer; the node still gets a call, so that each call has one answer. */
const answerLocally = (call: RpcCall, outcome: Parameters<typeof replyWith>[0]): Rewritten => ({
  call: { ...call, method: 'eth_chainId', params: [] },
  reply: replyWith(outcome),
})

const atBlock = (call: RpcCall, method: string, position: number, head: number): Rewritten => {
  const params = Array.isArray(call.params) ? [...(call.params as unknown[])] : []
  const tag = params[position]
  if (isHead(tag)) {
    while (params.length < position) params.push(null)
    params[position] = hex(head)
    return { call: { ...call, params }, reply: unchanged }
  }
  const number = numberOf(tag)
  if (number === undefined || number <= head) return { call, reply: unchanged }
  return readsBlock.has(method)
    ? answerLocally(call, { result: null })
    : answerLocally(call, { error: { code: -32000, message: 'header not found' } })
}

const logs = (call: RpcCall, head: number): Rewritten => {
  const [filter, ...others] = (Array.isArray(call.params) ? call.params : []) as Record<string, unknown>[]
  if (!filter || typeof filter !== 'object' || 'blockHash' in filter) return { call, reply: unchanged }
  const boundOf = (tag: unknown) => (isHead(tag) ? head : numberOf(tag))
  const from = boundOf(filter.fromBlock)
  const to = boundOf(filter.toBlock)
  if (from !== undefined && (from > head || (to !== undefined && from > to)))
    return answerLocally(call, { result: [] })
  const bounds = {
    fromBlock: from === undefined ? filter.fromBlock : hex(from),
    toBlock: to === undefined ? filter.toBlock : hex(Math.min(to, head)),
  }
  return { call: { ...call, params: [{ ...filter, ...bounds }, ...others] }, reply: unchanged }
}

type InBlock = { blockNumber?: unknown; number?: unknown }

const isAfterHead = (head: number, value: unknown): value is InBlock => {
  if (typeof value !== 'object' || value === null) return false
  const { blockNumber, number } = value as InBlock
  const at = numberOf(blockNumber ?? number)
  return at !== undefined && at > head
}

/** The transaction has reached this node's mempool, and its block has not. */
const asPending = (transaction: object) => ({
  ...transaction,
  blockHash: null,
  blockNumber: null,
  transactionIndex: null,
})

const replyAt =
  (head: number, shown: (value: object) => unknown) =>
  (reply: RpcReply): RpcReply =>
    isAfterHead(head, reply.result) ? { ...reply, result: shown(reply.result) } : reply

/** One call as a node whose newest block is `head` would answer it. */
export const viewAtHead = (call: RpcCall, head: number): Rewritten => {
  const { method } = call
  if (typeof method !== 'string') return { call, reply: unchanged }
  if (method === 'eth_blockNumber') return answerLocally(call, { result: hex(head) })
  if (method === 'eth_getLogs') return logs(call, head)
  if (method === 'eth_getTransactionReceipt' || method === 'eth_getBlockByHash')
    return { call, reply: replyAt(head, () => null) }
  if (method === 'eth_getTransactionByHash') return { call, reply: replyAt(head, asPending) }
  const position = blockParameter[method]
  return position === undefined ? { call, reply: unchanged } : atBlock(call, method, position, head)
}

/** When each head was first seen, and the head that a node with a given lag shows. */
export const headHistory = (blocksMax: number) => {
  let heads: { number: number; atMs: number }[] = []
  return {
    record: (number: number, nowMs: number) => {
      const last = heads.at(-1)
      // Every node knows the first head; a lower one is a chain that was restored from its last save.
      if (!last || number < last.number) heads = [{ number, atMs: Number.NEGATIVE_INFINITY }]
      else if (number > last.number) heads.push({ number, atMs: nowMs })
      if (heads.length > blocksMax + 1) heads.shift()
    },
    /** Undefined when the node has caught up. */
    laggedHead: (nowMs: number, lagMs: number): number | undefined => {
      const newest = heads.at(-1)
      if (!newest) return undefined
      const shown = heads.findLast(({ atMs }) => atMs <= nowMs - lagMs) ?? heads[0]
      const number = Math.max(shown?.number ?? newest.number, newest.number - blocksMax)
      return number < newest.number ? number : undefined
    },
  }
}
