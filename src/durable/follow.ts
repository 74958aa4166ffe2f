import type pg from 'pg'
import { send } from '#store/query.ts'
import type { ChangePoller } from './change-poller.ts'
import type { News, StoredEvent } from './news.ts'
import { bell } from './wait.ts'
import { userTopic, type Wake } from './wake.ts'

export type Following = { types?: string[] | undefined; signal: AbortSignal }
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

const pageMost = 200
const freshMost = 64
/** Events that one look with a filter goes through: one that lets nothing pass would read the whole log. */
export const filteredMax = 20_000n

/** In one statement, and so of one moment: what no filter lets pass is passed over and not read again. */
const pageSql = `
  select s.seq as newest, e.*
  from user_stream s left join lateral (
    select seq, type, task_id, subject, body, at from outbox
    where user_id = $1 and seq > $2 and seq <= $2 + ${filteredMax} and ($3::text[] is null or type = any($3)) order by seq limit ${pageMost}
  ) e on true
  where s.user_id = $1 order by e.seq`

type Needs = { pool: pg.Pool; wake: Wake; news: News; changes: ChangePoller }
type Page = { events: StoredEvent[]; upTo: bigint; isFull: boolean }

async function pageAfter(pool: pg.Pool, userId: string, seq: bigint, types?: string[]): Promise<Page> {
  const rows = await send<EventRow & { newest: bigint }>(pool, pageSql, [userId, seq, types ?? null])
  const found = rows.filter(({ type }) => type !== null)
  const newest = BigInt(rows[0]?.newest ?? 0)
  const passed = newest > seq + filteredMax ? seq + filteredMax : newest
  const upTo = found.length === pageMost ? BigInt(found.at(-1)?.seq ?? passed) : passed
  const isFull = found.length === pageMost || passed < newest
  return { events: found.map(storedEvent), upTo: upTo > seq ? upTo : seq, isFull }
}

/** Pages that follow `seq` without a gap. */
function nextOf(fresh: StoredEvent[][], seq: bigint): { next: StoredEvent[]; gap: boolean } {
  const next: StoredEvent[] = []
  let gap = false
  for (const page of fresh) {
    const wanted = seq + BigInt(next.length) + 1n
    const first = BigInt(page[0]?.id ?? 0)
    if (first === wanted) next.push(...page)
    else if (first > wanted) gap = true
  }
  return { next, gap }
}

/** The log of a user from `seq` on: from this instance's own commits where they join on, else from the database. */
export async function* follow(
  { pool, wake, news, changes: poller }: Needs,
  userId: string,
  from: bigint,
  { types, signal }: Following,
): AsyncGenerator<StoredEvent[]> {
  let fresh: StoredEvent[][] = []
  let ask = true
  using changes = bell(signal)
  using _told = news.on(userId, (page) => {
    if (fresh.length < freshMost) fresh.push(page)
    else ask = true
    changes.ring()
  })
  using _hinted = wake.on(userTopic(userId), () => {
    if (news.isTelling()) return
    ask = true
    changes.ring()
  })
  let seq = from
  // A hint of another instance may have been lost.
  using _polled = poller.onEvents(userId, {
    seq: () => seq,
    notify() {
      ask = true
      changes.ring()
    },
  })
  while (!signal.aborted) {
    changes.forget()
    const { next, gap } = nextOf(fresh, seq)
    fresh = []
    seq += BigInt(next.length)
    const wanted = types ? next.filter(({ type }) => types.includes(type)) : next
    if (wanted.length > 0) yield wanted
    if (ask || gap) {
      ask = false
      const { events, upTo, isFull } = await pageAfter(pool, userId, seq, types)
      seq = upTo
      ask ||= isFull
      if (events.length > 0) yield events
      if (ask) continue
    }
    await changes.rung()
  }
}
