import type { JsonObject, Tx } from '#kernel/task.ts'
import { all, one, type Queryable, q, send } from '#store/query.ts'

export const venueName = 'hyperliquid'

export type OrderNote = {
  cloid: string
  userId: string
  taskId: string
  leg: string
  symbol: string
  at: Date
}

/** In the commit that signs the order; a repeated step notes nothing twice. */
export async function noteOrders(tx: Tx, notes: readonly OrderNote[]): Promise<void> {
  await Promise.all(
    notes.map(({ cloid, userId, taskId, leg, symbol, at }) =>
      send(
        tx,
        `insert into venue_order (cloid, venue, user_id, task_id, leg, symbol, at)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
        [cloid, venueName, userId, taskId, leg, symbol, at],
      ),
    ),
  )
}

/** The tasks that orders belong to; those of other clients of the account belong to none. */
export async function tasksOfOrders(
  on: Queryable,
  userId: string,
  cloids: readonly string[],
): Promise<Map<string, string>> {
  if (cloids.length === 0) return new Map()
  const rows = await all(
    on,
    q
      .selectFrom('venue_order')
      .select(['cloid', 'task_id'])
      .where('user_id', '=', userId)
      .where('cloid', '=', (eb) => eb.fn.any(eb.val([...cloids]))),
  )
  return new Map(rows.map(({ cloid, task_id }) => [cloid, task_id]))
}

/** Keys of arrivals that other tasks have taken already. */
export async function claimedKeys(on: Queryable, keys: readonly string[], taskId: string) {
  if (keys.length === 0) return new Set<string>()
  const rows = await all(
    on,
    q
      .selectFrom('venue_credit')
      .select('key')
      .where('venue', '=', venueName)
      .where('task_id', '<>', taskId)
      .where('key', '=', (eb) => eb.fn.any(eb.val([...keys]))),
  )
  return new Set(rows.map(({ key }) => key))
}

/** False where another task was quicker. */
export async function claim(
  tx: Tx,
  { key, userId, taskId, at }: { key: string; userId: string; taskId: string; at: Date },
): Promise<boolean> {
  const rows = await send<{ task_id: string }>(
    tx,
    `insert into venue_credit (venue, key, user_id, task_id, at) values ($1, $2, $3, $4, $5)
     on conflict (venue, key) do update set at = venue_credit.at returning task_id`,
    [venueName, key, userId, taskId, at],
  )
  return rows[0]?.task_id === taskId
}

export const lastTaskOf = (on: Queryable, userId: string, kind: string) =>
  one(
    on,
    q
      .selectFrom('task')
      .select(['status', 'error'])
      .where('user_id', '=', userId)
      .where('kind', '=', kind)
      .orderBy('id', 'desc')
      .limit(1),
  ) as Promise<{ status: string; error: JsonObject | null } | undefined>
