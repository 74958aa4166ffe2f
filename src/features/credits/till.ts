import type { Evm } from '#upstreams/evm/evm.ts'

/** A contract of ours that takes payments for credits on one chain. */
export type Till = {
  chain: Pick<Evm, 'row' | 'balances' | 'call' | 'finalBlock' | 'logs' | 'incomingTransfers'>
  address: string
  /** The most that one payment may have, which custody enforces as well. */
  maxUnits: bigint
}

export const rechargeKind = 'credits_recharge'
