import type { NonceSequence, Tx } from '#kernel/task.ts'
import { builder, fetchAll, query } from '#store/query.ts'
import type { Transactions } from './transactions.ts'

/** One nonce counter per signer. A nonce is taken only in the transaction that stores its signature. */
export type NonceSequences = {
  /** Inserts a missing counter; an existing one keeps its value. */
  ensure(nonceSequence: NonceSequence, start: bigint): Promise<void>
  /** The number of unresolved transactions by signer, from which the least busy signer is chosen. */
  inFlight(kind: string, chain: string): Promise<Map<string, number>>
  peek(nonceSequence: NonceSequence): Promise<bigint | undefined>
  /** The next nonce, at least `minNonce`, in the transaction that stores its signature. */
  take(tx: Tx, nonceSequence: NonceSequence, minNonce: bigint): Promise<bigint>
}

export const createNonceSequences = ({ pool }: Transactions): NonceSequences => ({
  async ensure({ kind, chain, signer }, start) {
    await query(
      pool,
      'insert into nonce_sequence (kind, chain, signer, next) values ($1, $2, $3, $4) on conflict do nothing',
      [kind, chain, signer, start],
    )
  },
  async inFlight(kind, chain) {
    const rows = await query<{ signer: string; n: number }>(
      pool,
      `select c.signer, count(*)::integer as n from tx_attempt c join effect e on e.id = c.effect_id
       where c.nonce_kind = $1 and c.chain = $2 and e.status in ('prepared', 'sent', 'unknown') group by c.signer`,
      [kind, chain],
    )
    return new Map(rows.map(({ signer, n }) => [signer, n]))
  },
  async peek({ kind, chain, signer }) {
    const [row] = await fetchAll(
      pool,
      builder
        .selectFrom('nonce_sequence')
        .select('next')
        .where('kind', '=', kind)
        .where('chain', '=', chain)
        .where('signer', '=', signer),
    )
    return row && BigInt(row.next)
  },
  take: takeNonce,
})

export async function takeNonce(
  tx: Tx,
  { kind, chain, signer }: NonceSequence,
  minNonce = 0n,
): Promise<bigint> {
  const [row] = await query<{ nonce: string | bigint }>(
    tx,
    `update nonce_sequence set next = greatest(next, $4::bigint) + 1
     where kind = $1 and chain = $2 and signer = $3 returning next - 1 as nonce`,
    [kind, chain, signer, minNonce],
  )
  if (!row) throw new Error(`nonce sequence ${kind} ${chain} ${signer} does not exist`)
  return BigInt(row.nonce)
}
