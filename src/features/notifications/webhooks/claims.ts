import { type Queryable, query } from '#store/query.ts'
import type { WebhookCursorRow, WebhookRow } from '#store/tables/webhooks.ts'
import { type Counts, type Kind, kinds, places, sharedMax } from './delivery-slots.ts'

/** This module lets instances claim webhooks. Each statement uses an index, and reads a bounded number of cursors. */

export type Claimed = Pick<WebhookRow, 'url' | 'types'> &
  Pick<WebhookCursorRow, 'webhook_id' | 'user_id' | 'seq' | 'attempts' | 'is_slow' | 'epoch'> & {
    owner: string
    kind: Kind
  }

/** A range of user ids that includes `from` and excludes `before`. */
export type UserRange = { from: string; before: string }
/** Selects the webhooks of these users, those of a range of users, or those whose retry is due. */
export type ClaimSource = { users: readonly string[] } | { range: UserRange } | 'retries'

export type ClaimRequest = {
  instanceId: string
  now: Date
  source: ClaimSource
  running: { webhooks: readonly string[]; users: readonly string[]; kinds: readonly Kind[] }
  counts: Counts
  /**
   * Users whose budget of delivery time is spent. They come after all others, and get only the unreserved half of the
   * slots of each kind.
   */
  spent: readonly string[]
}
/** The claimed webhooks; `waiting` holds users with a due webhook that got no place. */
export type Claims = { claimed: Claimed[]; waiting: string[] }

/** At most this many due retries are read, beginning with those that are due longest; a claim takes fewer. */
const retriesMax = 1_000
/** At most this many users of one claim are remembered as waiting; the polls find the others. */
const waitingMax = 1_000

const inRange = (column: string) => `${column} >= $11 and ${column} < $12`
// Each source has a statement of its own, because one plan for all would read every webhook for one user. The range is
// given for each table; otherwise PostgreSQL would read the other two tables as a whole.
const sources = {
  users: 'and c.user_id = any($11::uuid[])',
  range: `and ${['c.user_id', 's.user_id', 'u.id'].map(inRange).join(' and ')}`,
  retries: `and c.retry_at <= $2 order by c.retry_at limit ${retriesMax}`,
}

/**
 * Claims webhooks that have an event to deliver. A webhook whose owner has lost its lease counts as unclaimed, and an
 * instance without a lease claims nothing. Webhooks of suspended users are not claimed, so they stay at their position
 * in the log. Users take turns within each kind, and those who were served longest ago come first.
 */
const claimSql = (source: string) => `
  with live as materialized (select id from instance where lease_until >= statement_timestamp()),
  due as materialized (
    select c.webhook_id, c.user_id, c.epoch, c.claimed_at, c.user_id = any($10::uuid[]) as is_spent,
      case when c.is_slow or c.attempts > 0 then 'slow' when c.is_slow is null then 'new' else 'quick' end as kind
    from webhook_cursor c join user_event_seq s on s.user_id = c.user_id join app_user u on u.id = c.user_id
    where c.status = 'enabled' and s.seq > c.seq and (c.retry_at is null or c.retry_at <= $2) and u.suspended_at is null
      and c.webhook_id <> all($3::uuid[]) and (c.owner is null or c.owner = $1 or c.owner not in (select id from live))
      and exists (select from live where id = $1) ${source}),
  in_turn as (select *, row_number() over (partition by user_id, kind order by claimed_at nulls first, webhook_id)
      + (select count(*) from unnest($4::uuid[], $5::text[]) as r (id, kind)
         where r.id = due.user_id and r.kind = due.kind) as turn
    from due join unnest($6::text[], $7::int[], $8::int[], $9::int[]) as p (kind, per_user, free, shared) using (kind)),
  eligible as (select *, is_spent or turn > 1 as is_last,
      (select max(o.claimed_at) from webhook_cursor o where o.user_id = in_turn.user_id) as served_at
    from in_turn where turn <= per_user),
  placed as (select *, row_number() over (
      partition by kind order by is_last, turn, served_at nulls first, webhook_id) as place from eligible),
  chosen as (select webhook_id, epoch, kind from placed where place <= free and (place <= shared or not is_last)),
  locked as (select c.webhook_id, chosen.kind from webhook_cursor c join chosen on chosen.webhook_id = c.webhook_id
    where c.epoch = chosen.epoch for update of c skip locked),
  claimed as (update webhook_cursor c set owner = $1, epoch = c.epoch + 1, claimed_at = statement_timestamp()
    from locked join webhook w on w.webhook_id = locked.webhook_id where c.webhook_id = locked.webhook_id
    returning c.webhook_id, c.user_id, c.seq, c.attempts, c.is_slow, c.epoch, c.owner, w.url, w.types, locked.kind),
  waiting as (select distinct user_id from due where webhook_id not in (select webhook_id from claimed)
    limit ${waitingMax})
  select * from claimed union all
  select null, user_id, null, null, null, null, null, null, null, null from waiting`

const claimTexts = {
  users: claimSql(sources.users),
  range: claimSql(sources.range),
  retries: claimSql(sources.retries),
}

export function claimStatement({ instanceId, now, source, running, counts, spent }: ClaimRequest): {
  text: string
  values: unknown[]
} {
  const values = [
    instanceId,
    now,
    running.webhooks,
    running.users,
    running.kinds,
    kinds,
    kinds.map((kind) => places[kind].perUserMax),
    kinds.map((kind) => places[kind].max - counts[kind]),
    kinds.map((kind) => sharedMax(kind) - counts[kind]),
    spent,
  ]
  if (source === 'retries') return { text: claimTexts.retries, values }
  if ('users' in source) return { text: claimTexts.users, values: [...values, source.users] }
  return { text: claimTexts.range, values: [...values, source.range.from, source.range.before] }
}

export async function claimWebhooks(db: Queryable, request: ClaimRequest): Promise<Claims> {
  const { text, values } = claimStatement(request)
  const rows = await query<Claimed | { webhook_id: null; user_id: string }>(db, text, values)
  return {
    claimed: rows.filter((row) => row.webhook_id !== null),
    waiting: rows.flatMap((row) => (row.webhook_id === null ? [row.user_id] : [])),
  }
}

export async function usersWithWebhooks(db: Queryable, users: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ user_id: string }>(
    db,
    `select distinct user_id from webhook_cursor where user_id = any($1::uuid[]) and status = 'enabled'`,
    [users],
  )
  return new Set(rows.map(({ user_id }) => user_id))
}
