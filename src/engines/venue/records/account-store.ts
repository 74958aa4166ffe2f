import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { VenueAccountRow } from '#store/tables/venue.ts'
import { venueName } from './order-store.ts'

/** Venue accounts: their reconciliation state, and the lease of the instance that reconciles them. */

export type VenueAccount = VenueAccountRow
type AccountKey = Pick<VenueAccountRow, 'user_id'>

/** Adds the accounts whose trading key was approved, and marks these keys so that each is looked at once. */
export const register = (db: Queryable, now: Date) =>
  query(
    db,
    `with fresh as (
       update agent_wallet a set is_registered = true from wallet w
       where a.venue = $1 and a.approved_at is not null and a.retired_at is null and not a.is_registered
         and w.user_id = a.user_id and w.kind = 'evm'
       returning a.user_id, a.venue, lower(w.address) as account)
     insert into venue_account (user_id, venue, account, active_at, next_at)
     select user_id, venue, account, $2, $2 from fresh on conflict do nothing`,
    [venueName, now],
  )

type Funded = { userId: string; account: string; now: Date }

/**
 * Registers an account in the commit that ends its first funding. Its wallet is managed here and held nothing at
 * the venue before, so the record begins empty and has every later fill.
 */
export const registerFunded = (tx: Tx, { userId, account, now }: Funded) =>
  query(
    tx,
    `insert into venue_account as a (user_id, venue, account, state, active_at, next_at)
     values ($1, $2, lower($3), 'active', $4, $4)
     on conflict (user_id, venue) do update set state = 'active', active_at = $4, next_at = $4 where a.state = 'new'`,
    [userId, venueName, account, now],
  )

/** Activates a new account whose balances match its record from the start. */
export const activate = (db: Queryable, { user_id }: AccountKey) =>
  query(db, `update venue_account set state = 'active' where user_id = $1 and venue = $2 and state = 'new'`, [
    user_id,
    venueName,
  ])

export const disableBalanceChecks = (db: Queryable, { user_id }: AccountKey) =>
  query(db, 'update venue_account set checks_balances = false where user_id = $1 and venue = $2', [
    user_id,
    venueName,
  ])

/** Returns which work a round of the reconciler would find, in one statement, because idle instances ask often. */
export async function findWork(
  db: Queryable,
  { owner, since, now }: { owner: string; since: Date; now: Date },
): Promise<{ hasNewKeys: boolean; hasTraded: boolean; hasDue: boolean }> {
  const [row] = await query<{ hasNewKeys: boolean; hasTraded: boolean; hasDue: boolean }>(
    db,
    `select exists (select from agent_wallet
         where venue = $1 and approved_at is not null and retired_at is null and not is_registered) as "hasNewKeys",
       exists (select from venue_order o join venue_account a on a.user_id = o.user_id and a.venue = o.venue
         where o.venue = $1 and o.at > $2 and a.active_at < o.at) as "hasTraded",
       exists (select from venue_account where venue = $1 and next_at <= $3
         and (owner is null or owner = $4 or lease_until < clock_timestamp())) as "hasDue"`,
    [venueName, since, now, owner],
  )
  return row ?? { hasNewKeys: true, hasTraded: true, hasDue: true }
}

/** Makes due soon the accounts that traded since a time, at most once per `pauseSeconds`. */
export const scheduleActive = (
  db: Queryable,
  { since, now, pauseSeconds }: { since: Date; now: Date; pauseSeconds: number },
) =>
  query(
    db,
    `update venue_account a set active_at = o.at,
       next_at = least(a.next_at, greatest($3, coalesce(a.checked_at, $3) + make_interval(secs => $4)))
     from (select user_id, max(at) as at from venue_order where venue = $1 and at > $2 group by user_id) o
     where a.user_id = o.user_id and a.venue = $1 and a.active_at < o.at`,
    [venueName, since, now, pauseSeconds],
  )

/** Makes an account due at once whose records are known to lack something, such as those of a time that was lost. */
export const scheduleNow = (db: Queryable, userId: string, now: Date) =>
  query(db, 'update venue_account set active_at = $3, next_at = $3 where user_id = $1 and venue = $2', [
    userId,
    venueName,
    now,
  ])

type Claim = { owner: string; leaseSeconds: number; now: Date; limit: number }

/** Leases due accounts, so that one instance reconciles each; a lease that is not renewed expires. */
export const claimDue = (db: Queryable, { owner, leaseSeconds, now, limit }: Claim) =>
  query<VenueAccount>(
    db,
    `update venue_account set owner = $2, lease_until = clock_timestamp() + make_interval(secs => $3)
     where (user_id, venue) in (select user_id, venue from venue_account
       where venue = $1 and next_at <= $4 and (owner is null or owner = $2 or lease_until < clock_timestamp())
       order by next_at limit $5 for update skip locked)
     returning *`,
    [venueName, owner, leaseSeconds, now, limit],
  )

/** Renews leases of this instance, and returns the accounts whose lease it still holds. */
export const renew = (
  db: Queryable,
  userIds: string[],
  { owner, leaseSeconds }: Pick<Claim, 'owner' | 'leaseSeconds'>,
) =>
  query<VenueAccount>(
    db,
    `update venue_account set lease_until = clock_timestamp() + make_interval(secs => $3)
     where venue = $1 and owner = $2 and user_id = any($4::uuid[]) returning *`,
    [venueName, owner, leaseSeconds, userIds],
  )

export const release = (db: Queryable, userIds: string[], owner: string) =>
  query(
    db,
    `update venue_account set owner = null, lease_until = null
     where venue = $1 and owner = $2 and user_id = any($3::uuid[])`,
    [venueName, owner, userIds],
  )

type Compared = Pick<VenueAccountRow, 'user_id' | 'state' | 'active_at'>

/** Sets the next comparison of an account; one that an operator unfroze since the last comparison stays due. */
export const recheckAt = (db: Queryable, { user_id, state }: Compared, at: Date) =>
  query(
    db,
    `update venue_account set next_at = $3
     where user_id = $1 and venue = $2 and (state <> 'unfreezing' or state = $4)`,
    [user_id, venueName, at, state],
  )

export async function findAccount(
  db: Queryable,
  userId: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<VenueAccount | undefined> {
  const [row] = await query<VenueAccount>(
    db,
    `select * from venue_account where user_id = $1 and venue = $2${lock ? ' for update' : ''}`,
    [userId, venueName],
  )
  return row
}

export async function userOfAccount(db: Queryable, account: string): Promise<string | undefined> {
  const [row] = await query<{ user_id: string }>(
    db,
    'select user_id from venue_account where venue = $1 and account = $2',
    [venueName, account],
  )
  return row?.user_id
}

type ComparisonRecord = {
  mismatch: string | null
  mismatchSince: Date | null
  reconciledThroughMs: number | bigint
  now: Date
  nextAt: Date
  /** When the account is compared next if it has traded since this comparison read the account's row. */
  tradedAt: Date
}

export const recordComparison = (
  db: Queryable,
  { user_id, state, active_at }: Compared,
  { mismatch, mismatchSince, reconciledThroughMs, now, nextAt, tradedAt }: ComparisonRecord,
) =>
  query(
    db,
    `update venue_account set mismatch = $3, mismatch_since = $4, reconciled_through_ms = $5, checked_at = $6,
       next_at = case when state = 'unfreezing' and $7 <> 'unfreezing' then next_at
         when active_at > $8 then least($9::timestamptz, $10::timestamptz) else $9::timestamptz end
     where user_id = $1 and venue = $2`,
    [
      user_id,
      venueName,
      mismatch,
      mismatchSince,
      reconciledThroughMs,
      now,
      state,
      active_at,
      nextAt,
      tradedAt,
    ],
  )

export const markFrozen = (tx: Tx, { user_id }: AccountKey, reason: string, now: Date) =>
  query(
    tx,
    `update venue_account set state = 'frozen', reason = $3, frozen_since = $4 where user_id = $1 and venue = $2 and state <> 'frozen' returning user_id`,
    [user_id, venueName, reason, now],
  )

export async function frozenReason(db: Queryable, userId: string): Promise<string | undefined> {
  const row = await findAccount(db, userId)
  return row && (row.state === 'frozen' || row.state === 'unfreezing') ? (row.reason ?? '') : undefined
}

export async function accountCounts(db: Queryable): Promise<{ frozen: number }> {
  const [row] = await query<{ n: number }>(
    db,
    `select count(*)::integer as n from venue_account where venue = $1 and state = 'frozen'`,
    [venueName],
  )
  return { frozen: row?.n ?? 0 }
}
