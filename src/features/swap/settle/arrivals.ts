import { type Chain, type EvmChainRow, type SwapContracts, sameAddress } from '#kernel/money/chains.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { BlockTransaction, Evm, Log } from '#upstreams/evm/evm.ts'
import type { WrapLog } from '#upstreams/evm/swap-calls.ts'
import type { TransferLog } from '#upstreams/evm/token-calls.ts'
import { changesOf } from './balance-changes.ts'

/** One payment; `part` identifies it within its transaction. */
export type Gain = {
  token: string
  amountUnits: bigint
  part: string
  /** Set if this gain is the sum of the other gains of its token. */
  isSum?: true
}
export type Arrival = {
  /** The gains, each with its token. One transaction can pay several swaps, each by a transfer of its own. */
  gained: Gain[]
  isFinal: boolean
  block: number | null
  /** The time of the block; undefined if the chain does not record it. */
  at: Date | undefined
}

/** The clocks of chains and instances differ by less than this. */
const skewMs = 60_000

/**
 * How many of the newest blocks a fork can replace. On Solana only confirmed slots are read, which no fork replaces.
 */
const forkBlocksOf: Record<Chain['family'], number> = { evm: 4, solana: 0 }

export type Begin = {
  createdAt: Date
  family: Chain['family']
  /** The newest block or slot of the chain at the admission; undefined if its node did not answer. */
  head: number | undefined
  /** The time of the block `head`; undefined if it was not stored. */
  headAt: Date | undefined
}

/**
 * Whether the payment was made before the task, so that it cannot end the task. Block numbers decide; among the newest
 * blocks at the admission, which a fork may have replaced since, the times of the blocks decide. The clock of the
 * gateway decides only if a block number is unknown.
 */
export function isEarlier(
  { at, block }: Pick<Arrival, 'at' | 'block'>,
  { createdAt, family, head, headAt }: Begin,
): boolean {
  if (head === undefined || block === null)
    return at !== undefined && at.getTime() < createdAt.getTime() - skewMs
  const forkBlocks = forkBlocksOf[family]
  if (block < head - forkBlocks) return true
  return block <= head && at !== undefined && headAt !== undefined && at <= headAt
}

/**
 * Returns one gain for each payment that has no event number, and one for their sum. The sum is void once one of the
 * single payments was counted.
 */
export function unnumberedGains(token: string, units: readonly bigint[], name: string): Gain[] {
  const [only, ...others] = units
  if (only === undefined) return []
  if (others.length === 0) return [{ token, amountUnits: only, part: name }]
  const sum = units.reduce((total, each) => total + each, 0n)
  return [
    ...units.map((amountUnits, at): Gain => ({ token, amountUnits, part: `${name}:${at}` })),
    { token, amountUnits: sum, part: name, isSum: true },
  ]
}

export type Range = { minUnits: bigint; maxUnits: bigint }

/**
 * Returns the gains of one transaction that belong to a swap. The transaction may pay other swaps too, so only the
 * highest gain or sum within the range counts. If none fits, a lone gain counts whatever its amount, and of several
 * the ones too small for another swap.
 */
export function paymentsOf(
  { gained, free }: { gained: readonly Gain[]; free: readonly Gain[] },
  { minUnits, maxUnits }: Range,
): Gain[] {
  const [fitting] = free
    .filter(({ amountUnits }) => amountUnits >= minUnits && amountUnits <= maxUnits)
    .toSorted(
      (one, other) =>
        Number(one.isSum ?? false) - Number(other.isSum ?? false) ||
        Number(other.amountUnits > one.amountUnits) - Number(other.amountUnits < one.amountUnits),
    )
  if (fitting) return [fitting]
  if (gained.length === 1) return [...free]
  return free.filter(({ isSum, amountUnits }) => !isSum && amountUnits < minUnits)
}

export type ArrivalQuery = {
  chainId: string
  txHash: string
  owner: string
  /** The token that the swap expects; gains of the native coin are read only if the token is that coin. */
  token: string
  /** Where only balances show a gain, a gain above this is not attributed to the transaction. */
  unitsMax: bigint
}
export type Arrivals = {
  /** Resolves to the gains of a transaction; undefined while the chain does not show it, and if it failed. */
  of(query: ArrivalQuery): Promise<Arrival | undefined>
}
type ArrivalChain = Pick<
  Evm,
  'receipts' | 'headAt' | 'transfers' | 'transaction' | 'nativeBalances' | 'nativeGains' | 'blockTransactions'
> & {
  row: EvmChainRow
}
export type SolanaArrivals = { of(query: ArrivalQuery): Promise<Arrival | undefined> }

type ArrivalDeps = {
  /** Contracts whose payments have other causes than swaps. */
  otherPayers: readonly { chainId: string; address: string }[]
  evmOf(chainId: string): ArrivalChain | undefined
  solana: SolanaArrivals | undefined
  /** Returns the calls of a transaction that the gateway sent from the account; undefined for any other one. */
  ownCalls(batch: { txHash: string; account: string }): Promise<Pick<EvmCall, 'to' | 'value'>[] | undefined>
  wrapsOf(logs: readonly Log[], contracts: SwapContracts): WrapLog[]
}
type OwnBatches = Pick<ArrivalDeps, 'ownCalls' | 'wrapsOf'>

export const createArrivals = ({ evmOf, solana, otherPayers, ...own }: ArrivalDeps): Arrivals => ({
  async of(query) {
    const evm = evmOf(query.chainId)
    if (!evm) return solana?.of(query)
    const isOther = (payer: string) =>
      otherPayers.some(
        ({ chainId, address }) => chainId === query.chainId && sameAddress(evm.row, address, payer),
      )
    return evmArrival(evm, query, { ...own, isOther })
  },
})

async function evmArrival(
  chain: ArrivalChain,
  query: ArrivalQuery,
  { isOther, ...own }: OwnBatches & { isOther: (payer: string) => boolean },
): Promise<Arrival | undefined> {
  const { txHash, owner, token } = query
  const { row } = chain
  const { head, receipts } = await chain.receipts([txHash])
  const [receipt] = receipts
  if (!receipt?.success) return undefined
  const transfers = chain.transfers(receipt).filter(({ from }) => !isOther(from))
  const gained = gainsOf(transfers, (address) => sameAddress(row, address, owner))
  if (sameAddress(row, token, row.native.address)) {
    const units = await nativeGains(chain, query, { ...own, block: receipt.block })
    gained.push(...unnumberedGains(row.native.address, units, 'native'))
  }
  const { timestampSeconds, hash } = await chain.headAt(receipt.block)
  // A receipt from a block that was reorganised away proves nothing, but a node of a pool may still show it.
  if (hash.toLowerCase() !== receipt.blockHash.toLowerCase()) return undefined
  return {
    gained: gained.filter(({ amountUnits }) => amountUnits > 0n),
    isFinal: head.number - receipt.block + 1n >= BigInt(row.confirmations),
    block: Number(receipt.block),
    at: new Date(timestampSeconds * 1_000),
  }
}

/** Each transfer to the account is a gain. If its token also left the account, only the difference counts. */
function gainsOf(transfers: readonly TransferLog[], isOwn: (address: string) => boolean): Gain[] {
  const spent = new Map<string, bigint>()
  for (const { token, from, amountUnits } of transfers)
    if (isOwn(from)) spent.set(token, (spent.get(token) ?? 0n) + amountUnits)
  const received = transfers.filter(({ to }) => isOwn(to))
  const single = received.filter(({ token }) => !spent.has(token))
  const differences = [...spent].map(([token, spentUnits]): Gain => {
    const of = received.filter((each) => each.token === token)
    return { token, amountUnits: of.reduce((sum, each) => sum + each.amountUnits, -spentUnits), part: token }
  })
  return [
    ...single.map(({ token, amountUnits, index }): Gain => ({ token, amountUnits, part: String(index) })),
    ...differences,
  ]
}

type AtBlock = OwnBatches & { block: bigint }

/** Returns payments in the native coin: a plain payment names its value, and a trace shows calls that paid. */
async function nativeGains(chain: ArrivalChain, query: ArrivalQuery, at: AtBlock): Promise<bigint[]> {
  const { txHash, owner } = query
  const transaction = await chain.transaction(txHash)
  if (transaction?.to && sameAddress(chain.row, transaction.to, owner)) return [transaction.valueUnits]
  const traced = await chain.nativeGains(txHash, owner)
  if (traced) return traced
  const units = await balanceGain(chain, query, at)
  return units === undefined ? [] : [units]
}

/**
 * Compares balances around the block. That proves a payment only if the other transactions of the block are
 * explained.
 */
async function balanceGain(
  chain: ArrivalChain,
  { txHash, owner, unitsMax }: ArrivalQuery,
  { block, ...own }: AtBlock,
): Promise<bigint | undefined> {
  const others = (await chain.blockTransactions(block)).filter(
    (each) => each.hash !== txHash.toLowerCase() && mayMove(chain.row, each, owner),
  )
  const explained = await explainedUnits(chain, { others, owner, ...own })
  if (explained === undefined) return undefined
  const [before, after] = await chain.nativeBalances(owner, [block - 1n, block])
  const units = after! - before! - explained
  return units > 0n && units <= unitsMax ? units : undefined
}

const tokenTransfer = '0xa9059cbb'
/** How many other transactions in the block are examined; few of them concern one user. */
const othersMax = 16

/** Whether the transaction may move coins of the account. A contract needs the address of the account to pay it. */
function mayMove(
  row: EvmChainRow,
  { from, to, valueUnits, input }: BlockTransaction,
  owner: string,
): boolean {
  if (sameAddress(row, from, owner) || (to !== null && sameAddress(row, to, owner))) return true
  const isTokenTransfer = valueUnits === 0n && input.startsWith(tokenTransfer)
  return !isTokenTransfer && input.includes(owner.slice(2).toLowerCase())
}

type Others = OwnBatches & { others: readonly BlockTransaction[]; owner: string }

/** Sums the coins that plain payments and own batches moved; undefined if another transaction may have moved some. */
async function explainedUnits(
  chain: ArrivalChain,
  { others, owner, ownCalls, wrapsOf }: Others,
): Promise<bigint | undefined> {
  if (others.length === 0) return 0n
  if (others.length > othersMax) return undefined
  const { row } = chain
  const { receipts } = await chain.receipts(others.map(({ hash }) => hash))
  let sum = 0n
  for (const [at, { hash, to, input, valueUnits }] of others.entries()) {
    const receipt = receipts[at]
    const calls = await ownCalls({ txHash: hash, account: owner })
    const isPlain = to !== null && sameAddress(row, to, owner) && input === '0x'
    if (!receipt || (!calls && !isPlain)) return undefined
    if (!receipt.success) continue
    const wraps = calls && row.swaps ? wrapsOf(receipt.logs, row.swaps) : []
    const moved = calls && changesOf(row, { account: owner, calls, transfers: [], wraps })
    sum += moved ? (moved.get(row.native.address.toLowerCase()) ?? 0n) : valueUnits
  }
  return sum
}
