import type { Engine } from '#durable/engine.ts'
import type { DueRow, DueSource } from '#durable/upkeep/due-rows.ts'
import { later } from '#kernel/clock.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import { systemOwner, type Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { eagerSeconds } from './store.ts'
import { syncAdmission, syncKind } from './sync.ts'

/** Reads the provider's objects again when they are due: after an event, and from time to time without one. */

type Watched = {
  id: string
  user_id: string
  next_at: Date
  every_seconds: number | null
  eager_until: Date | null
  queued_at: Date | null
}
type WatchDeps = { db: Queryable; taskEngine: Pick<Engine, 'enqueueOnce' | 'kindOf'> }

/** A task that has not begun by then is given up, and another one is made. */
const queuedMsMax = 600_000

const nextReadingOf = ({ every_seconds: every, eager_until: eager }: Watched, now: Date): Date | null => {
  const seconds = eager !== null && eager > now ? Math.min(every ?? eagerSeconds, eagerSeconds) : every
  return seconds === null ? null : later(now, seconds * 1_000)
}

export const dueWatches = ({ db, taskEngine }: WatchDeps): DueSource<Watched> => ({
  name: 'payment provider',
  findNext: ({ limit, except }) =>
    query<DueRow>(
      db,
      `select id, next_at as at from plan_watch where next_at is not null and id <> all($1::text[])
       order by next_at limit $2`,
      [except, limit],
    ),
  lockDue: (tx, now, { limit, ids, except }) =>
    query<Watched>(
      tx,
      `select id, user_id, next_at, every_seconds, eager_until, queued_at from plan_watch
       where next_at <= $1 and ($2::text[] is null or id = any($2)) and id <> all($3::text[])
       order by next_at limit $4 for update skip locked`,
      [now, ids, except, limit],
    ),
  async serve(tx: Tx, rows, now) {
    const next = new Map(rows.map((row) => [row.id, nextReadingOf(row, now)]))
    await query(
      tx,
      `update plan_watch w set next_at = n.at from unnest($1::text[], $2::timestamptz[]) n (id, at) where w.id = n.id`,
      [[...next.keys()], [...next.values()]],
    )
    const unqueued = rows.filter(({ queued_at: at }) => at === null || later(at, queuedMsMax) <= now)
    const ids = unqueued.map(({ id }) => id)
    await query(tx, 'update plan_watch set queued_at = $2 where id = any($1)', [ids, now])
    const kind = taskEngine.kindOf(syncKind)
    if (!kind) throw new Error(`this instance has no task kind ${syncKind}`)
    await taskEngine.enqueueOnce(
      tx,
      unqueued.map((row) => {
        const data = { object: row.id, user_id: row.user_id }
        return {
          userId: systemOwner,
          kind,
          input: {},
          admission: syncAdmission(data),
          key: {
            key: internalKey('sched', `${row.id} ${row.next_at.toISOString()}`),
            operation: syncKind,
            hash: bodyHash(syncKind, data),
          },
        }
      }),
    )
    return new Map([...next].map(([id, at]) => [id, at ?? undefined]))
  },
})
