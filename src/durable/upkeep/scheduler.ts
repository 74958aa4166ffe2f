import type { TaskIntake } from '#durable/accept/task-intake.ts'
import { newestKind } from '#durable/task/task-kinds.ts'
import type { Transactions } from '#durable/transactions.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import { systemOwner, type TaskKind, type Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { query } from '#store/query.ts'

type SchedulerDeps = {
  transactions: Transactions
  intake: TaskIntake
  kinds: ReadonlyMap<string, TaskKind>
  clock: Clock
  random: Random
  log: Log
  /** The instance on duty runs due schedules at once; the others wait to see whether it does. */
  isOnDuty: () => boolean
  /** Claims what a schedule has made; a hint to all instances would make each of them claim. */
  claimNow: () => void
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

/** A schedule that another instance has made is found within this time. */
const pollMs = 10_000
const retryMs = 1_000
/** How long after a slot an instance that is not on duty runs it. */
const standInMs = 500
/** The pause if another instance holds the row of the due schedule. */
const lockedMs = 250
const batchMax = 20

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

/** Enqueues one task per slot without a leader: the slot is part of the idempotency key. */
export function createScheduler({
  transactions,
  intake,
  kinds,
  clock,
  random,
  log,
  isOnDuty,
  claimNow,
}: SchedulerDeps): Scheduler {
  let job: PacedJob | undefined

  const enqueueDue = async (tx: Tx, due: DueSchedule, now: Date): Promise<Date> => {
    const kind = newestKind(kinds, due.kind)
    const next = nextSlot(due.next_at, due.every_seconds, now)
    await query(tx, 'update schedule set next_at = $2 where id = $1', [due.id, next])
    if (!kind) return next
    const key = internalKey('sched', `${due.id} ${due.next_at.toISOString()}`)
    await intake.enqueue(tx, {
      userId: due.user_id ?? systemOwner,
      kind,
      input: due.input,
      admission: { data: {}, first: Object.keys(kind.steps)[0]! },
      key: { key, operation: `schedule:${due.kind}`, hash: bodyHash(due.kind, due.input) },
    })
    return next
  }

  const tick = async (): Promise<number> => {
    const now = clock.now()
    // One more than a batch is read, which shows the earliest of the others without another query.
    const upcoming = await query<{ id: string; at: Date }>(
      transactions.pool,
      'select id, next_at as at from schedule where next_at is not null order by next_at limit $1',
      [batchMax + 1],
    )
    const untilMs = (at: Date) => at.getTime() + (isOnDuty() ? 0 : standInMs) - now.getTime()
    const first = upcoming[0]
    const dueInMs = first ? untilMs(first.at) : pollMs
    if (dueInMs > 0) return Math.min(dueInMs, pollMs)
    const slots = await transactions.run(async (tx) => {
      const rows = await query<DueSchedule>(
        tx,
        'select * from schedule where next_at <= $1 order by next_at limit $2 for update skip locked',
        [now, batchMax],
      )
      const next = new Map<string, Date>()
      for (const row of rows) next.set(row.id, await enqueueDue(tx, row, now))
      return next
    })
    if (slots.size > 0) claimNow()
    if (slots.size === batchMax) return 0
    const others = upcoming.filter(({ id }) => !slots.has(id)).map(({ at }) => at)
    const nextInMs = Math.min(pollMs, ...[...others, ...slots.values()].map(untilMs))
    return Math.max(nextInMs, lockedMs)
  }

  return {
    async ensure(pool, { id = uuidv7(clock.now(), random), userId, kind, input, everySeconds, firstAt }) {
      await query(
        pool,
        `insert into schedule (id, user_id, kind, input, every_seconds, next_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing`,
        [id, userId ?? null, kind, JSON.stringify(input), everySeconds, firstAt, clock.now()],
      )
      job?.runWithin()
      return id
    },
    start() {
      job = startPacedJob(tick, {
        retryMs,
        onError: (error) => log.warn({ error }, 'schedule poll failed; the next poll tries again'),
      })
    },
    async [Symbol.asyncDispose]() {
      await job?.[Symbol.asyncDispose]()
    },
  }
}
