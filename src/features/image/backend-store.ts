import { sha256 } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

export type KeyRow = {
  key_hash: Buffer
  expires_at: Date | null
  id: string
  name: string
  account_id: string | null
}

export const findKey = async (db: Queryable, keyId: string): Promise<KeyRow | undefined> => {
  const text = `select k.key_hash, k.expires_at, b.id, b.name, b.account_id
    from backend_key k join backend b on b.id = k.backend_id where k.id = $1`
  return (await query<KeyRow>(db, text, [keyId]))[0]
}

type Payer = { id: string; agent_id: string; suspended_at: Date | null }
export const payerOf = async (db: Queryable, userId: string): Promise<Payer | undefined> => {
  const text = 'select id, agent_id, suspended_at from app_user where id = $1'
  return (await query<Payer>(db, text, [userId]))[0]
}

type Claim = { backendId: string; key: string; userId: string; now: Date }
/** Returns the user that this idempotency key of the backend belongs to: the user of its first request. */
export const claimKey = async (db: Queryable, { backendId, key, userId, now }: Claim): Promise<string> => {
  const text = `insert into backend_request (backend_id, key_hash, user_id, at) values ($1, $2, $3, $4)
    on conflict (backend_id, key_hash) do update set at = greatest(backend_request.at, excluded.at)
    returning user_id`
  const hash = Buffer.from(sha256(key), 'hex')
  const [row] = await query<{ user_id: string }>(db, text, [backendId, hash, userId, now])
  return row!.user_id
}
