import { creditsAsset } from '#kernel/money/credit-accounts.ts'
import { type Queryable, query } from '#store/query.ts'
import { grantKind } from './operator-grant.ts'
import { rechargeKind } from './till.ts'

/** Movements of credits are found by the tasks that made them, because the ledger has no index by account. */

/** The kind of the entries that a plan brought or took. */
const planKind = 'plan'
const kinds = ['chat', 'image_create', rechargeKind, grantKind]

type Movement = { id: string; kind: string; credits: string | null; at: Date | null }
type Page = {
  items: { task_id: string | null; kind: string; credits: number; at: string }[]
  next: string | null
}

/**
 * Reads the newest tasks of each kind, by the index of users and kinds, and the credits that each has posted. The
 * credits of a plan belong to no task; the ids of their changes are in the order of those of tasks.
 */
const pageSql = `with page as materialized (
    select id, kind, plan_credits, plan_at from (
      select t.id, t.kind, null::bigint as plan_credits, null::timestamptz as plan_at
      from unnest($2::text[]) k (kind), lateral (
        select id, kind from task where user_id = $1 and kind = k.kind and ($3::uuid is null or id < $3)
        order by id desc limit $4) t
      union all (select id, '${planKind}', credits, at from plan_credit_change
        where user_id = $1 and ($3::uuid is null or id < $3) order by id desc limit $4)) found
    order by id desc limit $4)
  select p.id, p.kind, coalesce(p.plan_credits, m.credits) as credits, coalesce(p.plan_at, m.at) as at
  from page p left join lateral (
    select sum(case when c.owner = $1 then t.posted else -t.posted end) as credits, max(t.settled_at) as at
    from transfer t join account d on d.id = t.debit join account c on c.id = t.credit
    where t.task_id = p.id and t.state = 'posted' and d.asset = '${creditsAsset}') m on true
  order by p.id desc`

const firstSql = `select posted as credits, settled_at as at from transfer where key = $1 and state = 'posted'`

export async function historyOf(
  db: Queryable,
  userId: string,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<Page> {
  const rows = await query<Movement>(db, pageSql, [userId, kinds, before ?? null, limit])
  const items = rows.flatMap(({ id, kind, credits, at }) =>
    credits === null || at === null
      ? []
      : [{ task_id: kind === planKind ? null : id, kind, credits: Number(credits), at: at.toISOString() }],
  )
  if (rows.length === limit) return { items, next: rows.at(-1)?.id ?? null }
  return { items: [...items, ...(await firstCredits(db, userId))], next: null }
}

/** Returns the grant of the user's first credits, which comes before any task. */
async function firstCredits(db: Queryable, userId: string): Promise<Page['items']> {
  const rows = await query<{ credits: string; at: Date }>(db, firstSql, [`signup:${userId}`])
  return rows.map(({ credits, at }) => ({
    task_id: null,
    kind: 'signup',
    credits: Number(credits),
    at: at.toISOString(),
  }))
}
