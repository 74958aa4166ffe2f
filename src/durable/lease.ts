import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import { asTask, type Task } from './task-row.ts'

type LeasedTask = { id: string; epoch: number }
type LeaseDeps = {
  pool: pg.Pool
  heartbeats: pg.Pool
  clock: Clock
  log: Log
  instanceId: string
  options: { slots: number; leaseMs: number; pollMs: number }
  capacity: (priority: 0 | 1) => number
  /** The users who have their share of the slots for tasks of this priority. */
  usersAtShare: (priority: 0 | 1) => string[]
  onClaimed: (task: Task) => void
  /** The kinds and versions that this instance can run; the others are left to those that can. */
  kinds: () => string[]
  /** What this instance works on; a lease that nobody works under runs out. */
  leased: () => LeasedTask[]
  /** Another claim has the task, or nobody has. */
  onLost: (task: LeasedTask) => void
  /** How many other instances are alive. */
  onPeerCount: (others: number) => void
}

const batchMax = 16
const sweepMs = 500
const skewMsMax = 2_000

/** Materialized: a subquery that is planned as a join may be evaluated again, and then locks and claims more. */
const claimSql = `with due as materialized (select id from task where status in ('pending', 'running') and owner is null
    and run_at <= $3 and priority <= $4 and kind || '@' || kind_version = any($6::text[])
    and user_id <> all(case priority when 0 then $8::uuid[] else $7::uuid[] end)
    order by priority, run_at limit $5 for update skip locked)
  update task set owner = $1, status = 'running', epoch = epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $2)
  from due where task.id = due.id returning task.*`

/**
 * A locked row is skipped, so that one slow transaction costs no other task its lease: a commit renews the lease by
 * itself, and the sweep skips the same row.
 */
const heartbeatSql = `with beat as (insert into instance (id, started_at, seen_at) values ($1, clock_timestamp(), clock_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at),
  held as materialized (select * from unnest($3::uuid[], $4::integer[]) as h (id, epoch)),
  mine as materialized (select task.id from task join held on held.id = task.id and held.epoch = task.epoch
    where task.owner = $1 for no key update of task skip locked),
  renewed as (update task set lease_until = clock_timestamp() + make_interval(secs => $2) from mine where task.id = mine.id)
  select (select count(*)::integer from instance
      where id <> $1 and seen_at > clock_timestamp() - make_interval(secs => $2)) as others,
    clock_timestamp() as now,
    coalesce((select json_agg(held) from held join task on task.id = held.id
      where task.owner is distinct from $1 or task.epoch <> held.epoch), '[]') as lost`

/** Which instance works on which task: claims, keeps leases alive, and frees those of the dead. */
export type Leases = ReturnType<typeof createLeases>

export function createLeases({
  pool,
  heartbeats,
  clock,
  log,
  instanceId,
  options,
  capacity,
  usersAtShare,
  kinds,
  onClaimed,
  leased,
  onLost,
  onPeerCount,
}: LeaseDeps) {
  const leaseSeconds = options.leaseMs / 1000
  const timers: NodeJS.Timeout[] = []
  let claimTimer: { at: number; timer: NodeJS.Timeout } | undefined
  let claiming: Promise<void> | undefined
  let claimAgain = false
  let stopped = true
  /** Whether the last claim may have left something behind for want of room. */
  let mayHaveMore = true

  /** Priorities up to `most`: when the ordinary slots are full, only exits are asked for. */
  const claimOnce = async (): Promise<boolean> => {
    const ordinary = capacity(1)
    const priorityMax = ordinary > 0 ? 2 : 0
    const limit = Math.min(batchMax, ordinary > 0 ? ordinary : capacity(0))
    mayHaveMore = true
    if (limit === 0) return false
    const [usersFull, usersFullOfExits] = [usersAtShare(1), usersAtShare(0)]
    const values = [
      instanceId,
      leaseSeconds,
      clock.now(),
      priorityMax,
      limit,
      kinds(),
      usersFull,
      usersFullOfExits,
    ]
    const rows = await query(pool, claimSql, values)
    for (const row of rows) onClaimed(asTask(row as Task))
    mayHaveMore = ordinary === 0 || rows.length === limit || usersFull.length > 0
    return rows.length === limit
  }

  const claimNow = (): void => {
    if (stopped) return
    if (claiming) {
      claimAgain = true
      return
    }
    claiming = (async () => {
      do {
        claimAgain = false
        while (!stopped && (await claimOnce()));
      } while (claimAgain && !stopped)
    })()
      .catch((error: unknown) => log.warn({ error }, 'tasks could not be claimed; the next poll tries again'))
      .finally(() => {
        claiming = undefined
        if (claimAgain) claimNow()
      })
  }

  let isSkewLogged = false
  /** Deadlines and due times are judged by each instance's own clock, leases by the database's. */
  const checkSkew = (databaseMs: number) => {
    const skewMs = Math.abs(databaseMs - clock.now().getTime())
    if (skewMs > skewMsMax && !isSkewLogged)
      log.warn({ skewMs }, 'the clock of this machine differs from the clock of the database')
    isSkewLogged = skewMs > skewMsMax
  }

  const heartbeat = async () => {
    const tasks = leased()
    const [row] = await query<{ others: number; now: Date; lost: LeasedTask[] }>(heartbeats, heartbeatSql, [
      instanceId,
      leaseSeconds,
      tasks.map(({ id }) => id),
      tasks.map(({ epoch }) => epoch),
    ])
    if (!row) return
    onPeerCount(row.others)
    for (const task of row.lost) onLost(task)
    checkSkew(row.now.getTime())
  }

  const sweep = async () => {
    const freed = await query(
      pool,
      `update task set owner = null where id in (select id from task where owner is not null
         and lease_until < clock_timestamp() limit 500 for update skip locked) returning id`,
    )
    if (freed.length > 0) claimNow()
  }

  const every = (ms: number, what: string, run: () => Promise<void>, immediately = false) => {
    let busy = false
    const tick = () => {
      if (busy) return
      busy = true
      run()
        .catch((error: unknown) => log.warn({ error }, `the ${what} failed; the next one tries again`))
        .finally(() => {
          busy = false
        })
    }
    if (immediately) tick()
    timers.push(setInterval(tick, ms))
  }

  return {
    start() {
      stopped = false
      every(options.leaseMs / 3, 'heartbeat', heartbeat, true)
      every(sweepMs, 'sweep of expired leases', sweep)
      every(options.pollMs, 'poll', async () => claimNow())
      claimNow()
    },
    claimNow,
    /** There is room for one more. */
    slotFreed() {
      if (mayHaveMore) claimNow()
    },
    /** Claims again when a parked task becomes due, without waiting for the poll. */
    claimAt(due: Date) {
      const at = due.getTime()
      if (stopped || (claimTimer && claimTimer.at <= at)) return
      clearTimeout(claimTimer?.timer)
      const timer = setTimeout(
        () => {
          claimTimer = undefined
          claimNow()
        },
        Math.min(Math.max(0, at - clock.now().getTime()), options.pollMs),
      )
      claimTimer = { at, timer }
    },
    /** Gives back what is still leased, so that others need not wait for the lease to run out. */
    async releaseAll() {
      await query(pool, 'update task set owner = null where owner = $1', [instanceId])
      await query(pool, 'delete from instance where id = $1', [instanceId])
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      for (const timer of timers) clearInterval(timer)
      clearTimeout(claimTimer?.timer)
      await claiming
    },
  }
}
