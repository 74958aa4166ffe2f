import type pg from 'pg'
import { createLatch } from '#kernel/async/latch.ts'
import { query } from '#store/query.ts'
import type { ChangePoller } from './change-poller.ts'
import type { LocalEvents, StoredEvent } from './local-events.ts'
import { type Notifier, userTopic } from './notifier.ts'

export type SubscriptionOptions = { types?: string[] | undefined; signal: AbortSignal }
export type EventRow = {
  seq: bigint
  type: string
  task_id: string | null
  subject: object | null
  body: object
  at: Date
}

export const storedEvent = (row: EventRow): StoredEvent => ({
  id: String(row.seq),
  type: row.type,
  task_id: row.task_id,
  subject: row.subject as StoredEvent['subject'],
  data: row.body,
  created_at: row.at.toISOString(),
})

const pageMax = 200
const bufferedMax = 64
/** Limits the events that one filtered query scans: a filter without matches would scan the whole log. */
export const scannedMax = 20_000n

/** The page and `newest` come from one snapshot, so events up to `newest` that were filtered out are passed. */
const pageSql = `
  select s.seq as newest, e.*, (select min(seq) from user_event where user_id = $1) as oldest
  from user_event_seq s left join lateral (
    select seq, type, task_id, subject, body, at from user_event
    where user_id = $1 and seq > $2 and seq <= $2 + ${scannedMax} and ($3::text[] is null or type = any($3)) order by seq limit $4
  ) e on true
  where s.user_id = $1 order by e.seq`

type SubscriptionDeps = {
  readPage: ReadPage
  notifier: Notifier
  localEvents: LocalEvents
  changePoller: ChangePoller
}
/** A page of events: all up to `upTo` were read or are not wanted. `oldest` is the first event still stored. */
export type EventPage = { events: StoredEvent[]; upTo: bigint; oldest: bigint; isFull: boolean }
type PageOptions = { types?: readonly string[] | undefined; limit?: number }

export async function readPageAfter(
  pool: pg.Pool,
  userId: string,
  seq: bigint,
  { types, limit = pageMax }: PageOptions,
): Promise<EventPage> {
  const rows = await query<EventRow & { newest: bigint; oldest: bigint | null }>(pool, pageSql, [
    userId,
    seq,
    types ?? null,
    limit,
  ])
  const found = rows.filter(({ type }) => type !== null)
  const newest = BigInt(rows[0]?.newest ?? 0)
  const passed = newest > seq + scannedMax ? seq + scannedMax : newest
  const upTo = found.length === limit ? BigInt(found.at(-1)?.seq ?? passed) : passed
  const isFull = found.length === limit || passed < newest
  const oldest = BigInt(rows[0]?.oldest ?? newest + 1n)
  return { events: found.map(storedEvent), upTo: upTo > seq ? upTo : seq, oldest, isFull }
}

type ReadPage = (userId: string, seq: bigint, types: string[] | undefined) => Promise<EventPage>

/** Streams of one user that wake together at the same position read the same page once. */
export function createSharedReads(pool: pg.Pool): ReadPage {
  const scheduled = new Map<string, Promise<EventPage>>()
  const nextTick = () => new Promise<void>((resolve) => process.nextTick(resolve))
  return (userId, seq, types) => {
    const key = [userId, seq, ...(types ?? [])].join(' ')
    const known = scheduled.get(key)
    if (known) return known
    // A read that has begun may not see the commit that woke another stream, so no stream may join it.
    const read = nextTick().then(() => {
      scheduled.delete(key)
      return readPageAfter(pool, userId, seq, { types })
    })
    scheduled.set(key, read)
    return read
  }
}

function contiguousAfter(buffered: StoredEvent[][], seq: bigint): { next: StoredEvent[]; gap: boolean } {
  const next: StoredEvent[] = []
  let gap = false
  for (const page of buffered) {
    const wanted = seq + BigInt(next.length) + 1n
    const first = BigInt(page[0]?.id ?? 0)
    if (first === wanted) next.push(...page)
    else if (first > wanted) gap = true
  }
  return { next, gap }
}

/** Yields the events after `from`: local commits if they are contiguous, otherwise rows of the database. */
export async function* subscribe(
  { readPage, notifier, localEvents, changePoller: poller }: SubscriptionDeps,
  userId: string,
  from: bigint,
  { types, signal }: SubscriptionOptions,
): AsyncGenerator<StoredEvent[]> {
  let buffered: StoredEvent[][] = []
  let mustRead = true
  using latch = createLatch(signal)
  using _local = localEvents.on(userId, (page) => {
    if (buffered.length < bufferedMax) buffered.push(page)
    else mustRead = true
    latch.set()
  })
  using _notified = notifier.on(userTopic(userId), () => {
    if (localEvents.isPublishing()) return
    mustRead = true
    latch.set()
  })
  let seq = from
  using _polling = poller.onEvents(userId, {
    seq: () => seq,
    notify() {
      mustRead = true
      latch.set()
    },
  })
  while (!signal.aborted) {
    latch.reset()
    const { next, gap } = contiguousAfter(buffered, seq)
    buffered = []
    seq += BigInt(next.length)
    const wanted = types ? next.filter(({ type }) => types.includes(type)) : next
    if (wanted.length > 0) yield wanted
    if (mustRead || gap) {
      mustRead = false
      const { events, upTo, isFull } = await readPage(userId, seq, types)
      seq = upTo
      mustRead ||= isFull
      if (events.length > 0) yield events
      if (mustRead) continue
    }
    await latch.wait()
  }
}
