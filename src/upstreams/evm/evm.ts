import type { EvmChainRow } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net } from '#kernel/net.ts'
import type { EvmCall } from '#kernel/signer.ts'
import { type ArrivalSearch, type BlockRange, createArrivalSearch } from './arrivals.ts'
import {
  blockNumberData,
  blockTimeData,
  callsData,
  nativeBalanceData,
  nonceKeyOf,
  nonceOf,
  resultsOf,
  sequenceData,
  type View,
  type ViewResult,
  viewsData,
} from './batch.ts'
import { balanceData, type TransferLog, transfersOf } from './erc20.ts'
import { resultOf, type Simulation, simulationOf, wordOf } from './simulation.ts'
import {
  answersOf,
  type Head,
  type Hex,
  headOf,
  hexOf,
  hexQuantity,
  quantityOf,
  type Receipt,
  type RpcAnswer,
  type RpcCall,
  receiptOf,
  requestOf,
  type SendVerdict,
  sendVerdictOf,
} from './wire.ts'

export type { Arrival } from './arrivals.ts'
export type { Simulation } from './simulation.ts'
export type { Head, Hex, Log, Receipt, SendVerdict } from './wire.ts'
export type BlockTag = bigint | 'latest' | 'pending'

/** The state that calls ran on, by their own account. A node that lags behind its siblings is found out by it. */
export type StateHead = { number: bigint; timestampSeconds: number }
export type Balances = { head: StateHead; nativeUnits: bigint; tokens: (bigint | undefined)[] }
export type AccountState = { nonce: number; delegate: string | null; hasOtherCode: boolean; head: Head }

/** One chain, read and written over JSON-RPC. */
export type Evm = {
  row: EvmChainRow
  identify(): Promise<{ chainId: string; clientVersion: string }>
  head(signal?: AbortSignal): Promise<Head>
  headAt(block: bigint): Promise<Head>
  /** The newest block that is not expected to change any more. */
  finalBlock(): Promise<bigint>
  balance(address: string): Promise<bigint>
  transactionCount(address: string, at: BlockTag): Promise<bigint>
  account(address: string): Promise<AccountState>
  call(view: View, at?: BlockTag): Promise<Hex>
  /** Many views in one request; the block is the one all of them were read at. */
  views(
    views: readonly View[],
    options?: { at?: bigint; signal?: AbortSignal },
  ): Promise<{ head: StateHead; results: ViewResult[] }>
  /** The chain's own coin and tokens of one account, all at one block; undefined where a token does not answer. */
  balances(owner: string, tokens: readonly string[], signal?: AbortSignal): Promise<Balances>
  /** The calls as the account would make them, one after the other, without any signature. */
  simulate(account: string, calls: readonly EvmCall[]): Promise<Simulation>
  /** How often the account executed the batch of a task, 0 or 1, and the time of the block that says so. */
  executed(account: string, taskId: string, at: bigint): Promise<{ times: bigint; timestampSeconds: number }>
  /** The nonce under which the account executes the batch of a task. */
  batchNonce(taskId: string): bigint
  /** Tokens that came to an account and left it, as the logs of a receipt say. */
  transfers(receipt: Receipt): TransferLog[]
  /**
   * What came to an account of a token, in blocks of which both ends count. The search may end before the last of them:
   * where the node has not seen it, or takes only a few blocks at once.
   */
  arrivals(token: string, owner: string, blocks: BlockRange): Promise<ArrivalSearch>
  suggestedPriority(): Promise<{ head: Head; priorityWei: bigint }>
  sendRaw(raw: string): Promise<SendVerdict>
  receipts(hashes: readonly string[]): Promise<{ head: Head; receipts: (Receipt | undefined)[] }>
}

type Options = { row: EvmChainRow; net: Net; timeoutMs?: number }

const maxBytes = 4 * 1024 * 1024
const delegationPrefix = '0xef0100'
const zeroAddress = '0x0000000000000000000000000000000000000000'
const tagOf = (at: BlockTag) => (typeof at === 'bigint' ? hexQuantity(at) : at)

export function evm({ row, net, timeoutMs = 5_000 }: Options): Evm {
  async function rpc(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcAnswer[]> {
    const { status, body } = await net.fetch({
      url: row.rpcUrl,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: requestOf(calls),
      timeoutMs,
      maxBytes,
      ...(signal && { signal }),
    })
    // A page of a proxy says nothing of the call, whatever its status.
    if (status === 429 || status >= 500 || (status >= 400 && !body.includes('jsonrpc')))
      throw new Fault('unavailable', `The ${row.displayName} node answered with status ${status}`)
    return answersOf(body, calls.length)
  }

  const callAll = async (calls: readonly RpcCall[], signal?: AbortSignal): Promise<unknown[]> =>
    (await rpc(calls, signal)).map((answer) => resultOf(row, answer))

  const callOne = async (method: string, params: unknown[], signal?: AbortSignal): Promise<unknown> =>
    (await callAll([{ method, params }], signal))[0]

  let multicallCode: Promise<Hex> | undefined
  /** The views' contract runs at the account's own address, so that the calls are the account's. */
  const readMulticallCode = (): Promise<Hex> => {
    multicallCode ??= callOne('eth_getCode', [row.multicall, 'latest'])
      .then(hexOf)
      .catch((fault) => {
        multicallCode = undefined
        throw fault
      })
    return multicallCode
  }

  const call = async ({ to, data }: View, at: BlockTag = 'latest') =>
    hexOf(await callOne('eth_call', [{ to, data }, tagOf(at)]))

  const views: Evm['views'] = async (asked, { at, signal } = {}) => {
    const own = [
      { to: row.multicall, data: blockTimeData },
      { to: row.multicall, data: blockNumberData },
    ]
    const data = { to: row.multicall, data: viewsData([...asked, ...own]) }
    const tag = tagOf(at ?? 'latest')
    const calls: RpcCall[] = [{ method: 'eth_call', params: [data, tag] }]
    if (!row.callsSeeBlockNumber) calls.push({ method: 'eth_getBlockByNumber', params: [tag, false] })
    const [returned, named] = await callAll(calls, signal)
    const results = resultsOf(hexOf(returned))
    const [time, seen] = results.slice(asked.length).map(wordOf)
    const block = row.callsSeeBlockNumber ? undefined : headOf(named)
    const number = block?.number ?? seen
    const isOther = block !== undefined && Number(time) !== block.timestampSeconds
    if (time === undefined || number === undefined || isOther || (at !== undefined && number !== at))
      throw new Fault('unavailable', `The ${row.displayName} node answered from another block`)
    return { head: { number, timestampSeconds: Number(time) }, results: results.slice(0, asked.length) }
  }

  return {
    row,
    async identify() {
      const [id, version] = await callAll([
        { method: 'eth_chainId', params: [] },
        { method: 'web3_clientVersion', params: [] },
      ])
      return { chainId: quantityOf(id).toString(), clientVersion: String(version) }
    },
    head: async (signal) => headOf(await callOne('eth_getBlockByNumber', ['latest', false], signal)),
    async finalBlock() {
      const { number } = headOf(await callOne('eth_getBlockByNumber', ['latest', false]))
      const block = number - BigInt(row.confirmations - 1)
      return block > 0n ? block : 0n
    },
    headAt: async (block) => headOf(await callOne('eth_getBlockByNumber', [hexQuantity(block), false])),
    balance: async (address) => quantityOf(await callOne('eth_getBalance', [address, 'latest'])),
    transactionCount: async (address, at) =>
      quantityOf(await callOne('eth_getTransactionCount', [address, tagOf(at)])),

    async account(address) {
      const [nonce, code, block] = await callAll([
        { method: 'eth_getTransactionCount', params: [address, 'latest'] },
        { method: 'eth_getCode', params: [address, 'latest'] },
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
      ])
      const text = hexOf(code).toLowerCase()
      const delegate = text.startsWith(delegationPrefix) ? `0x${text.slice(delegationPrefix.length)}` : null
      const hasOtherCode = text.length > 2 && delegate === null
      return { nonce: Number(quantityOf(nonce)), delegate, hasOtherCode, head: headOf(block) }
    },

    call,
    views,
    async balances(owner, tokens, signal) {
      const { head, results } = await views(
        [
          { to: row.multicall, data: nativeBalanceData(owner) },
          ...tokens.map((to) => ({ to, data: balanceData(owner) })),
        ],
        signal && { signal },
      )
      const [native, ...units] = results.map(wordOf)
      if (native === undefined) throw new Fault('upstream_rejected', `${row.displayName} tells no balance`)
      return { head, nativeUnits: native, tokens: units }
    },

    async simulate(account, calls) {
      const override = { [account]: { code: await readMulticallCode() } }
      const value = calls.reduce((sum, each) => sum + each.value, 0n)
      const transaction = (made: readonly EvmCall[], allowFailure: boolean) => ({
        from: value === 0n ? zeroAddress : account,
        to: account,
        data: callsData(made, allowFailure),
        ...(value > 0n && { value: hexQuantity(value) }),
      })
      const blockOf = { to: row.multicall, value: 0n, data: blockNumberData }
      const [tried, measured] = await rpc([
        { method: 'eth_call', params: [transaction([...calls, blockOf], true), 'latest', override] },
        { method: 'eth_estimateGas', params: [transaction(calls, false), 'latest', override] },
      ])
      return simulationOf(row, calls.length, tried!, measured!)
    },

    async executed(account, taskId, at) {
      const { head, results } = await views([{ to: account, data: sequenceData(nonceKeyOf(taskId)) }], { at })
      const [found] = results
      // An account without code answers nothing: it executed nothing.
      const times = (found && wordOf(found)) ?? 0n
      if (found && !found.success) throw new Fault('unavailable', `${row.displayName} tells no sequence`)
      return { times, timestampSeconds: head.timestampSeconds }
    },

    batchNonce: nonceOf,
    transfers: ({ logs }) => transfersOf(logs),
    arrivals: createArrivalSearch({ row, rpc }),

    async suggestedPriority() {
      const [block, tip] = await rpc([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        { method: 'eth_maxPriorityFeePerGas', params: [] },
      ])
      // Some nodes do not know the method; the floor of the chain is used then.
      const priorityWei = 'result' in tip! ? quantityOf(tip.result) : 0n
      return { head: headOf(resultOf(row, block!)), priorityWei }
    },

    async sendRaw(raw) {
      const [answer] = await rpc([{ method: 'eth_sendRawTransaction', params: [raw] }])
      return sendVerdictOf(answer!)
    },

    async receipts(hashes) {
      const [block, ...found] = await callAll([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        ...hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
      ])
      return { head: headOf(block), receipts: found.map(receiptOf) }
    },
  }
}
