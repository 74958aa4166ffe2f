import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'

type Counter = { kind: string; chain: string; signer: string; next: bigint | string }

/** Keeps a nonce that was used outside from being signed again, even if the signer is new to the database. */
export const raiseCounter = (tx: Tx, { kind, chain, signer, next }: Counter) =>
  query(
    tx,
    `insert into nonce_sequence as s (kind, chain, signer, next) values ($1, $2, $3, $4::bigint)
       on conflict (kind, signer, chain) do update set next = greatest(s.next, excluded.next)`,
    [kind, chain, signer, next],
  )
