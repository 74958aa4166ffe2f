/** A server of the operator, and credits of users, written into the database of a gateway. */
import { randomUUID } from 'node:crypto'
import { makeBackendKey } from '#features/image/backend-key-format.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'

type Db = { query(text: string, values: unknown[]): Promise<unknown> }

/** Its key; the users that it names pay. */
export async function addBackend(db: Db): Promise<string> {
  const id = uuidv7(new Date(), systemRandom)
  const { key, hash, id: keyId } = makeBackendKey(systemRandom)
  await db.query('insert into backend (id, name, created_at) values ($1, $2, now())', [id, `test-${id}`])
  const text = 'insert into backend_key (id, backend_id, key_hash, created_at) values ($1, $2, $3, now())'
  await db.query(text, [keyId, id, hash])
  return key
}

/** Takes credits of the user until so many are left. */
export async function leaveCredits(db: Db, userId: string, credits: number): Promise<void> {
  const text = `select ledger_apply(jsonb_build_array(jsonb_build_object('move', 'transfer', 'key', $3::text, 'amountUnits',
      (a.avail - $2)::text, 'reason', 'test', 'debit', jsonb_build_object('owner', a.owner, 'asset', 'credits', 'subAccount', a.sub_account),
      'credit', jsonb_build_object('owner', ledger_system(), 'asset', 'credits', 'subAccount', 'external'))), null::uuid, 0, now())
    from account a where a.owner = $1 and a.asset = 'credits' and a.avail > $2`
  await db.query(text, [userId, credits, randomUUID()])
}
