import { systemRandom } from '#kernel/id.ts'
import type { EvmChainRow, Token } from '#kernel/money/chains.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { nonceKeyOf, nonceOf } from './batch.ts'
import { createBatchSearch, type FoundBatch, sequenceCall, sequenceIn } from './batch-search.ts'
import { createIncomingTransferSearch, type IncomingTransferSearch } from './incoming-transfers.ts'
import { type BlockRange, createLogSearch, type LogFilter, type LogSearch } from './log-search.ts'
import { blockNumberData, callsData, type View, type ViewResult } from './multicall-abi.ts'
import { type Balances, readBalances, readExecuted, readViews, type StateHead } from './multicall-views.ts'
import { type BlockTransaction, readBlockTransactions, readNativeGains } from './native-transfers.ts'
import { noReason } from './revert-reason.ts'
import { type BlockTag, callAll, callOne, createNode, type EvmNode, tagOf } from './rpc.ts'
import { needsTooMuchGas, resultOf, type Simulation, simulationOf } from './simulation.ts'
import { type TransferLog, transfersOf } from './token-calls.ts'
import { readTokenFacts } from './token-metadata.ts'
import { probeToken, type TokenProbe } from './token-probe.ts'
import {
  type Head,
  type Hex,
  headOf,
  hexQuantity,
  parseHex,
  parseQuantity,
  parseReceipt,
  type Receipt,
  type SendVerdict,
  sendVerdictOf,
  type Transaction,
  transactionOf,
} from './wire.ts'

export type { FoundBatch } from './batch-search.ts'
export type { IncomingTransfer } from './incoming-transfers.ts'
export type { Balances, StateHead } from './multicall-views.ts'
export type { BlockTransaction } from './native-transfers.ts'
export type { BlockTag } from './rpc.ts'
export type { Simulation } from './simulation.ts'
export type { ProbeStep, ProbeTrade, TokenProbe } from './token-probe.ts'
export type { Head, Hex, Log, Receipt, SendVerdict } from './wire.ts'

export type AccountState = {
  nonce: number
  delegate: string | null
  hasOtherCode: boolean
  head: Head
  /** How many batches of the given execution the account has run; 0 if no execution was given. */
  executedTimes: bigint
}

export type Evm = {
  row: EvmChainRow
  identify(): Promise<{ chainId: string; clientVersion: string }>
  head(signal?: AbortSignal): Promise<Head>
  headAt(block: bigint): Promise<Head>
  /** Returns the newest block that has the confirmations which the chain requires. */
  finalBlock(): Promise<bigint>
  balance(address: string): Promise<bigint>
  transactionCount(address: string, at: BlockTag): Promise<bigint>
  code(address: string): Promise<Hex>
  account(address: string, executionId?: string): Promise<AccountState>
  call(view: View, at?: BlockTag): Promise<Hex>
  /** Reads many views in one request, all at one block. */
  views(
    views: readonly View[],
    options?: { at?: bigint; signal?: AbortSignal },
  ): Promise<{ head: StateHead; results: ViewResult[] }>
  /** Returns an account's native and token balances at one block; undefined for a token that returns no balance. */
  balances(owner: string, tokens: readonly string[], signal?: AbortSignal): Promise<Balances>
  nativeBalances(owner: string, blocks: readonly bigint[]): Promise<bigint[]>
  /** Returns what a transaction's calls paid an account in native coins, or undefined if the node shows no calls. */
  nativeGains(txHash: string, owner: string): Promise<bigint[] | undefined>
  blockTransactions(block: bigint): Promise<BlockTransaction[]>
  /** Returns what the token's contract says about itself, or undefined if the address is no token. */
  tokenFacts(address: string): Promise<Token | undefined>
  /** Returns a transaction, or undefined while the node does not know it. */
  transaction(hash: string): Promise<Transaction | undefined>
  /** Simulates the calls in sequence from the account, without a signature. */
  simulate(account: string, calls: readonly EvmCall[]): Promise<Simulation>
  /** Returns how many batches of an execution the account has run, and the time of the block that was read. */
  executed(
    account: string,
    executionId: string,
    at: bigint,
  ): Promise<{ times: bigint; timestampSeconds: number }>
  /** Returns the account nonce of a batch of an execution after `sequence` earlier batches. */
  batchNonce(executionId: string, sequence?: number): bigint
  /** Returns the transaction that ran the batch with this nonce of an account, or undefined if the node shows none. */
  /** `known` is the hash of a transaction that is said to have run the batch; its block is searched first. */
  findBatch(account: string, nonce: bigint, known?: string): Promise<FoundBatch | undefined>
  transfers(receipt: Receipt): TransferLog[]
  /** Returns logs of an inclusive range. The search may end early if the node lags or limits a request's blocks. */
  logs(filter: LogFilter, blocks: BlockRange): Promise<LogSearch>
  /** Returns transfers of tokens to an account. The search may end early for the same causes as that of `logs`. */
  incomingTransfers(
    token: string | readonly string[],
    owner: string,
    blocks: BlockRange,
  ): Promise<IncomingTransferSearch>
  suggestedPriority(): Promise<{ head: Head; priorityWei: bigint }>
  sendRaw(raw: string): Promise<SendVerdict>
  receipts(hashes: readonly string[]): Promise<{ head: Head; receipts: (Receipt | undefined)[] }>
  /** Simulates a purchase, a transfer and a sale of a token, on a chain whose row has a router. */
  probe(token: string, signal?: AbortSignal): Promise<TokenProbe>
}

type Options = { row: EvmChainRow; net: Net }

const timeoutMs = 5_000
const delegationPrefix = '0xef0100'
const zeroAddress = '0x0000000000000000000000000000000000000000'

export function createEvm({ row, net }: Options): Evm {
  const node = createNode({ row, net, timeoutMs })
  const searchLogs = createLogSearch({ row, rpc: node.rpc })
  return {
    row,
    identify: () => identify(node),
    head: (signal) => readHead(node, 'latest', signal),
    headAt: (block) => readHead(node, block),
    finalBlock: () => readFinalBlock(node),
    balance: async (address) => parseQuantity(await callOne(node, 'eth_getBalance', [address, 'latest'])),
    transactionCount: async (address, at) =>
      parseQuantity(await callOne(node, 'eth_getTransactionCount', [address, tagOf(at)])),
    code: async (address) => parseHex(await callOne(node, 'eth_getCode', [address, 'latest'])),
    account: (address, executionId) => readAccount(node, address, executionId),
    call: async ({ to, data }, at = 'latest') =>
      parseHex(await callOne(node, 'eth_call', [{ to, data }, tagOf(at)])),
    views: (views, options) => readViews(node, views, options),
    balances: (owner, tokens, signal) => readBalances(node, owner, tokens, signal),
    nativeBalances: (owner, blocks) => readNativeBalances(node, owner, blocks),
    nativeGains: (txHash, owner) => readNativeGains(node, { txHash, owner, timeoutMs }),
    blockTransactions: (block) => readBlockTransactions(node, block),
    tokenFacts: (address) => readTokenFacts(node, address),
    transaction: async (hash) => transactionOf(await callOne(node, 'eth_getTransactionByHash', [hash])),
    simulate: (account, calls) => simulateCalls(node, account, calls),
    executed: (account, executionId, at) => readExecuted(node, account, executionId, at),
    batchNonce: nonceOf,
    findBatch: createBatchSearch({ node, searchLogs }),
    transfers: ({ logs }) => transfersOf(logs),
    logs: searchLogs,
    incomingTransfers: createIncomingTransferSearch(searchLogs),
    suggestedPriority: () => readSuggestedPriority(node),
    sendRaw: (raw) => sendRaw(node, raw),
    receipts: (hashes) => readReceipts(node, hashes),
    probe: (token, signal) => probeToken({ node, random: systemRandom }, token, signal),
  }
}

async function identify(node: EvmNode): Promise<{ chainId: string; clientVersion: string }> {
  const [id, version] = await callAll(node, [
    { method: 'eth_chainId', params: [] },
    { method: 'web3_clientVersion', params: [] },
  ])
  return { chainId: parseQuantity(id).toString(), clientVersion: String(version) }
}

const readHead = async (node: EvmNode, at: BlockTag, signal?: AbortSignal): Promise<Head> =>
  headOf(await callOne(node, 'eth_getBlockByNumber', [tagOf(at), false], signal))

async function readFinalBlock(node: EvmNode): Promise<bigint> {
  const { number } = await readHead(node, 'latest')
  const block = number - BigInt(node.row.confirmations - 1)
  return block > 0n ? block : 0n
}

async function readAccount(node: EvmNode, address: string, executionId?: string): Promise<AccountState> {
  const sequence = executionId === undefined ? [] : [sequenceCall(address, nonceKeyOf(executionId), 'latest')]
  const [nonce, code, block, executed] = await callAll(node, [
    { method: 'eth_getTransactionCount', params: [address, 'latest'] },
    { method: 'eth_getCode', params: [address, 'latest'] },
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ...sequence,
  ])
  const text = parseHex(code).toLowerCase()
  const delegate = text.startsWith(delegationPrefix) ? `0x${text.slice(delegationPrefix.length)}` : null
  const hasOtherCode = text.length > 2 && delegate === null
  return {
    nonce: Number(parseQuantity(nonce)),
    delegate,
    hasOtherCode,
    head: headOf(block),
    executedTimes: sequenceIn(executed),
  }
}

/**
 * The code that replaces an account's code in a simulation. It accepts payments of native coins, which the multicall
 * contract refuses, and runs every other call by the code of the multicall contract.
 */
const batchCode = (multicall: string): Hex =>
  `0x36600557005b363d3d373d3d3d363d73${multicall.slice(2).toLowerCase()}5af43d82803e903d91603157fd5bf3`

/**
 * Simulates the calls as the account's own, with its code replaced by `batchCode` and the gas of one transaction.
 */
async function simulateCalls(node: EvmNode, account: string, calls: readonly EvmCall[]): Promise<Simulation> {
  const { row } = node
  await node.multicallCode.get()
  const override = { [account]: { code: batchCode(row.multicall) } }
  const value = calls.reduce((sum, each) => sum + each.value, 0n)
  const transaction = (made: readonly EvmCall[], options: { allowFailure: boolean }) => ({
    from: value === 0n ? zeroAddress : account,
    to: account,
    gas: hexQuantity(row.gas.txMax),
    data: callsData(made, options),
    ...(value > 0n && { value: hexQuantity(value) }),
  })
  const blockOf = { to: row.multicall, value: 0n, data: blockNumberData }
  const measured = transaction(calls, { allowFailure: false })
  const attempt = transaction([...calls, blockOf], { allowFailure: true })
  const [tried, estimate] = await node.rpc([
    { method: 'eth_call', params: [attempt, 'latest', override] },
    { method: 'eth_estimateGas', params: [measured, 'latest', override] },
  ])
  const estimated = { answer: estimate!, data: measured.data }
  const simulation = simulationOf(row, calls.length, tried!, estimated)
  if (simulation.ok || simulation.reason !== noReason) return simulation
  // A call that runs out of gas gives no reason; with more gas, the call succeeds or gives its own reason.
  const { gas: _gas, ...unlimited } = attempt
  const [repeated] = await node.rpc([{ method: 'eth_call', params: [unlimited, 'latest', override] }])
  const again = simulationOf(row, calls.length, repeated!, estimated)
  return again.ok ? needsTooMuchGas(row, again.block) : again
}

async function readNativeBalances(
  node: EvmNode,
  owner: string,
  blocks: readonly bigint[],
): Promise<bigint[]> {
  const calls = blocks.map((block) => ({ method: 'eth_getBalance', params: [owner, tagOf(block)] }))
  return (await callAll(node, calls)).map(parseQuantity)
}

async function readSuggestedPriority(node: EvmNode): Promise<{ head: Head; priorityWei: bigint }> {
  const [block, tip] = await node.rpc([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_maxPriorityFeePerGas', params: [] },
  ])
  // Some nodes suggest no priority fee; the minimum of the chain applies then.
  const priorityWei = 'result' in tip! ? parseQuantity(tip.result) : 0n
  return { head: headOf(resultOf(node.row, block!)), priorityWei }
}

async function sendRaw(node: EvmNode, raw: string): Promise<SendVerdict> {
  const [answer] = await node.rpc([{ method: 'eth_sendRawTransaction', params: [raw] }])
  return sendVerdictOf(answer!)
}

async function readReceipts(
  node: EvmNode,
  hashes: readonly string[],
): Promise<{ head: Head; receipts: (Receipt | undefined)[] }> {
  const [block, ...found] = await callAll(node, [
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ...hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
  ])
  return { head: headOf(block), receipts: found.map(parseReceipt) }
}
