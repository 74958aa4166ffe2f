import type { SolanaChainRow } from '#kernel/chains.ts'
import { createJsonRpc, type RpcCall } from '#kernel/json-rpc.ts'
import type { Net } from '#kernel/net.ts'
import {
  balanceOf,
  parseExactly,
  resultOf,
  slotOf,
  type TokenBalance,
  tokenPrograms,
  tokensOf,
} from './wire.ts'

export type { TokenBalance } from './wire.ts'
export type SolanaHoldings = { slot: bigint; lamports: bigint; tokens: TokenBalance[] }

export type Solana = {
  row: SolanaChainRow
  slot(signal?: AbortSignal): Promise<bigint>
  /** Native balance and token accounts of both token programs, summed per mint. */
  holdings(owner: string, signal?: AbortSignal): Promise<SolanaHoldings>
}

type Options = { row: SolanaChainRow; net: Net; timeoutMs?: number }

const confirmed = { commitment: 'confirmed' }

export function solana({ row, net, timeoutMs = 5_000 }: Options): Solana {
  const rpc = createJsonRpc({ url: row.rpcUrl, net, name: row.displayName, timeoutMs, parse: parseExactly })
  const callAll = async (calls: readonly RpcCall[], signal?: AbortSignal): Promise<unknown[]> =>
    (await rpc(calls, signal)).map(resultOf)

  return {
    row,
    async slot(signal) {
      const [slot] = await callAll([{ method: 'getSlot', params: [confirmed] }], signal)
      return slotOf(slot)
    },
    async holdings(owner, signal) {
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
    },
  }
}

function sumByMint(balances: readonly TokenBalance[]): TokenBalance[] {
  const byMint = new Map<string, TokenBalance>()
  for (const each of balances) {
    const known = byMint.get(each.mint)
    byMint.set(each.mint, known ? { ...each, amountUnits: known.amountUnits + each.amountUnits } : each)
  }
  return [...byMint.values()]
}
