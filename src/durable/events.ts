import type { Clock } from '#kernel/clock.ts'
import type { NewEvent, Tx } from '#kernel/task.ts'
import { all, one, q, send } from '#store/query.ts'
import { type Following, follow, storedEvent } from './follow.ts'
import type { News, StoredEvent } from './news.ts'
import type { Transactions } from './transactions.ts'
import { userTopic, type Wake } from './wake.ts'

export type { StoredEvent }

type Filter = { types?: string[] | undefined; taskId?: string | undefined }

/** The log of what happened to a user: gapless, in commit order, readable from any instance. */
export type Events = {
  /** The newest sequence number, and the oldest one that is still kept. */
  bounds(userId: string): Promise<{ first: bigint; last: bigint }>
  after(userId: string, seq: bigint, limit: number, filter?: Filter): Promise<StoredEvent[]>
  count(userId: string, seq: bigint, filter?: Filter): Promise<number>
  /** For facts that no task has brought about. In the caller's transaction, and as the last thing there. */
  add(tx: Tx, userId: string, events: readonly NewEvent[]): Promise<void>
  /** After that transaction: streams look at once instead of at their next poll. */
  told(userId: string): void
  /** What comes after `seq`, in pages, each as soon as it is there, until the signal fires. */
  follow(userId: string, seq: bigint, options: Following): AsyncIterable<StoredEvent[]>
}

export const eventsOf = ({
  transactions: { pool },
  wake,
  news,
  clock,
}: {
  transactions: Transactions
  wake: Wake
  news: News
  clock: Clock
}): Events => {
  const matching = (userId: string, seq: bigint, { types, taskId }: Filter = {}) => {
    let query = q.selectFrom('outbox').where('user_id', '=', userId).where('seq', '>', seq)
    if (types) query = query.where('type', '=', (eb) => eb.fn.any(eb.val(types)))
    if (taskId) query = query.where('task_id', '=', taskId)
    return query
  }
  const lastSeq = async (userId: string): Promise<bigint> => {
    const row = await one(pool, q.selectFrom('user_stream').select('seq').where('user_id', '=', userId))
    return BigInt(row?.seq ?? 0)
  }

  return {
    async bounds(userId) {
      const last = await lastSeq(userId)
      const oldest = await one(
        pool,
        q
          .selectFrom('outbox')
          .select((eb) => eb.fn.min('seq').as('seq'))
          .where('user_id', '=', userId),
      )
      return { first: BigInt(oldest?.seq ?? last + 1n), last }
    },
    async after(userId, seq, limit, filter) {
      const rows = await all(pool, matching(userId, seq, filter).selectAll().orderBy('seq').limit(limit))
      return rows.map(storedEvent)
    },
    async count(userId, seq, filter) {
      const row = await one(
        pool,
        matching(userId, seq, filter).select((eb) => eb.fn.countAll<bigint>().as('n')),
      )
      return Number(row?.n ?? 0)
    },
    async add(tx, userId, events) {
      if (events.length === 0) return
      await send(tx, 'select outbox_add($1, null, $2::jsonb, $3)', [
        userId,
        JSON.stringify(events),
        clock.now(),
      ])
    },
    told: (userId) => wake.hint([userTopic(userId)]),
    follow: (userId, seq, options) => follow({ pool, wake, news }, userId, seq, options),
  }
}
