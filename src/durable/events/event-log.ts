import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne } from '#store/query.ts'
import { appendEvents } from './append-events.ts'
import type { ChangePoller } from './change-poller.ts'
import type { LocalEvents, StoredEvent } from './local-events.ts'
import { type Notifier, userTopic } from './notifier.ts'
import {
  createSharedReads,
  type EventPage,
  readPageAfter,
  type SubscriptionOptions,
  scannedMax,
  storedEvent,
  subscribe,
} from './subscription.ts'

export type { EventPage, StoredEvent }

type Filter = { types?: string[] | undefined; taskId?: string | undefined }

/** The event log of a user: gapless, in commit order, readable from any instance. */
export type EventLog = {
  /** Returns the newest sequence number of the user's events, and the oldest that is still stored. */
  bounds(userId: string): Promise<{ first: bigint; last: bigint }>
  /** Returns a page of events. `total` and `nextAfter` cover the scanned range of the log, which a filter limits. */
  page(
    userId: string,
    after: bigint,
    page: { limit: number; skip?: number },
    filter?: Filter,
  ): Promise<{ events: StoredEvent[]; total: number; nextAfter: bigint }>
  readAfter(
    userId: string,
    seq: bigint,
    options: { types?: readonly string[] | undefined; limit: number },
  ): Promise<EventPage>
  /** Appends events that belong to no task; the call must be the last statement of the caller's transaction. */
  add(tx: Tx, userId: string, events: readonly NewEvent[]): Promise<void>
  /** Wakes the user's streams after the commit of `add`; without this call they wait for their next poll. */
  notify(userId: string): void
  /** Yields the events after `seq` in pages as they are committed, until the signal aborts. */
  subscribe(userId: string, seq: bigint, options: SubscriptionOptions): AsyncIterable<StoredEvent[]>
}

export const createEventLog = ({
  transactions: { pool },
  notifier,
  localEvents,
  changePoller,
  clock,
}: {
  transactions: Transactions
  notifier: Notifier
  localEvents: LocalEvents
  changePoller: ChangePoller
  clock: Clock
}): EventLog => {
  const matching = (userId: string, after: bigint, until: bigint, { types, taskId }: Filter) => {
    let filtered = builder
      .selectFrom('user_event')
      .where('user_id', '=', userId)
      .where('seq', '>', after)
      .where('seq', '<=', until)
    if (types) filtered = filtered.where('type', '=', (eb) => eb.fn.any(eb.val(types)))
    if (taskId) filtered = filtered.where('task_id', '=', taskId)
    return filtered
  }
  const lastSeq = async (userId: string): Promise<bigint> => {
    const row = await fetchOne(
      pool,
      builder.selectFrom('user_event_seq').select('seq').where('user_id', '=', userId),
    )
    return BigInt(row?.seq ?? 0)
  }

  const readPage = createSharedReads(pool)
  const bounds = async (userId: string) => {
    const last = await lastSeq(userId)
    const oldest = await fetchOne(
      pool,
      builder
        .selectFrom('user_event')
        .select((eb) => eb.fn.min('seq').as('seq'))
        .where('user_id', '=', userId),
    )
    return { first: BigInt(oldest?.seq ?? last + 1n), last }
  }

  return {
    bounds,
    async page(userId, after, { limit, skip = 0 }, filter = {}) {
      const { first, last } = await bounds(userId)
      const from = after + 1n < first ? first - 1n : after
      const isFiltered = filter.types !== undefined || filter.taskId !== undefined
      const until = isFiltered && from + scannedMax < last ? from + scannedMax : last
      if (!isFiltered) {
        // A user's sequence has no gaps, so a page without a filter is found and counted by sequence numbers alone.
        const rows = await fetchAll(
          pool,
          matching(userId, from + BigInt(skip), until, {})
            .selectAll()
            .orderBy('seq')
            .limit(limit),
        )
        const total = until > from ? Number(until - from) : 0
        return { events: rows.map(storedEvent), total, nextAfter: rows.at(-1)?.seq ?? after }
      }
      const filtered = matching(userId, from, until, filter)
      const rows = await fetchAll(pool, filtered.selectAll().orderBy('seq').offset(skip).limit(limit))
      const lastRead = rows.at(-1)?.seq
      const count = await fetchOne(
        pool,
        filtered.select((eb) => eb.fn.countAll<bigint>().as('n')),
      )
      const isFull = rows.length === limit && lastRead !== undefined
      const nextAfter = isFull ? lastRead : until > after ? until : after
      return { events: rows.map(storedEvent), total: Number(count?.n ?? 0), nextAfter }
    },
    readAfter: (userId, seq, options) => readPageAfter(pool, userId, seq, options),
    add: (tx, userId, events) => appendEvents(tx, userId, events, clock.now()),
    notify: (userId) => notifier.notify([userTopic(userId)]),
    subscribe: (userId, seq, options) =>
      subscribe({ readPage, notifier, localEvents, changePoller }, userId, seq, options),
  }
}
