import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { FoundTransfers, TransferSearch } from '#upstreams/solana/incoming-transfers.ts'
import type { Solana } from '#upstreams/solana/solana.ts'

/** A till takes payments for credits on one chain: it is a contract of the platform or, on Solana, a wallet. */
export type Till = EvmTill | SvmTill
type TillOf<Family, Chain> = {
  family: Family
  chain: Chain
  address: string
  /** The maximum amount of one payment, which custody enforces as well. */
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

/** For this long, the answer of a contract that it takes payments is reused. */
const codeFreshMs = 600_000

class NoTill extends Error {}

/** Returns a check whether a contract is a till, by its own answer; a contract that is a till stays one. */
export function createTillCheck(
  { isTillData, isTrueWord }: { isTillData: string; isTrueWord: (word: string) => boolean },
  tillsMax: number,
) {
  const known = createTtlCache<true>({ ttlMs: codeFreshMs, entriesMax: tillsMax, nowMs: monotonicMs })
  return ({ chain, address }: EvmTill): Promise<boolean> =>
    known
      .get(chain.row.id, async () => {
        if (!isTrueWord(await chain.call({ to: address, data: isTillData }))) throw new NoTill()
        return true
      })
      .catch((error: unknown) => {
        if (error instanceof NoTill) return false
        throw error
      })
}
