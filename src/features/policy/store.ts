import type { Selectable } from 'kysely'
import { all, one, type Queryable, q, send } from '#store/query.ts'
import type { PolicyRow } from '#store/tables/identity.ts'
import type { Pause, Tightening } from './rules.ts'

export type StoredPolicy = { version: number; own: Tightening; updatedAt: Date | null }

const stored = (row: Selectable<PolicyRow> | undefined): StoredPolicy => ({
  version: row?.version ?? 0,
  own: {
    perTransactionMicros: row?.per_transaction_micros ?? null,
    perDayMicros: row?.per_day_micros ?? null,
    chains: row?.chains ?? null,
    tokens: row?.tokens ?? null,
    recipients: row?.recipients ?? null,
  },
  updatedAt: row?.updated_at ?? null,
})

const rowOf = (userId: string) => q.selectFrom('policy').selectAll().where('user_id', '=', userId)

export const policyOf = async (on: Queryable, userId: string): Promise<StoredPolicy> =>
  stored(await one(on, rowOf(userId)))

/** Whatever counts against the caps of a user waits here for whatever else does. */
export async function lockPolicy(tx: Queryable, userId: string, now: Date): Promise<StoredPolicy> {
  const locked = rowOf(userId).forUpdate()
  const row = await one(tx, locked)
  if (row) return stored(row)
  const fresh = q.insertInto('policy').values({ user_id: userId, updated_at: now })
  await all(
    tx,
    fresh.onConflict((conflict) => conflict.doNothing()),
  )
  return stored(await one(tx, locked))
}

export const savePolicy = (tx: Queryable, userId: string, own: Tightening, version: number, now: Date) =>
  all(
    tx,
    q
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

/** The sum that the tasks of a user took from the caps since then, one task left out. */
export async function spentMicros(on: Queryable, userId: string, since: Date, except: string | null = null) {
  const text = `select coalesce(sum(usd_micros), 0) as sum from policy_spend
    where user_id = $1 and at > $2 and state = 'reserved' and task_id is distinct from $3::uuid`
  const rows = await send<{ sum: string }>(on, text, [userId, since, except])
  return BigInt(rows[0]?.sum ?? 0)
}

export type Spend = { taskId: string; userId: string; usdMicros: bigint; now: Date }

export const addSpend = (tx: Queryable, { taskId, userId, usdMicros, now }: Spend) =>
  all(
    tx,
    q.insertInto('policy_spend').values({
      task_id: taskId,
      user_id: userId,
      usd_micros: usdMicros,
      state: 'reserved',
      at: now,
    }),
  )

export const lockSpend = (tx: Queryable, taskId: string, userId: string) =>
  one(
    tx,
    q
      .selectFrom('policy_spend')
      .select(['usd_micros', 'authorized_micros'])
      .where('task_id', '=', taskId)
      .where('user_id', '=', userId)
      .where('state', '=', 'reserved')
      .forUpdate(),
  )

export const saveSpend = (tx: Queryable, taskId: string, usdMicros: bigint, authorizedMicros: bigint) =>
  all(
    tx,
    q
      .updateTable('policy_spend')
      .set({ usd_micros: usdMicros, authorized_micros: authorizedMicros })
      .where('task_id', '=', taskId),
  )

export const releaseSpend = (tx: Queryable, taskId: string) =>
  all(tx, q.updateTable('policy_spend').set({ state: 'released' }).where('task_id', '=', taskId))

/** The wider switch is told first. */
export async function pauseOf(on: Queryable, userId: string): Promise<Pause | null> {
  const text = `select scope, since from kill_switch
    where (scope = 'global' and subject = '') or (scope = 'user' and subject = $1) order by scope limit 1`
  return (await send<Pause>(on, text, [userId]))[0] ?? null
}

export type SwitchId = { scope: 'global' } | { scope: 'user'; userId: string }
const subjectOf = (id: SwitchId) => (id.scope === 'user' ? id.userId : '')

/** Setting it again leaves the time since which it is on. */
export const setSwitch = (on: Queryable, id: SwitchId, since: Date, setBy: string) =>
  all(
    on,
    q
      .insertInto('kill_switch')
      .values({ scope: id.scope, subject: subjectOf(id), since, set_by: setBy })
      .onConflict((conflict) => conflict.doNothing()),
  )

export const clearSwitch = (on: Queryable, id: SwitchId) =>
  all(on, q.deleteFrom('kill_switch').where('scope', '=', id.scope).where('subject', '=', subjectOf(id)))

export const switchOf = (on: Queryable, id: SwitchId) =>
  one(
    on,
    q
      .selectFrom('kill_switch')
      .select('since')
      .where('scope', '=', id.scope)
      .where('subject', '=', subjectOf(id)),
  )

type Decision = { id: string; taskId: string; intentHash: string; rule: string; now: Date }

export const addDecision = (tx: Queryable, { id, taskId, intentHash, rule, now }: Decision) =>
  all(
    tx,
    q
      .insertInto('policy_decision')
      .values({ id, task_id: taskId, intent_hash: intentHash, decision: 'allowed', rule, at: now }),
  )
