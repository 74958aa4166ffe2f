import type { TaskIntake } from '#durable/accept/task-intake.ts'
import { type Notifier, slotsTopic } from '#durable/events/notifier.ts'
import { newestKind } from '#durable/task/task-kinds.ts'
import type { Transactions } from '#durable/transactions.ts'
import { later } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import { systemOwner, type TaskKind, type Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { query } from '#store/query.ts'
import { type DueRow, type DueRowsDeps, type DueSource, startDueRows } from './due-rows.ts'

type SchedulerDeps = DueRowsDeps & {
  notifier: Pick<Notifier, 'on' | 'notify'>
  intake: Pick<TaskIntake, 'enqueueOnce'>
  kinds: ReadonlyMap<string, TaskKind>
  random: Random
}
export type NewSchedule = {
  id?: string
  userId?: string
  kind: string
  input: JsonObject
  everySeconds: number
  firstAt: Date
}
export type Scheduler = {
  /** Inserts a missing schedule. Every instance ensures the system schedules at its start. */
  ensure(pool: Transactions['pool'], schedule: NewSchedule): Promise<string>
  start(): void
} & AsyncDisposable

type DueSchedule = {
  id: string
  user_id: string | null
  kind: string
  input: JsonObject
  every_seconds: number
  next_at: Date
}

/** Returns the first slot after `now`, on the original grid of the schedule. */
export function nextSlot(slot: Date, everySeconds: number, now: Date): Date {
  const everyMs = everySeconds * 1000
  const missed = Math.floor((now.getTime() - slot.getTime()) / everyMs)
  return later(slot, everyMs * (Math.max(0, missed) + 1))
}

/** Enqueues one task per slot of a fixed grid: the slot is part of the idempotency key. */
export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { clock, random, notifier } = deps
  let dueRows: AsyncDisposable | undefined
  return {
    async ensure(pool, { id = uuidv7(clock.now(), random), userId, kind, input, everySeconds, firstAt }) {
      const inserted = await query(
        pool,
        `insert into schedule (id, user_id, kind, input, every_seconds, next_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing returning id`,
        [id, userId ?? null, kind, JSON.stringify(input), everySeconds, firstAt, clock.now()],
      )
      if (inserted.length > 0) notifier.notify([slotsTopic])
      return id
    },
    start() {
      dueRows = startDueRows(deps, scheduleSource(deps))
    },
    async [Symbol.asyncDispose]() {
      await dueRows?.[Symbol.asyncDispose]()
    },
  }
}

/** Serves the slots of schedules, except those whose task kind only another version of the gateway has. */
const scheduleSource = ({
  transactions,
  intake,
  kinds,
}: Pick<SchedulerDeps, 'transactions' | 'intake' | 'kinds'>): DueSource<DueSchedule> => {
  const kindNames = () => [...new Set([...kinds.values()].map(({ kind }) => kind))]
  return {
    name: 'schedule',
    findNext: ({ limit, except }) =>
      query<DueRow>(
        transactions.pool,
        `select id, next_at as at from schedule where kind = any($1) and id <> all($2::uuid[]) order by next_at limit $3`,
        [kindNames(), except, limit],
      ),
    lockDue: (tx, now, { limit, ids, except }) =>
      query<DueSchedule>(
        tx,
        `select * from schedule where next_at <= $1 and kind = any($2) and ($3::uuid[] is null or id = any($3))
           and id <> all($4::uuid[]) order by next_at limit $5 for update skip locked`,
        [now, kindNames(), ids, except, limit],
      ),
    async serve(tx: Tx, rows, now) {
      const next = new Map(rows.map((due) => [due.id, nextSlot(due.next_at, due.every_seconds, now)]))
      await query(
        tx,
        `update schedule s set next_at = n.at from unnest($1::uuid[], $2::timestamptz[]) n (id, at) where s.id = n.id`,
        [[...next.keys()], [...next.values()]],
      )
      await intake.enqueueOnce(
        tx,
        rows.map((due) => slotTask(due, newestKind(kinds, due.kind)!)),
      )
      return next
    },
  }
}

const slotTask = (due: DueSchedule, kind: TaskKind) => ({
  userId: due.user_id ?? systemOwner,
  kind,
  input: due.input,
  admission: { data: {}, first: Object.keys(kind.steps)[0]! },
  key: {
    key: internalKey('sched', `${due.id} ${due.next_at.toISOString()}`),
    operation: `schedule:${due.kind}`,
    hash: bodyHash(due.kind, due.input),
  },
})
