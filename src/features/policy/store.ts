import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { Overrides, Pause } from './rules.ts'

/** Everything that the rules need from the database. */
export type StoredPolicy = {
  version: number
  own: Overrides
  updatedAt: Date | null
  spentMicros: bigint
  paused: Pause | null
}

type Row = {
  version: number | null
  per_transaction_micros: bigint | null
  per_day_micros: bigint | null
  chains: string[] | null
  tokens: string[] | null
  recipients: string[] | null
  updated_at: Date | null
  spent: string
  scope: Pause['scope'] | null
  since: Date | null
  reason: string | null
}

/**
 * One statement, because every money operation waits for it. The spent amount: the sums of whole minutes, the rows of
 * the minute in which the day began, minus the requesting task's own. Of two switches the wider one is returned.
 */
const policyStateSql = `
  select p.version, p.per_transaction_micros, p.per_day_micros, p.chains, p.tokens, p.recipients, p.updated_at,
    k.scope, k.since, k.reason,
    (select coalesce(sum(usd_micros), 0) from policy_spend_minute where user_id = $1 and minute > $2)
      + (select coalesce(sum(usd_micros), 0) from policy_spend
        where user_id = $1 and state = 'reserved' and at > $2 and at < date_trunc('minute', $2::timestamptz) + interval '1 minute')
      - (select coalesce(sum(usd_micros), 0) from policy_spend
        where task_id = $3 and user_id = $1 and state = 'reserved' and at > $2) as spent
  from (select 1) always
  left join policy p on p.user_id = $1
  left join lateral (
    select scope, since, reason from kill_switch
    where (scope = 'global' and subject = '') or (scope = 'user' and subject = $1::text)
      or (scope = 'venue' and subject = $1::text || ':' || $4::text)
    order by scope limit 1
  ) k on true`

/** `except`: a task whose own amount is left out of the sum. `chainId`: the venue whose switch counts too. */
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
      chains: row.chains,
      tokens: row.tokens,
      recipients: row.recipients,
    },
    updatedAt: row.updated_at,
    spentMicros: BigInt(row.spent),
    paused: pauseOf(row),
  }
}

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
        chains: own.chains as string[] | null,
        tokens: own.tokens as string[] | null,
        recipients: own.recipients as string[] | null,
        updated_at: now,
      })
      .where('user_id', '=', userId),
  )

export const lockSpend = (tx: Queryable, taskId: string, userId: string) =>
  fetchOne(
    tx,
    builder
      .selectFrom('policy_spend')
      .select(['usd_micros', 'authorized_micros'])
      .where('task_id', '=', taskId)
      .where('user_id', '=', userId)
      .where('state', '=', 'reserved')
      .forUpdate(),
  )

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

/** Setting an active switch again does not change its `since`. */
export const setSwitch = (
  db: Queryable,
  id: SwitchId,
  { since, setBy, reason = null }: { since: Date; setBy: string; reason?: string | null },
) =>
  fetchAll(
    db,
    builder
      .insertInto('kill_switch')
      .values({ scope: id.scope, subject: subjectOf(id), since, set_by: setBy, reason })
      .onConflict((conflict) => conflict.doNothing()),
  )

export const clearSwitch = (db: Queryable, id: SwitchId) =>
  fetchAll(
    db,
    builder.deleteFrom('kill_switch').where('scope', '=', id.scope).where('subject', '=', subjectOf(id)),
  )

export const switchOf = (db: Queryable, id: SwitchId) =>
  fetchOne(
    db,
    builder
      .selectFrom('kill_switch')
      .select('since')
      .where('scope', '=', id.scope)
      .where('subject', '=', subjectOf(id)),
  )
