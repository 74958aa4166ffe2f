import type { StoredLimits } from '#features/policy/store.ts'
import { type Queryable, query } from '#store/query.ts'

export type LinkedAgent = { user_id: string; agent_id: string; name: string | null; linked_at: Date }

export const agentsOf = (db: Queryable, personId: string): Promise<LinkedAgent[]> =>
  query(
    db,
    `select l.user_id, u.agent_id, coalesce(l.name, u.name) as name, l.linked_at
     from agent_link l join app_user u on u.id = l.user_id where l.person_id = $1 order by l.linked_at, l.user_id`,
    [personId],
  )

type Code = { userId: string; hash: Uint8Array; now: Date; expiresAt: Date }
export const saveCode = (db: Queryable, { userId, hash, now, expiresAt }: Code) =>
  query(
    db,
    `insert into agent_link_code (user_id, code_hash, created_at, expires_at) values ($1, $2, $3, $4)
     on conflict (user_id) do update set code_hash = excluded.code_hash, created_at = excluded.created_at,
       expires_at = excluded.expires_at`,
    [userId, hash, now, expiresAt],
  )

export const isCode = async (db: Queryable, hash: Uint8Array, now: Date): Promise<boolean> => {
  const text = 'select 1 as known from agent_link_code where code_hash = $1 and expires_at > $2'
  return (await query(db, text, [hash, now])).length > 0
}

type CodeOwner = { user_id: string; agent_id: string; name: string | null; code_at: Date }
/**
 * Spends a code and returns its agent, to exactly one of several concurrent callers. The row stays, under a hash that
 * no code has, because it records when the newest code was made.
 */
export async function claimCode(db: Queryable, hash: Uint8Array, now: Date): Promise<CodeOwner | undefined> {
  const [row] = await query<CodeOwner>(
    db,
    `with claimed as (
       update agent_link_code set code_hash = sha256(code_hash) where code_hash = $1 and expires_at > $2
         returning user_id, created_at)
     select u.id as user_id, u.agent_id, u.name, c.created_at as code_at from claimed c join app_user u on u.id = c.user_id`,
    [hash, now],
  )
  return row
}

export async function hasNewerCode(db: Queryable, userId: string, codeAt: string): Promise<boolean> {
  const text = 'select 1 as newer from agent_link_code where user_id = $1 and created_at > $2'
  return (await query(db, text, [userId, codeAt])).length > 0
}

/** Returns the user of an agent with a key pair; undefined if the id is that of a person or of nobody. */
export async function keyPairUserOf(db: Queryable, agentId: string): Promise<string | undefined> {
  const text = `select id from app_user where agent_id = $1 and auth_scheme = 'keypair'`
  return (await query<{ id: string }>(db, text, [agentId]))[0]?.id
}

export const setContested = (db: Queryable, userId: string, at: Date | null) =>
  query(db, 'update agent_link set contested_at = $2 where user_id = $1', [userId, at])

const contestMailHours = 24
/** Records a mail to the person about a contest of this link; returns false if one was sent less than a day ago. */
export async function beginContestMail(db: Queryable, userId: string, now: Date): Promise<boolean> {
  const text = `update agent_link set contest_mailed_at = $2 where user_id = $1
    and (contest_mailed_at is null or contest_mailed_at <= $2::timestamptz - make_interval(hours => ${contestMailHours}))
    returning user_id`
  return (await query(db, text, [userId, now])).length > 0
}

/** Serialises the changes to one person's links, so that their number stays within its limit. */
export const lockLinksOf = (db: Queryable, personId: string) =>
  query(db, 'select 1 as locked from app_user where id = $1 for no key update', [personId])

type NewLink = { userId: string; personId: string; name: string | undefined; now: Date }
/** Adds a link and returns its agent; undefined if the agent is linked already, even by a concurrent commit. */
export async function addLink(
  db: Queryable,
  { userId, personId, name, now }: NewLink,
): Promise<LinkedAgent | undefined> {
  const [row] = await query<LinkedAgent>(
    db,
    `with added as (
       insert into agent_link (user_id, person_id, name, linked_at) values ($1, $2, $3, $4)
       on conflict do nothing returning user_id, name, linked_at
     )
     select l.user_id, u.agent_id, coalesce(l.name, left(u.name, 64)) as name, l.linked_at
     from added l join app_user u on u.id = l.user_id`,
    [userId, personId, name ?? null, now],
  )
  return row
}

type Ended = { userId: string; personId: string; linkedAt: Date }
/** Removes a link and returns the limits stored with it; undefined if exactly this link no longer exists. */
export async function removeLink(
  db: Queryable,
  { userId, personId, linkedAt }: Ended,
): Promise<{ limitsBefore: StoredLimits } | undefined> {
  const text =
    'delete from agent_link where user_id = $1 and person_id = $2 and linked_at = $3 returning limits_before'
  const [row] = await query<{ limits_before: StoredLimits }>(db, text, [userId, personId, linkedAt])
  return row && { limitsBefore: row.limits_before }
}
