import type { SolanaChainRow } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net } from '#kernel/net.ts'
import {
  balanceOf,
  type RpcCall,
  requestOf,
  resultsOf,
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

const maxBytes = 4 * 1024 * 1024
const confirmed = { commitment: 'confirmed' }

export function solana({ row, net, timeoutMs = 5_000 }: Options): Solana {
  async function callAll(calls: readonly RpcCall[], signal?: AbortSignal): Promise<unknown[]> {
    const { status, body } = await net.fetch({
      url: row.rpcUrl,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: requestOf(calls),
      timeoutMs,
      maxBytes,
      ...(signal && { signal }),
    })
    if (status === 429 || status >= 500)
      throw new Fault('unavailable', `The Solana node answered with status ${status}`)
    if (status >= 400)
      throw new Fault('upstream_rejected', `The Solana node rejected the request with status ${status}`)
    return resultsOf(body, calls.length)
  }

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
