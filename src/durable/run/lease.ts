import type pg from 'pg'
import type { DatabaseTime } from '#durable/time/detect-lost-commits.ts'
import { factColumns, type ServerFacts, type TimeRow, timeColumns } from '#durable/time/wal-position-sql.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { query } from '#store/query.ts'
import {
  type ClaimDeps,
  type ClaimState,
  claimAt,
  claimNow,
  createClaims,
  startClaims,
  stopClaims,
} from './claims.ts'

/** The lease of this instance: its heartbeat, its end, and the release of the tasks of instances that died. */

export type LeasedRun = { lost: AbortController }
type LeaseDeps = Omit<ClaimDeps, 'isLeaseHeld' | 'isOnDuty' | 'hasPeers'> & {
  heartbeats: pg.Pool
  time: Pick<DatabaseTime, 'heartbeat' | 'observe'>
  runs: () => ReadonlyMap<string, LeasedRun>
  onFreed: () => void
}
export type Leases = {
  start(): void
  /** Whether this instance holds its lease; once it does not, another instance may take its tasks. */
  isHeld(): boolean
  /** Whether this instance is on duty, as far as it knows: one live instance polls often, the others rarely. */
  isOnDuty(): boolean
  claimNow(): void
  /** Claims again after a slot became free, if the last claim left due tasks behind. */
  slotFreed(): void
  claimAt(due: Date): void
  stopClaims(): Promise<void>
  /** Releases the tasks and the lease, so that other instances need not wait for its expiry. */
  release(): Promise<void>
} & AsyncDisposable

type LeaseState = {
  deps: LeaseDeps
  claims: ClaimState
  heartbeat: PacedJob | undefined
  isOnDuty: boolean
  others: number
  /** The monotonic time at which the lease ends, counted from before the last heartbeat was sent. */
  heldUntilMs: number
  /** Tasks of this instance without a run at its last heartbeat: a claim's reply was lost, or the run failed. */
  strays: ReadonlySet<string>
  isSkewLogged: boolean
}

const skewMsMax = 2_000
/** How long after the end of another instance's lease its tasks are freed. */
const expiryMarginMs = 20

/**
 * Renews the lease of this instance ($1). Frees the tasks of instances whose lease has ended, and those of its own that
 * it does not run ($3). An instance whose own row is gone has lost all its tasks, and registers again. The statement
 * waits for no row of a task, so that no slow transaction costs a lease. Its time is that of the snapshot: a statement
 * that had to wait must not treat leases as ended that were renewed meanwhile. The statement also counts the heartbeats
 * of this gateway ($4) in `database_witness`, and reads the facts that show whether the database went back to an
 * earlier state.
 */
const heartbeatSql = (facts: ServerFacts): string => {
  const { timeline, lsn } = factColumns(facts)
  return `with renewed as (
    update instance set lease_until = statement_timestamp() + make_interval(secs => $2) where id = $1 returning id),
  registered as (insert into instance (id, started_at, lease_until)
    select $1, statement_timestamp(), statement_timestamp() + make_interval(secs => $2) where not exists (select from renewed)
    on conflict (id) do update set lease_until = excluded.lease_until),
  ended as (delete from instance where id = any(array(
    select id from instance where id <> $1 and lease_until < statement_timestamp() for update skip locked))),
  others as materialized (select id, lease_until from instance where id <> $1 and lease_until >= statement_timestamp()),
  without_run as materialized (select task_id, owner from task_queue where owner is not null
    and case when owner = $1 then task_id = any($3::uuid[]) or not exists (select from renewed)
      else owner not in (select id from others) end for update skip locked),
  freed as (update task_queue set owner = null where task_id = any(array(select task_id from without_run)) returning 1),
  witnessed as (insert into database_witness as w (id, beat, timeline, lsn, seen_at)
    select $4::uuid, 1, ${timeline}, ${lsn}, statement_timestamp()
    on conflict (id) do update set beat = w.beat + 1, timeline = excluded.timeline, lsn = excluded.lsn,
      seen_at = excluded.seen_at returning beat, lsn)
  select (select count(*)::integer from others) as others, (select count(*)::integer from freed) as freed,
    (select extract(epoch from min(lease_until) - statement_timestamp())::float8 * 1000 from others) as "nextEndMs",
    array(select task_id from task_queue where owner = $1 and exists (select from renewed)) as owned,
    not exists (select from others where id < $1) as "isOnDuty", clock_timestamp() as now,
    (select beat from witnessed) as beat, ${timeColumns(facts, '$5', '(select lsn from witnessed)')}`
}

type Heartbeat = TimeRow & {
  others: number
  freed: number
  nextEndMs: number | null
  owned: string[]
  isOnDuty: boolean
  now: Date
}

export function createLeases(deps: LeaseDeps): Leases {
  const isHeld = () => performance.now() < leases.heldUntilMs
  // Without a lease nothing is known about the others, so this instance polls often at its start and after a
  // late heartbeat.
  const isOnDuty = () => leases.isOnDuty || !isHeld()
  const hasPeers = () => leases.others > 0
  const claims = createClaims({ ...deps, isLeaseHeld: isHeld, isOnDuty, hasPeers })
  const leases: LeaseState = {
    deps,
    claims,
    heartbeat: undefined,
    isOnDuty: false,
    others: 0,
    heldUntilMs: Number.NEGATIVE_INFINITY,
    strays: new Set(),
    isSkewLogged: false,
  }
  return {
    start: () => startLeases(leases),
    isHeld,
    isOnDuty,
    claimNow: () => claimNow(claims),
    slotFreed() {
      if (claims.mayHaveMore) claimNow(claims)
    },
    claimAt: (due) => claimAt(claims, due),
    stopClaims: () => stopClaims(claims),
    release: () => releaseLease(deps),
    async [Symbol.asyncDispose]() {
      await stopClaims(claims)
      await leases.heartbeat?.[Symbol.asyncDispose]()
    },
  }
}

function startLeases(leases: LeaseState): void {
  const { deps, claims } = leases
  const { leaseMs } = deps.options
  leases.heartbeat = startPacedJob(() => beat(leases), {
    retryMs: leaseMs / 6,
    onError: (error) => deps.log.warn({ error }, 'heartbeat failed; the next one tries again'),
  })
  startClaims(claims)
}

/** Renews the lease, and returns when to renew it next: earlier if another lease may end before. */
async function beat(leases: LeaseState): Promise<number> {
  const { deps, claims } = leases
  const { leaseMs } = deps.options
  const runs = new Map(deps.runs())
  const strays = [...leases.strays].filter((taskId) => !runs.has(taskId))
  const { facts, values } = await deps.time.heartbeat()
  const sentMs = performance.now()
  const wasHeld = sentMs < leases.heldUntilMs
  const [row] = await query<Heartbeat>(deps.heartbeats, heartbeatSql(facts), [
    deps.instanceId,
    leaseMs / 1_000,
    strays,
    ...values,
  ])
  if (!row) throw new Error('the heartbeat returned no row')
  leases.heldUntilMs = sentMs + leaseMs
  // A money hold that this instance found applies here at once, even if it could not be stored. The next heartbeat
  // tries again to store it for the other instances.
  await deps.time.observe(row).catch((error: unknown) => deps.log.warn({ error }, 'hold of money not stored'))
  const owned = new Set(row.owned)
  for (const [taskId, run] of runs) if (!owned.has(taskId)) run.lost.abort()
  const running = deps.runs()
  leases.strays = new Set(row.owned.filter((taskId) => !running.has(taskId)))
  const isNewOnDuty = row.isOnDuty && !leases.isOnDuty
  const hasLostPeer = row.others < leases.others
  leases.isOnDuty = row.isOnDuty
  leases.others = row.others
  if (row.freed > 0) deps.onFreed()
  if (!wasHeld || isNewOnDuty || hasLostPeer) claimNow(claims)
  checkSkew(leases, row.now.getTime())
  return Math.min(leaseMs / 3, (row.nextEndMs ?? leaseMs) + expiryMarginMs)
}

/** Logs clock skew, because due times use the clock of the instance, and leases that of the database. */
function checkSkew(leases: LeaseState, databaseMs: number): void {
  const { clock, log } = leases.deps
  const skewMs = Math.abs(databaseMs - clock.now().getTime())
  if (skewMs > skewMsMax && !leases.isSkewLogged)
    log.warn({ skewMs }, 'the clock of this machine differs from the clock of the database')
  leases.isSkewLogged = skewMs > skewMsMax
}

/** Ends the lease of an instance, and leaves its tasks to the others. */
export async function releaseLease({
  pool,
  instanceId,
}: Pick<LeaseDeps, 'pool' | 'instanceId'>): Promise<void> {
  await query(
    pool,
    `with freed as (update task_queue set owner = null where owner = $1)
     delete from instance where id = $1`,
    [instanceId],
  )
}
