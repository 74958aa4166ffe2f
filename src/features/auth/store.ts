import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { builder, fetchAll, fetchOne, jsonText, type Queryable, query } from '#store/query.ts'
import type { ChallengeRow, UserRow } from '#store/tables/identity.ts'

export const agentOfKey = async (db: Queryable, publicKey: Uint8Array): Promise<string | undefined> => {
  const row = await fetchOne(
    db,
    builder
      .selectFrom('agent_key')
      .innerJoin('app_user', 'app_user.id', 'agent_key.user_id')
      .select('agent_id')
      .where('public_key', '=', publicKey),
  )
  return row?.agent_id
}

export const addChallenge = (db: Queryable, row: Omit<ChallengeRow, 'used_at'>) =>
  fetchAll(db, builder.insertInto('challenge').values(row))

export const findChallenge = (db: Queryable, nonce: string, now: Date) =>
  fetchOne(
    db,
    builder
      .selectFrom('challenge')
      .selectAll()
      .where('nonce', '=', nonce)
      .where('used_at', 'is', null)
      .where('expires_at', '>', now),
  )

/** Claims a challenge for its one use; returns true to exactly one of several concurrent callers. */
export const claimChallenge = async (db: Queryable, nonce: string, now: Date): Promise<boolean> => {
  const row = await fetchOne(
    db,
    builder
      .updateTable('challenge')
      .set({ used_at: now })
      .where('nonce', '=', nonce)
      .where('used_at', 'is', null)
      .where('expires_at', '>', now)
      .returning('nonce'),
  )
  return row !== undefined
}

export type NewUser = Pick<UserRow, 'id' | 'agent_id' | 'auth_scheme' | 'name' | 'email' | 'created_at'>

export const addUser = (db: Queryable, row: NewUser) =>
  fetchAll(db, builder.insertInto('app_user').values(row))

/** Adds the user of a person; returns false if the person has one, even from a concurrent transaction. */
export const addPersonUser = async (db: Queryable, row: NewUser): Promise<boolean> => {
  const added = await fetchOne(
    db,
    builder
      .insertInto('app_user')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id'),
  )
  return added !== undefined
}

/** Stores the body of the first sign-up call of a person; returns false if a call has stored one. */
export const setSignupBody = async (db: Queryable, personId: string, body: object): Promise<boolean> => {
  const text = 'update person set signup = $2 where id = $1 and signup is null returning id'
  return (await query(db, text, [personId, jsonText(body)])).length > 0
}

export const setUserName = (db: Queryable, userId: string, name: string | null) =>
  fetchAll(db, builder.updateTable('app_user').set({ name }).where('id', '=', userId))

export const hasUser = async (db: Queryable, userId: string): Promise<boolean> =>
  (await query(db, 'select 1 as known from app_user where id = $1', [userId])).length > 0

export const userOf = async (db: Queryable, userId: string): Promise<{ id: string; agent_id: string }> => {
  const row = await fetchOne(
    db,
    builder.selectFrom('app_user').select(['id', 'agent_id']).where('id', '=', userId),
  )
  if (!row) throw new Error('no user of this id')
  return row
}

type PersonUser = { email: string; agent_id: string | null; suspended_at: Date | null }

/** Returns the person if the grant of the token is in force; the agent id is missing before the sign-up. */
export const personOf = async (
  db: Queryable,
  personId: string,
  grantId: string,
  now: Date,
): Promise<PersonUser | undefined> => {
  const [row] = await query<PersonUser>(
    db,
    `select p.email, u.agent_id, u.suspended_at from person p left join app_user u on u.id = p.id
     where p.id = $1 and exists (select from oauth_record
       where model = 'Grant' and id = $2 and account_id = $1::text and expires_at > $3)`,
    [personId, grantId, now],
  )
  return row
}

/**
 * Locks the consent or the token of the caller until the end of the transaction, so that its revocation waits and then
 * finds what the caller has added. Returns false if it was revoked already.
 */
export async function holdAccess(
  tx: Queryable,
  { userId, person, token }: Pick<Caller, 'userId' | 'person' | 'token'>,
): Promise<boolean> {
  if (person) {
    const text = `select from oauth_record where model = 'Grant' and id = $1 and account_id = $2 for key share`
    return (await query(tx, text, [person.grantId, userId])).length > 0
  }
  if (!token) return true
  const text = 'select from access_token where hash = $1 for key share'
  return (await query(tx, text, [Buffer.from(token.hash, 'hex')])).length > 0
}

/** Adds a public key; returns false if the key has a user already, even from a concurrent transaction. */
export const addKey = async (db: Queryable, publicKey: Uint8Array, userId: string, now: Date) => {
  const row = await fetchOne(
    db,
    builder
      .insertInto('agent_key')
      .values({ public_key: publicKey, user_id: userId, created_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .returning('user_id'),
  )
  return row !== undefined
}

export type AgentKey = {
  user_id: string
  agent_id: string
  suspended_at: Date | null
  public_key: Uint8Array
}

export const keysOfAgent = (db: Queryable, agentId: string): Promise<AgentKey[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('app_user')
      .innerJoin('agent_key', 'agent_key.user_id', 'app_user.id')
      .select(['user_id', 'agent_id', 'suspended_at', 'public_key'])
      .where('agent_id', '=', agentId)
      .where('revoked_at', 'is', null),
  )

export type NewToken = {
  hash: Uint8Array
  userId: string
  scopes: readonly Scope[]
  now: Date
  expiresAt: Date
  /** Only of a key, which has a name, and belongs to a connection if it is a person's. */
  keyId?: string | null
  name?: string | null
  grantId?: string | null
}

export const addToken = (
  db: Queryable,
  { hash, userId, scopes, now, expiresAt, keyId = null, name = null, grantId = null }: NewToken,
) =>
  fetchAll(
    db,
    builder.insertInto('access_token').values({
      hash,
      user_id: userId,
      scopes: [...scopes],
      expires_at: expiresAt,
      created_at: now,
      key_id: keyId,
      key_name: name,
      grant_id: grantId,
    }),
  )

/** Locks a user and counts its keys; undefined if the user is suspended. */
export async function lockAndCountKeys(
  tx: Queryable,
  userId: string,
  now: Date,
): Promise<number | undefined> {
  const text = 'select suspended_at from app_user where id = $1 for no key update'
  const [user] = await query<{ suspended_at: Date | null }>(tx, text, [userId])
  if (!user || user.suspended_at) return undefined
  const counted =
    'select count(*)::integer as count from access_token where user_id = $1 and key_id is not null and expires_at > $2'
  return (await query<{ count: number }>(tx, counted, [userId, now]))[0]?.count ?? 0
}

type KeyRow = { key_id: string; key_name: string; scopes: string[]; created_at: Date; expires_at: Date }
export const keysOfUser = (db: Queryable, userId: string, now: Date): Promise<KeyRow[]> =>
  query(
    db,
    `select key_id, key_name, scopes, created_at, expires_at from access_token
     where user_id = $1 and key_id is not null and expires_at > $2 order by created_at, key_id`,
    [userId, now],
  )

/** Removes a key and returns its hash and the connection that it belongs to; undefined if the user has no such key. */
export async function removeKey(
  tx: Queryable,
  { userId, keyId }: { userId: string; keyId: string },
): Promise<{ hash: string; grantId: string | null } | undefined> {
  const text = 'delete from access_token where key_id = $1 and user_id = $2 returning hash, grant_id'
  const [row] = await query<{ hash: Buffer; grant_id: string | null }>(tx, text, [keyId, userId])
  return row && { hash: hex(row), grantId: row.grant_id }
}

/** Marks a signature as used; returns false if it was used before, or if the key was revoked. */
export const spendSignature = async (
  db: Queryable,
  { digest, expiresAt, publicKey }: { digest: Uint8Array; expiresAt: Date; publicKey: Uint8Array },
): Promise<boolean> => {
  const text = `insert into spent_signature (digest, expires_at)
    select $1, $2 from agent_key where public_key = $3 and revoked_at is null
    on conflict do nothing returning 1 as stored`
  return (await query(db, text, [digest, expiresAt, publicKey])).length === 1
}

/**
 * Spends the signature and stores the token, or returns false if the signature was spent before. The shared locks wait
 * for a concurrent suspension or revocation, which deletes the tokens that it finds.
 */
export const exchangeSignature = async (
  db: Queryable,
  signature: { digest: Uint8Array; expiresAt: Date; publicKey: Uint8Array },
  token: NewToken,
): Promise<boolean> => {
  const rows = await query(
    db,
    `with fresh as (
       insert into spent_signature (digest, expires_at) values ($1, $2) on conflict do nothing returning 1
     ), live as (
       select 1 from agent_key k join app_user u on u.id = k.user_id
       where k.public_key = $8 and k.revoked_at is null and u.suspended_at is null for share
     )
     insert into access_token (hash, user_id, scopes, created_at, expires_at)
     select $3, $4, $5, $6, $7 from fresh, live returning 1 as stored`,
    [
      signature.digest,
      signature.expiresAt,
      token.hash,
      token.userId,
      [...token.scopes],
      token.now,
      token.expiresAt,
      signature.publicKey,
    ],
  )
  return rows.length === 1
}

export type TokenOwner = {
  hash: string
  user_id: string
  agent_id: string
  auth_scheme: UserRow['auth_scheme']
  scopes: string[]
  suspended_at: Date | null
  expires_at: Date
  key_id: string | null
  /** The connection of a person's key, and the address of the person. */
  grant_id: string | null
  email: string | null
}

/** Reads unexpired tokens by the hex digits of their hash. */
export async function tokensOf(
  db: Queryable,
  hashes: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, TokenOwner>> {
  const rows = await query<TokenOwner>(
    db,
    `select encode(t.hash, 'hex') as hash, t.user_id, u.agent_id, u.auth_scheme, t.scopes, u.suspended_at, t.expires_at,
       t.key_id, t.grant_id, (select email from person where id = u.id and t.grant_id is not null) as email
     from access_token t join app_user u on u.id = t.user_id
     where t.hash = any($1::bytea[]) and t.expires_at > $2`,
    [hashes.map((hash) => Buffer.from(hash, 'hex')), now],
  )
  return new Map(rows.map((row) => [row.hash, row]))
}

const hex = ({ hash }: { hash: Uint8Array }) => Buffer.from(hash).toString('hex')

export async function removeToken(
  db: Queryable,
  hash: Uint8Array,
): Promise<{ userId: string; hash: string } | undefined> {
  const row = await fetchOne(
    db,
    builder.deleteFrom('access_token').where('hash', '=', hash).returning(['hash', 'user_id']),
  )
  return row && { userId: row.user_id, hash: hex(row) }
}

export const removeTokensOf = async (db: Queryable, userId: string): Promise<string[]> =>
  (
    await fetchAll(db, builder.deleteFrom('access_token').where('user_id', '=', userId).returning('hash'))
  ).map(hex)

export const tokenHashesOf = async (db: Queryable, userId: string): Promise<string[]> =>
  (await fetchAll(db, builder.selectFrom('access_token').select('hash').where('user_id', '=', userId))).map(
    hex,
  )

export const setSuspended = (db: Queryable, userId: string, at: Date | null) =>
  fetchAll(db, builder.updateTable('app_user').set({ suspended_at: at }).where('id', '=', userId))

export const revokeKeysOf = (db: Queryable, userId: string, now: Date) =>
  fetchAll(
    db,
    builder
      .updateTable('agent_key')
      .set({ revoked_at: now })
      .where('user_id', '=', userId)
      .where('revoked_at', 'is', null),
  )

const sweepMax = 1_000

/** Deletes expired challenges, signatures and tokens in batches, by index, so that no statement runs long. */
export const sweep = async (db: Queryable, now: Date): Promise<void> => {
  for (const table of ['challenge', 'spent_signature', 'access_token']) {
    const text = `delete from ${table} where ctid = any(array(
        select ctid from ${table} where expires_at < $1 order by expires_at limit ${sweepMax} for update skip locked))
      returning 1 as deleted`
    while ((await query(db, text, [now])).length === sweepMax);
  }
}
