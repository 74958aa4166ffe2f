import type pg from 'pg'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Admission } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** Watches whether each commit is on a second server when it is acknowledged, if the installation requires that. */

export type ReplicationRow = {
  standbys: number
  synchronousCommit: string
  /** Whether commits wait although a standby streams: the server requires more, or the standby does not answer. */
  isHeld: boolean
}
export type Replication = {
  /** Whether commits reach a standby; null if no standby is required, or before the first reading. */
  isReplicated(): boolean | null
  /** Throws for a new spend once no standby was there for half a minute; exits, which return money, continue. */
  assertFor(admission: Pick<Admission, 'spend'>): void
  /** Starts the watch of standbys. It is disposed of last in an engine: until then commits may wait for a standby. */
  start(): void
} & AsyncDisposable

export type Durability = 'standby' | 'storage' | 'single'
type ReplicationDeps = {
  /** A pool whose connections no waiting commit occupies. */
  db: pg.Pool
  durability: Durability
  log: Log
  graceMs?: number | undefined
}

/** How long commits wait for an absent standby. No client waits as long for the acknowledgement of a commit. */
const graceMsDefault = 30_000
const lookMs = 1_000
/** While the standby is overdue, waiting commits are released at this interval. */
const releaseMs = 100
/** A probe commit that takes longer than this counts as held by the standbys. */
const heldMsMin = 3_000
const probeSecondsMax = 5

/**
 * A commit that changes nothing and waits for the standbys like every other. Nothing else shows how many of them
 * the server requires, and whether they answer.
 */
const probeSql = `select pg_logical_emit_message(true, 'portico', 'replication')`

/** Counts the streaming standbys; a role without pg_read_all_stats sees no standby's state, so it counts none. */
async function readStandbys(db: Queryable): Promise<Omit<ReplicationRow, 'isHeld'>> {
  const [row] = await query<Omit<ReplicationRow, 'isHeld'>>(
    db,
    `select (select count(*)::integer from pg_stat_replication
        where sync_state in ('sync', 'quorum') and state = 'streaming') as standbys,
       current_setting('synchronous_commit') as "synchronousCommit"`,
  )
  return row!
}

const isLive = ({ standbys, synchronousCommit, isHeld }: ReplicationRow): boolean =>
  standbys > 0 && ['on', 'remote_apply'].includes(synchronousCommit) && !isHeld

/** Tests with a commit whether a live standby answers; must run before anything else is written. */
export async function readIsReplicated(db: Queryable): Promise<boolean> {
  const row = await readStandbys(db)
  if (!isLive({ ...row, isHeld: false })) return false
  const commit = query(db, probeSql, [], heldMsMin)
  return commit.then(
    () => true,
    (error: Error) => {
      if (/^Query read timeout/.test(error.message)) return false
      throw error
    },
  )
}

function createProbe(db: pg.Pool) {
  let client: pg.PoolClient | undefined
  let startedAtMs: number | undefined
  let wasHeld = false
  const isHeld = () => wasHeld || (startedAtMs !== undefined && monotonicMs() - startedAtMs > heldMsMin)
  const run = async () => {
    client = await db.connect()
    startedAtMs = monotonicMs()
    let failure: Error | undefined
    try {
      await query(client, probeSql)
      wasHeld = false
    } catch (error) {
      // A commit that failed at once says nothing about the standbys; only the time that it took counts.
      failure = error as Error
    }
    wasHeld = isHeld()
    client?.release(failure)
    startedAtMs = undefined
  }
  let running: Promise<void> | undefined
  return {
    isHeld,
    start(): void {
      running ??= run()
        .catch(() => {})
        .finally(() => {
          client = undefined
          running = undefined
        })
    },
    /** Drops the connection of a waiting probe, which could wait as long as the standbys are away. */
    async [Symbol.asyncDispose]() {
      const waiting = client
      client = undefined
      waiting?.release(true)
      await running
    },
  }
}

/**
 * While its synchronous standby is away, the server holds every commit, with all its locks, and no timeout ends that
 * wait. A cancel ends it: the commit then stays, and is acknowledged on this server alone.
 * A probe is cancelled only after `probeSecondsMax`, because a cancelled commit looks as if the standby had confirmed it.
 */
const releaseSql = `select pg_cancel_backend(pid) from pg_stat_activity
  where usename = current_user and datname = current_database() and wait_event = 'SyncRep'
    and (query <> $1 or query_start < clock_timestamp() - make_interval(secs => ${probeSecondsMax}))`

export function createReplication({ db, durability, log, graceMs }: ReplicationDeps): Replication {
  const state = createReplicationState({ log, nowMs: monotonicMs, graceMs })
  const probe = createProbe(db)
  let job: PacedJob | undefined
  const look = async () => {
    const row = await readStandbys(db)
    probe.start()
    state.observe({ ...row, isHeld: probe.isHeld() })
    if (!state.isOverdue()) return lookMs
    await query(db, releaseSql, [probeSql])
    return releaseMs
  }
  return {
    ...state,
    start() {
      if (durability !== 'standby') return
      const onError = (error: unknown) =>
        log.warn({ error }, 'the standbys of the database were not read; the next look tries again')
      job ??= startPacedJob(look, { retryMs: lookMs, onError })
    },
    async [Symbol.asyncDispose]() {
      await job?.[Symbol.asyncDispose]()
      await probe[Symbol.asyncDispose]()
    },
  }
}

type StateDeps = { log: Log; nowMs: () => number; graceMs?: number | undefined }

export function createReplicationState({ log, nowMs, graceMs = graceMsDefault }: StateDeps) {
  let isReplicated: boolean | null = null
  let lostAtMs: number | undefined
  const isOverdue = () => lostAtMs !== undefined && nowMs() - lostAtMs >= graceMs
  return {
    isReplicated: () => isReplicated,
    isOverdue,
    observe(row: ReplicationRow) {
      const was = isReplicated
      isReplicated = isLive(row)
      if (isReplicated) lostAtMs = undefined
      else lostAtMs ??= nowMs()
      if (was !== false && !isReplicated) log.error(row, 'the database has no live synchronous standby')
      if (was === false && isReplicated)
        log.warn({ standbys: row.standbys }, 'the database has a synchronous standby again')
    },
    assertFor({ spend }: Pick<Admission, 'spend'>) {
      if (spend?.action.exit !== false || !isOverdue()) return
      throw new Fault(
        'unavailable',
        'The database has no standby at present: only what returns money is accepted, and nothing was sent',
        { extras: { reason: 'not_replicated', retry_after: 10 } },
      )
    },
  }
}
