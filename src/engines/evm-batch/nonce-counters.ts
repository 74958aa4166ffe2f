import { builder, fetchAll, type Queryable } from '#store/query.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { nonceKind } from './sponsor-load.ts'

export const counterKey = (chain: string, signer: string): string => `${chain} ${signer}`

export async function readCounters(db: Queryable, ports: readonly EvmPort[]): Promise<Map<string, bigint>> {
  const statement = builder
    .selectFrom('nonce_sequence')
    .select(['chain', 'signer', 'next'])
    .where('kind', '=', nonceKind)
    .where('chain', '=', (eb) => eb.fn.any(eb.val(ports.map(({ chain }) => chain.row.id))))
  const rows = await fetchAll(db, statement)
  return new Map(rows.map(({ chain, signer, next }) => [counterKey(chain, signer), BigInt(next)]))
}
