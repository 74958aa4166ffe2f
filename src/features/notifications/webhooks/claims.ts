import { type Queryable, query } from '#store/query.ts'
import type { WebhookCursorRow, WebhookRow } from '#store/tables/webhooks.ts'

/** Claims of webhooks by instances. Each statement reads by an index, and no more of the cursors than a bound. */

export type Claimed = Pick<WebhookRow, 'url' | 'types'> &
  Pick<WebhookCursorRow, 'webhook_id' | 'user_id' | 'seq' | 'attempts' | 'is_slow' | 'epoch'> & {
    owner: string
  }

/** Users from the first one on, and before the second one. */
export type UserRange = { from: string; before: string }
/** Webhooks of these users; of a range of users; or those whose message is due again. */
export type ClaimSource = { users: readonly string[] } | { range: UserRange } | 'retries'

export type ClaimRequest = {
  instanceId: string
  now: Date
  source: ClaimSource
  /** Webhooks that this instance delivers now, and the user of each. */
  running: { webhooks: readonly string[]; users: readonly string[] }
  perUserMax: number
  max: number
  /** Of those that failed or were slow the last time. */
  slowMax: number
}

/** Those that are due longest; a claim takes fewer. */
const retriesMax = 1_000

const inRange = (column: string) => `${column} >= $8 and ${column} < $9`
// A text for each, because one plan for all would read all webhooks for one user. The range is given for each table:
// otherwise the other two are read as a whole.
const sources = {
  users: 'and c.user_id = any($8::uuid[])',
  range: `and ${['c.user_id', 's.user_id', 'u.id'].map(inRange).join(' and ')}`,
  retries: `and c.retry_at <= $2 order by c.retry_at limit ${retriesMax}`,
}

/**
 * Claims webhooks that have an event to deliver. An owner whose lease has ended counts as none, and an instance without
 * a lease claims nothing. Those of suspended users keep their place in the log. Users take turns, and those served
 * longest ago come first.
 */
const claimSql = (source: string) => `
  with live as materialized (select id from instance where lease_until >= statement_timestamp()),
  due as materialized (
    select c.webhook_id, c.user_id, c.epoch, c.is_slow or c.attempts > 0 as is_slow, c.claimed_at
    from webhook_cursor c join user_event_seq s on s.user_id = c.user_id join app_user u on u.id = c.user_id
    where c.status = 'enabled' and s.seq > c.seq and (c.retry_at is null or c.retry_at <= $2) and u.suspended_at is null
      and c.webhook_id <> all($3::uuid[]) and (c.owner is null or c.owner = $1 or c.owner not in (select id from live))
      and exists (select from live where id = $1) ${source}),
  in_turn as (select *, row_number() over (partition by user_id order by claimed_at nulls first, webhook_id)
      + (select count(*) from unnest($4::uuid[]) as r (id) where r.id = due.user_id) as turn from due),
  placed as (select *, row_number() over (partition by is_slow order by turn, claimed_at nulls first) as place
    from in_turn where turn <= $5),
  chosen as (select webhook_id, epoch from placed where not is_slow or place <= $7
    order by is_slow, turn, claimed_at nulls first limit $6),
  locked as (select c.webhook_id from webhook_cursor c join chosen on chosen.webhook_id = c.webhook_id
    where c.epoch = chosen.epoch for update of c skip locked)
  update webhook_cursor c set owner = $1, epoch = c.epoch + 1, claimed_at = statement_timestamp()
  from locked join webhook w on w.webhook_id = locked.webhook_id where c.webhook_id = locked.webhook_id
  returning c.webhook_id, c.user_id, c.seq, c.attempts, c.is_slow, c.epoch, c.owner, w.url, w.types`

const claimTexts = {
  users: claimSql(sources.users),
  range: claimSql(sources.range),
  retries: claimSql(sources.retries),
}

/** The statement and its values. */
export function claimStatement({
  instanceId,
  now,
  source,
  running,
  perUserMax,
  max,
  slowMax,
}: ClaimRequest): { text: string; values: unknown[] } {
  const values = [instanceId, now, running.webhooks, running.users, perUserMax, max, slowMax]
  if (source === 'retries') return { text: claimTexts.retries, values }
  if ('users' in source) return { text: claimTexts.users, values: [...values, source.users] }
  return { text: claimTexts.range, values: [...values, source.range.from, source.range.before] }
}

export function claimWebhooks(db: Queryable, request: ClaimRequest): Promise<Claimed[]> {
  const { text, values } = claimStatement(request)
  return query(db, text, values)
}

/** Those of the users that have an enabled webhook. */
export async function usersWithWebhooks(db: Queryable, users: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ user_id: string }>(
    db,
    `select distinct user_id from webhook_cursor where user_id = any($1::uuid[]) and status = 'enabled'`,
    [users],
  )
  return new Set(rows.map(({ user_id }) => user_id))
}
