import type { Evm } from '#upstreams/evm/evm.ts'
import type { FoundTransfers, TransferSearch } from '#upstreams/solana/payments.ts'
import type { Solana } from '#upstreams/solana/solana.ts'

/** A till takes payments for credits on one chain: it is a contract of the platform or, on Solana, a wallet. */
export type Till = EvmTill | SvmTill
type TillOf<Family, Chain> = {
  family: Family
  chain: Chain
  address: string
  /** The most that one payment may have, which custody enforces as well. */
  maxUnits: bigint
}
export type EvmTill = TillOf<
  'evm',
  Pick<Evm, 'row' | 'balances' | 'call' | 'finalBlock' | 'logs' | 'incomingTransfers'>
>
export type SvmTill = TillOf<'solana', Pick<Solana, 'row' | 'balance'>> & {
  findTransfers(search: TransferSearch): Promise<FoundTransfers>
}

export const rechargeKind = 'credits_recharge'
