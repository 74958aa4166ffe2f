import type { Transactions } from '#durable/transactions.ts'
import type { NonceSequence, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

/** One nonce counter per signer. A sequence without gaps gives a nonce in the transaction that stores its signature. */
export type NonceSequences = {
  /** Inserts a missing counter; an existing one keeps its value. */
  ensure(nonceSequence: NonceSequence, start: bigint): Promise<void>
  nextNonces(kind: string, chain: string): Promise<Map<string, bigint>>
  /** Takes the next nonce, at least `minNonce`, in the transaction that stores its signature. */
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
  async nextNonces(kind, chain) {
    const rows = await query<{ signer: string; next: bigint }>(
      pool,
      'select signer, next from nonce_sequence where kind = $1 and chain = $2',
      [kind, chain],
    )
    return new Map(rows.map(({ signer, next }) => [signer, BigInt(next)]))
  },
  take: takeNonce,
})

export const takeNonce = (tx: Tx, nonceSequence: NonceSequence, minNonce = 0n): Promise<bigint> =>
  takeNonces(tx, nonceSequence, { minNonce, count: 1 })

/** Takes `count` consecutive nonces, and returns the first of them. */
export async function takeNonces(
  tx: Tx,
  nonceSequence: NonceSequence,
  { minNonce, count }: { minNonce: bigint; count: number },
): Promise<bigint> {
  const { kind, chain, signer } = nonceSequence
  const [row] = await query<{ nonce: string | bigint }>(
    tx,
    `update nonce_sequence set next = greatest(next, $4::bigint) + $5
     where kind = $1 and chain = $2 and signer = $3 returning next - $5 as nonce`,
    [kind, chain, signer, minNonce, count],
  )
  return nonceOf(row, nonceSequence)
}

/**
 * Takes a nonce of a sequence that may have gaps, in a separate statement. Nothing waits for its commit to reach
 * the disk, because the commit that stores the signature is written after it.
 */
export async function takeNonceAlone(
  pool: Transactions['pool'],
  nonceSequence: NonceSequence,
  minNonce = 0n,
): Promise<bigint> {
  const { kind, chain, signer } = nonceSequence
  const [row] = await query<{ nonce: string | bigint | null }>(
    pool,
    'select nonce_take_alone($1, $2, $3, $4) as nonce',
    [kind, chain, signer, minNonce],
  )
  return nonceOf(row, nonceSequence)
}

function nonceOf(
  row: { nonce: string | bigint | null } | undefined,
  { kind, chain, signer }: NonceSequence,
): bigint {
  if (row?.nonce == null) throw new Error(`nonce sequence ${kind} ${chain} ${signer} does not exist`)
  return BigInt(row.nonce)
}
