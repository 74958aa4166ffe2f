import type { SolanaChainRow } from '#kernel/money/chains.ts'
import { createJsonRpc, type JsonRpc, type RpcAnswer, type RpcCall } from '#kernel/wire/json-rpc.ts'
import { repeatRateLimited } from '#kernel/wire/json-rpc-retry.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { lookupTableOf, tokenAccountIn } from './account-layout.ts'
import { createAddressHistory, type ReadHistory } from './address-history.ts'
import type { LookupTable } from './message.ts'
import { type InspectedMint, inspectMint } from './mint.ts'
import { deriveTokenAccount } from './program-address.ts'
import { tokenPrograms } from './program-ids.ts'
import {
  type Commitment,
  type LandedTransaction,
  landedOf,
  parseStatuses,
  recentPricesOf,
  type SendVerdict,
  type Simulation,
  type StatusReading,
  sendVerdictOf,
  simulationOf,
} from './transaction-replies.ts'
import {
  type Account,
  balanceOf,
  broken,
  type ChainHeight,
  chainHeightOf,
  type LatestBlockhash,
  latestBlockhashOf,
  parseAccount,
  parseContext,
  parseExactly,
  parseList,
  parseUnits,
  resultOf,
  slotOf,
  type TokenBalance,
  tokensOf,
} from './wire.ts'

export type { HistoryOptions } from './address-history.ts'
export type { InspectedMint, MintExtensions, MintFacts } from './mint.ts'
export type {
  Commitment,
  HistoryEntry,
  LandedTransaction,
  SendVerdict,
  SignatureStatus,
  Simulation,
  StatusReading,
} from './transaction-replies.ts'
export type { Account, ChainHeight, LatestBlockhash, TokenBalance } from './wire.ts'
export type SolanaHoldings = { slot: bigint; lamports: bigint; tokens: TokenBalance[] }

/**
 * The simulation of a transaction, and the same accounts after the simulation of a baseline transaction that changes
 * nothing.
 */
export type Trial = {
  simulation: Simulation
  baseline: Simulation
  /** The fee that the node would charge, or undefined if the node does not know the blockhash. */
  feeLamports: bigint | undefined
}
export type TrialRequest = {
  /** The transaction in base64; it needs no valid signature. */
  raw: string
  /** A transaction of the same fee payer that does nothing. */
  baselineRaw: string
  /** The message in base64. */
  message: string
  accounts: readonly string[]
  /** A node that has not reached this slot answers with a failure. */
  minSlot?: bigint | undefined
}

export type Solana = {
  row: SolanaChainRow
  slot(signal?: AbortSignal): Promise<bigint>
  /** Returns the native balance and the token accounts of both token programs, summed per mint. */
  holdings(owner: string, signal?: AbortSignal): Promise<SolanaHoldings>
  /** Returns the units that the owner's key can transfer: of the native coin, or of the owner's associated account. */
  balance(owner: string, mint: string, isNative: boolean, at?: StateAt): Promise<bigint>
  /** Returns one node's height at the commitment; another node may be ahead or behind. */
  height(commitment: Commitment): Promise<ChainHeight>
  latestBlockhash(): Promise<LatestBlockhash>
  accounts(addresses: readonly string[]): Promise<{ slot: bigint; accounts: (Account | undefined)[] }>
  /** Returns lookup tables, and leaves out those that are missing or being closed. */
  lookupTables(addresses: readonly string[]): Promise<LookupTable[]>
  simulate(request: TrialRequest): Promise<Trial>
  /** Sends a transaction without the node's checks; a look-up shows whether it landed. */
  send(raw: string): Promise<SendVerdict>
  /** `searchHistory` also searches beyond the newest blocks, which is expensive for the node. */
  statuses(signatures: readonly string[], options?: { searchHistory: boolean }): Promise<StatusReading>
  transaction(
    signature: string,
    commitment: Exclude<Commitment, 'processed'>,
  ): Promise<LandedTransaction | undefined>
  /** Returns transactions that name the address, newest first: those before a signature, or the newest ones. */
  history: ReadHistory
  /** Returns the lamports that an account with this many bytes of data must hold. */
  rentLamports(bytes: number): Promise<bigint>
  /** Returns the micro-lamports per compute unit that recent blocks took for these accounts. */
  recentPrices(accounts: readonly string[]): Promise<bigint[]>
  /** Reads a mint, what it allows those who control it, and its largest holders. */
  inspectMint(mint: string, signal?: AbortSignal): Promise<InspectedMint>
}

/** A node that has not reached the slot answers with a failure. */
export type StateAt = { commitment: Commitment; minSlot: bigint }

type Options = { row: SolanaChainRow; net: Net }
type Node = {
  rpc: JsonRpc
  call(call: RpcCall, signal?: AbortSignal): Promise<unknown>
  callAll(calls: readonly RpcCall[], signal?: AbortSignal): Promise<unknown[]>
}

const timeoutMs = 5_000
const confirmed = { commitment: 'confirmed' }
/** The protocol limits how many signatures or accounts one call may name. */
export const statusesMax = 256
const accountsMax = 100
const priceAccountsMax = 128

export function createSolana({ row, net }: Options): Solana {
  const single = createJsonRpc({
    url: row.rpcUrl,
    net,
    name: row.displayName,
    timeoutMs,
    parse: parseExactly,
  })
  const rpc = repeatRateLimited(single, { timeoutMs })
  const node: Node = {
    rpc,
    callAll: async (calls, signal) => (await rpc(calls, signal)).map(resultOf),
    call: async (call, signal) => resultOf(...((await rpc([call], signal)) as [RpcAnswer])),
  }
  const { call } = node
  return {
    row,
    slot: async (signal) => slotOf(await call({ method: 'getSlot', params: [confirmed] }, signal)),
    holdings: (owner, signal) => readHoldings(node, owner, signal),
    balance: (owner, mint, isNative, at) => readBalance(node, { owner, mint, isNative, at }),
    height: async (commitment) =>
      chainHeightOf(await call({ method: 'getEpochInfo', params: [{ commitment }] })),
    latestBlockhash: () => readLatestBlockhash(node),
    accounts: (addresses) => readAccounts(node, addresses),
    lookupTables: (addresses) => readLookupTables(node, addresses),
    simulate: (request) => simulateTransaction(node, request),
    send: (raw) => sendTransaction(node, raw),
    statuses: (signatures, options) => readStatuses(node, signatures, options),
    transaction: (signature, commitment) => readTransaction(node, signature, commitment),
    history: createAddressHistory(rpc),
    rentLamports: async (bytes) =>
      parseUnits(await call({ method: 'getMinimumBalanceForRentExemption', params: [bytes] })),
    recentPrices: async (accounts) => {
      const params = [accounts.slice(0, priceAccountsMax)]
      const [answer] = await rpc([{ method: 'getRecentPrioritizationFees', params }])
      return recentPricesOf(answer!)
    },
    inspectMint: (mint, signal) => inspectMint(rpc, mint, signal),
  }
}

async function readHoldings({ callAll }: Node, owner: string, signal?: AbortSignal): Promise<SolanaHoldings> {
  const [native, ...accounts] = await callAll(
    [
      { method: 'getBalance', params: [owner, confirmed] },
      ...tokenPrograms.map((programId) => ({
        method: 'getTokenAccountsByOwner',
        params: [owner, { programId }, { encoding: 'jsonParsed', ...confirmed }],
      })),
    ],
    signal,
  )
  const listed = accounts.flatMap((result, index) => tokensOf(result, tokenPrograms[index]!))
  return { ...balanceOf(native), tokens: sumByMint(listed) }
}

type BalanceQuery = { owner: string; mint: string; isNative: boolean; at: StateAt | undefined }

/** Reads only the owner's own or associated account, because anybody can make an owner hold thousands of tokens. */
async function readBalance(node: Node, { owner, mint, isNative, at }: BalanceQuery): Promise<bigint> {
  if (isNative) return (await readAccounts(node, [owner], at)).accounts[0]?.lamports ?? 0n
  const addresses = tokenPrograms.map((program) => deriveTokenAccount(owner, mint, program))
  const { accounts } = await readAccounts(node, addresses, at)
  return accounts.reduce((sum, account) => {
    const held = account && tokenAccountIn(account)
    return held?.owner === owner && held.mint === mint ? sum + held.amountUnits : sum
  }, 0n)
}

function sumByMint(balances: readonly TokenBalance[]): TokenBalance[] {
  const byMint = new Map<string, TokenBalance>()
  for (const each of balances) {
    const known = byMint.get(each.mint)
    byMint.set(each.mint, known ? { ...each, amountUnits: known.amountUnits + each.amountUnits } : each)
  }
  return [...byMint.values()]
}

/** A blockhash is valid for this many blocks. */
const validBlocks = 150n
/** The nodes behind one URL may differ in height by at most this many blocks. */
const lagBlocksMax = 150n

/**
 * Returns a blockhash. Its last valid block height is at least the protocol's lifetime ahead: if the gateway gave up a
 * transaction too early, both that transaction and its successor could land.
 */
async function readLatestBlockhash({ callAll }: Node): Promise<LatestBlockhash> {
  const [latest, epoch] = await callAll([
    { method: 'getLatestBlockhash', params: [confirmed] },
    { method: 'getEpochInfo', params: [confirmed] },
  ])
  const { height } = chainHeightOf(epoch)
  const read = latestBlockhashOf(latest)
  const least = height + validBlocks
  if (read.lastValidBlockHeight > least + lagBlocksMax) throw broken('a blockhash that is valid for too long')
  return read.lastValidBlockHeight < least ? { ...read, lastValidBlockHeight: least } : read
}

const accountsCall = (addresses: readonly string[], config: object): RpcCall => ({
  method: 'getMultipleAccounts',
  params: [addresses, { encoding: 'base64', ...config }],
})

function accountsOf(result: unknown, count: number) {
  const { slot, value } = parseContext(result)
  return { slot, accounts: parseList(value, count).map(parseAccount) }
}

function assertCount(count: number, max: number): void {
  if (count > max) throw new RangeError(`a node reads at most ${max} of them at once`)
}

async function readAccounts({ call }: Node, addresses: readonly string[], at?: StateAt) {
  assertCount(addresses.length, accountsMax)
  const config = at ? { commitment: at.commitment, minContextSlot: Number(at.minSlot) } : confirmed
  return accountsOf(await call(accountsCall(addresses, config)), addresses.length)
}

async function readLookupTables(node: Node, addresses: readonly string[]): Promise<LookupTable[]> {
  if (addresses.length === 0) return []
  const { accounts } = await readAccounts(node, addresses)
  return accounts.flatMap((account, index) =>
    account ? (lookupTableOf(addresses[index]!, account) ?? []) : [],
  )
}

/**
 * Sends one request, so that one node answers it. Accounts that are read separately would be of another moment,
 * because the transactions of all users change the fee payer's balance.
 */
async function simulateTransaction(
  { callAll, rpc }: Node,
  { raw, baselineRaw, message, accounts, minSlot }: TrialRequest,
): Promise<Trial> {
  assertCount(accounts.length, accountsMax)
  const newest = {
    commitment: 'processed',
    ...(minSlot !== undefined && { minContextSlot: Number(minSlot) }),
  }
  const config = {
    encoding: 'base64',
    sigVerify: false,
    replaceRecentBlockhash: true,
    accounts: { encoding: 'base64', addresses: accounts },
    ...newest,
  }
  const simulate = (transaction: string): RpcCall => ({
    method: 'simulateTransaction',
    params: [transaction, config],
  })
  const [[baseline, simulated], [fee]] = await Promise.all([
    callAll([simulate(baselineRaw), simulate(raw)]),
    rpc([{ method: 'getFeeForMessage', params: [message, newest] }]),
  ])
  const feeValue = 'result' in fee! ? parseContext(fee.result).value : null
  return {
    simulation: simulationOf(simulated, accounts.length),
    baseline: simulationOf(baseline, accounts.length),
    feeLamports: feeValue === null ? undefined : parseUnits(feeValue),
  }
}

async function sendTransaction({ rpc }: Node, raw: string): Promise<SendVerdict> {
  const params = [raw, { encoding: 'base64', skipPreflight: true }]
  const [answer] = await rpc([{ method: 'sendTransaction', params }])
  return sendVerdictOf(answer!)
}

async function readStatuses(
  { call }: Node,
  signatures: readonly string[],
  { searchHistory } = { searchHistory: false },
): Promise<StatusReading> {
  assertCount(signatures.length, statusesMax)
  const params = [signatures, { searchTransactionHistory: searchHistory }]
  return parseStatuses(await call({ method: 'getSignatureStatuses', params }), signatures.length)
}

async function readTransaction(
  { call }: Node,
  signature: string,
  commitment: Commitment,
): Promise<LandedTransaction | undefined> {
  const config = { encoding: 'base64', maxSupportedTransactionVersion: 0, commitment }
  return landedOf(await call({ method: 'getTransaction', params: [signature, config] }))
}
