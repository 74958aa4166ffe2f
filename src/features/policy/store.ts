import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { Change, Overrides, Pause } from './rules.ts'

export type StoredPolicy = {
  version: number
  own: Overrides
  /** The raises, whether in effect or not; at most one for each field. */
  changes: Change[]
  updatedAt: Date | null
  spentMicros: bigint
  chatSpentMicros: bigint
  paused: Pause | null
}

/** A change as JSON, in which times and amounts are text. */
type StoredChange = {
  id: string
  field: Change['field']
  micros: string | null
  entries: string[] | null
  requestedAt: string
  effectiveAt: string
}

type Row = {
  version: number | null
  per_transaction_micros: bigint | null
  per_day_micros: bigint | null
  chat_per_day_micros: bigint | null
  chains: string[] | null
  tokens: string[] | null
  recipients: string[] | null
  approval_above_micros: bigint | null
  updated_at: Date | null
  changes: StoredChange[] | null
  spent: string
  chat_spent: string
  scope: Pause['scope'] | null
  since: Date | null
  reason: string | null
}

/**
 * The state of the policy is read in one statement, because every money operation waits for it. The spent amount
 * adds the sums of whole minutes and the rows of the minute in which the day began, and subtracts the amount of the
 * requesting task. Of several switches that are set, the widest is returned.
 */
const policyStateSql = `
  select p.version, p.per_transaction_micros, p.per_day_micros, p.chat_per_day_micros, p.chains, p.tokens, p.recipients, p.approval_above_micros,
    p.updated_at,
    k.scope, k.since, k.reason,
    (select json_agg(json_build_object('id', change_id, 'field', field, 'micros', micros::text, 'entries', entries,
      'requestedAt', requested_at, 'effectiveAt', effective_at) order by field) from policy_change where user_id = $1) as changes,
    (select coalesce(sum(usd_micros), 0) from policy_spend_minute where user_id = $1 and minute > $2)
      + (select coalesce(sum(usd_micros), 0) from policy_spend
        where user_id = $1 and state = 'reserved' and at > $2 and at < date_trunc('minute', $2::timestamptz) + interval '1 minute')
      - (select coalesce(sum(usd_micros), 0) from policy_spend
        where task_id = $3 and user_id = $1 and state = 'reserved' and at > $2) as spent,
    policy_chat_spent($1, $2, $3) as chat_spent
  from (select 1) always
  left join policy p on p.user_id = $1
  left join lateral (
    select case when s.scope = 'user' and s.subject <> $1::text then 'person' else s.scope end as scope, s.since, s.reason
    from kill_switch s
    where (s.scope = 'global' and s.subject = '') or (s.scope = 'user' and s.subject = $1::text)
      or (s.scope = 'user' and s.subject = (select person_id::text from agent_link where user_id = $1))
      or (s.scope = 'venue' and s.subject = $1::text || ':' || $4::text)
    order by 1, s.since limit 1
  ) k on true`

/** `except` is a task whose amount is left out of the sum. `chainId` is a venue whose switch counts too. */
export async function policyStateOf(
  db: Queryable,
  userId: string,
  { since, except = null, chainId = null }: { since: Date; except?: string | null; chainId?: string | null },
): Promise<StoredPolicy> {
  const [row] = await query<Row>(db, policyStateSql, [userId, since, except, chainId])
  if (!row) throw new Error('the policy statement returned no row')
  return {
    version: row.version ?? 0,
    own: {
      perTransactionMicros: row.per_transaction_micros,
      perDayMicros: row.per_day_micros,
      chatPerDayMicros: row.chat_per_day_micros,
      chains: row.chains,
      tokens: row.tokens,
      recipients: row.recipients,
      approvalAboveMicros: row.approval_above_micros,
    },
    changes: (row.changes ?? []).map(readChange),
    updatedAt: row.updated_at,
    spentMicros: BigInt(row.spent),
    chatSpentMicros: BigInt(row.chat_spent),
    paused: pauseOf(row),
  }
}

const readChange = ({ id, field, micros, entries, requestedAt, effectiveAt }: StoredChange): Change => ({
  id,
  field,
  value: micros === null ? entries : BigInt(micros),
  requestedAt: new Date(requestedAt),
  effectiveAt: new Date(effectiveAt),
})

function pauseOf({ scope, since, reason }: Row): Pause | null {
  if (!scope || !since) return null
  return scope === 'venue' ? { scope, since, reason: reason ?? '' } : { scope, since }
}

/** Serialises everything that counts against the caps of a user; later statements see what earlier holders wrote. */
export const lockPolicy = (tx: Queryable, userId: string, now: Date) =>
  query(tx, 'select policy_lock($1, $2)', [userId, now])

export const savePolicy = (
  tx: Queryable,
  userId: string,
  { own, version, now }: { own: Overrides; version: number; now: Date },
) =>
  fetchAll(
    tx,
    builder
      .updateTable('policy')
      .set({
        version,
        per_transaction_micros: own.perTransactionMicros,
        per_day_micros: own.perDayMicros,
        chat_per_day_micros: own.chatPerDayMicros,
        chains: own.chains as string[] | null,
        tokens: own.tokens as string[] | null,
        recipients: own.recipients as string[] | null,
        approval_above_micros: own.approvalAboveMicros,
        updated_at: now,
      })
      .where('user_id', '=', userId),
  )

/** Stores the changes as the only pending ones, under the lock of the user's limits. */
export async function saveChanges(tx: Queryable, userId: string, changes: readonly Change[]): Promise<void> {
  await query(tx, 'delete from policy_change where user_id = $1 and not change_id = any($2)', [
    userId,
    changes.map(({ id }) => id),
  ])
  if (changes.length === 0) return
  const rows = changes.map(({ id, field, value, requestedAt, effectiveAt }) => ({
    change_id: id,
    user_id: userId,
    field,
    micros: typeof value === 'bigint' ? value : null,
    entries: typeof value === 'bigint' || value === null ? null : [...value],
    requested_at: requestedAt,
    effective_at: effectiveAt,
  }))
  await fetchAll(
    tx,
    builder
      .insertInto('policy_change')
      .values(rows)
      .onConflict((conflict) => conflict.column('change_id').doNothing()),
  )
}

export const lockSpend = (tx: Queryable, taskId: string, userId: string) =>
  fetchOne(
    tx,
    builder
      .selectFrom('policy_spend')
      .select(['usd_micros', 'authorized_micros'])
      .select(({ exists, selectFrom }) =>
        exists(selectFrom('policy_chat_spend').select('user_id').where('task_id', '=', taskId)).as(
          'is_of_chat',
        ),
      )
      .where('task_id', '=', taskId)
      .where('user_id', '=', userId)
      .where('state', '=', 'reserved')
      .forUpdate(),
  )

/** Returns what counts against the budget of a schedule, in micro-dollars. */
export async function spentOfSchedule(db: Queryable, scheduleId: string): Promise<bigint> {
  const [row] = await query<{ micros: string }>(db, 'select strategy_spent($1)::text as micros', [scheduleId])
  return BigInt(row?.micros ?? 0)
}

export const saveSpend = (tx: Queryable, taskId: string, usdMicros: bigint, authorizedMicros: bigint) =>
  fetchAll(
    tx,
    builder
      .updateTable('policy_spend')
      .set({ usd_micros: usdMicros, authorized_micros: authorizedMicros })
      .where('task_id', '=', taskId),
  )

export type SwitchId =
  | { scope: 'global' }
  | { scope: 'user'; userId: string }
  | { scope: 'venue'; userId: string; chainId: string }
const subjectOf = (id: SwitchId): string => {
  if (id.scope === 'venue') return `${id.userId}:${id.chainId}`
  return id.scope === 'user' ? id.userId : ''
}

/** Returns since when the operator's switch stops all users; null while it is off. */
export async function readStoppedSince(db: Queryable): Promise<Date | null> {
  const [row] = await query<{ since: Date | null }>(
    db,
    `select min(since) as since from kill_switch where scope = 'global' and subject = ''`,
  )
  return row!.since
}

/** Stores that `setBy` sets the switch, in a row of its own. Setting it again changes only `pressed_at`. */
export const setSwitch = (
  db: Queryable,
  id: SwitchId,
  { since, setBy, reason = null }: { since: Date; setBy: string; reason?: string | null },
) =>
  fetchAll(
    db,
    builder
      .insertInto('kill_switch')
      .values({ scope: id.scope, subject: subjectOf(id), since, pressed_at: since, set_by: setBy, reason })
      .onConflict((conflict) =>
        conflict.columns(['scope', 'subject', 'set_by']).doUpdateSet({ pressed_at: since }),
      ),
  )

export async function clearSwitch(db: Queryable, id: SwitchId, { setBy }: { setBy?: string } = {}) {
  const rows = builder
    .deleteFrom('kill_switch')
    .where('scope', '=', id.scope)
    .where('subject', '=', subjectOf(id))
  await fetchAll(db, setBy === undefined ? rows : rows.where('set_by', '=', setBy))
}

/** Returns a row for each party that has set the switch, the oldest first. */
export const switchesOf = (db: Queryable, id: SwitchId) =>
  fetchAll(
    db,
    builder
      .selectFrom('kill_switch')
      .select(['since', 'pressed_at', 'set_by'])
      .where('scope', '=', id.scope)
      .where('subject', '=', subjectOf(id))
      .orderBy('since'),
  )

export type StoredLimits = Partial<Record<keyof Overrides, string | string[] | null>>

/** Stores the limits of a linked agent before its person lowers them. What was stored first stays. */
export const storeLimits = (
  tx: Queryable,
  userId: string,
  own: Overrides,
  fields: readonly (keyof Overrides)[],
) => {
  const stored = Object.fromEntries(
    fields.map((field) => [field, typeof own[field] === 'bigint' ? String(own[field]) : own[field]]),
  )
  return query(tx, `update agent_link set limits_before = $2::jsonb || limits_before where user_id = $1`, [
    userId,
    JSON.stringify(stored),
  ])
}
export const forgetLimits = (tx: Queryable, userId: string, fields: readonly (keyof Overrides)[]) =>
  query(
    tx,
    'update agent_link set limits_before = limits_before - $2::text[] where user_id = $1 and limits_before ?| $2::text[]',
    [userId, fields],
  )
export function readStoredLimits(stored: StoredLimits): Partial<Overrides> {
  return Object.fromEntries(
    Object.entries(stored).map(([field, value]) => [
      field,
      typeof value === 'string' ? BigInt(value) : value,
    ]),
  )
}
