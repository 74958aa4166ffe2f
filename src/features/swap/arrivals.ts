import type { EvmChainRow } from '#kernel/chains.ts'
import { sameAddress } from '#kernel/chains.ts'
import type { Evm } from '#upstreams/evm/evm.ts'

/** What reached an account with a transaction, as its chain shows it. */

export type Arrival = {
  /** Units by token address of the chain table; only what the account gained. */
  gained: { token: string; amountUnits: bigint }[]
  /** The chain considers the transaction final. */
  isFinal: boolean
  block: number | null
}
export type ArrivalQuery = {
  chainId: string
  txHash: string
  owner: string
  /** The token that is expected: the native coin is looked for only then. */
  token: string
}
export type Arrivals = {
  /** Undefined while the chain does not show the transaction, or where it failed. */
  of(query: ArrivalQuery): Promise<Arrival | undefined>
}
type ArrivalChain = Pick<Evm, 'receipts' | 'transfers' | 'transaction' | 'nativeBalances'> & {
  row: EvmChainRow
}
/** Balances of an account before and after a transaction on Solana. */
export type SolanaArrivals = { of(query: ArrivalQuery): Promise<Arrival | undefined> }

type ArrivalDeps = {
  evmOf(chainId: string): ArrivalChain | undefined
  solana: SolanaArrivals | undefined
}

export const createArrivals = ({ evmOf, solana }: ArrivalDeps): Arrivals => ({
  async of(query) {
    const evm = evmOf(query.chainId)
    return evm ? evmArrival(evm, query) : solana?.of(query)
  },
})

async function evmArrival(
  chain: ArrivalChain,
  { txHash, owner, token }: ArrivalQuery,
): Promise<Arrival | undefined> {
  const { row } = chain
  const { head, receipts } = await chain.receipts([txHash])
  const [receipt] = receipts
  if (!receipt?.success) return undefined
  const gained = new Map<string, bigint>()
  for (const transfer of chain.transfers(receipt)) {
    const change =
      (sameAddress(row, transfer.to, owner) ? transfer.amountUnits : 0n) -
      (sameAddress(row, transfer.from, owner) ? transfer.amountUnits : 0n)
    gained.set(transfer.token, (gained.get(transfer.token) ?? 0n) + change)
  }
  if (sameAddress(row, token, row.native.address)) {
    const units = await nativeGain(chain, { txHash, owner, block: receipt.block })
    gained.set(row.native.address, units)
  }
  return {
    gained: [...gained]
      .filter(([, amountUnits]) => amountUnits > 0n)
      .map(([address, amountUnits]) => ({ token: address, amountUnits })),
    isFinal: head.number - receipt.block + 1n >= BigInt(row.confirmations),
    block: Number(receipt.block),
  }
}

type NativeQuery = { txHash: string; owner: string; block: bigint }

/** A plain payment names its value; where a contract paid, the balances of the block show it. */
async function nativeGain(chain: ArrivalChain, { txHash, owner, block }: NativeQuery): Promise<bigint> {
  const transaction = await chain.transaction(txHash)
  if (transaction?.to && sameAddress(chain.row, transaction.to, owner)) return transaction.valueUnits
  const [before, after] = await chain.nativeBalances(owner, [block - 1n, block])
  return after! > before! ? after! - before! : 0n
}
