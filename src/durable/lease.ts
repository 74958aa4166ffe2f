import type pg from 'pg'
import { repeat } from '#kernel/repeat.ts'
import { query } from '#store/query.ts'
import { type ClaimDeps, type ClaimState, claimAt, claimNow, createClaims } from './task-claims.ts'

/** The leases of this instance: heartbeat, sweep of expired leases, release. */

type LeasedTask = { id: string; epoch: number }
type LeaseDeps = ClaimDeps & {
  heartbeats: pg.Pool
  /** The tasks that this instance runs; any other lease of it expires. */
  leased: () => LeasedTask[]
  /** Another instance claimed the task, or the sweep released it. */
  onLost: (task: LeasedTask) => void
  /** The number of other live instances. */
  onPeerCount: (others: number) => void
}
export type Leases = {
  start(): void
  claimNow(): void
  /** Claims again where the last claim left due tasks behind. */
  slotFreed(): void
  claimAt(due: Date): void
  /** Releases every lease, so that other instances need not wait for it to expire. */
  releaseAll(): Promise<void>
} & AsyncDisposable

type LeaseState = {
  deps: LeaseDeps
  claims: ClaimState
  jobs: AsyncDisposableStack
  isSkewLogged: boolean
}

const sweepMs = 500
const skewMsMax = 2_000

/**
 * Skips locked rows, so that one slow transaction delays the lease of no other task: a commit renews its own lease, and
 * the sweep skips the same row.
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

export function createLeases(deps: LeaseDeps): Leases {
  const claims = createClaims(deps)
  const leases: LeaseState = { deps, claims, jobs: new AsyncDisposableStack(), isSkewLogged: false }
  return {
    start: () => startLeases(leases),
    claimNow: () => claimNow(claims),
    slotFreed() {
      if (claims.mayHaveMore) claimNow(claims)
    },
    claimAt: (due) => claimAt(claims, due),
    releaseAll: () => releaseAll(deps),
    [Symbol.asyncDispose]: () => stopLeases(leases),
  }
}

function startLeases(leases: LeaseState): void {
  const { deps, claims, jobs } = leases
  const { leaseMs, pollMs } = deps.options
  claims.stopped = false
  const warn = (name: string) => (error: unknown) =>
    deps.log.warn({ error }, `${name} failed; the next one tries again`)
  jobs.use(
    repeat(() => heartbeat(leases), {
      everyMs: leaseMs / 3,
      immediately: true,
      onError: warn('heartbeat'),
    }),
  )
  jobs.use(repeat(() => sweepExpired(leases), { everyMs: sweepMs, onError: warn('sweep of expired leases') }))
  jobs.use(repeat(async () => claimNow(claims), { everyMs: pollMs, immediately: true }))
}

async function heartbeat(leases: LeaseState): Promise<void> {
  const { deps } = leases
  const tasks = deps.leased()
  const [row] = await query<{ others: number; now: Date; lost: LeasedTask[] }>(
    deps.heartbeats,
    heartbeatSql,
    [
      deps.instanceId,
      deps.options.leaseMs / 1000,
      tasks.map(({ id }) => id),
      tasks.map(({ epoch }) => epoch),
    ],
  )
  if (!row) return
  deps.onPeerCount(row.others)
  for (const task of row.lost) deps.onLost(task)
  checkSkew(leases, row.now.getTime())
}

/** Deadlines and due times use the clock of the instance, leases the clock of the database. */
function checkSkew(leases: LeaseState, databaseMs: number): void {
  const { clock, log } = leases.deps
  const skewMs = Math.abs(databaseMs - clock.now().getTime())
  if (skewMs > skewMsMax && !leases.isSkewLogged)
    log.warn({ skewMs }, 'the clock of this machine differs from the clock of the database')
  leases.isSkewLogged = skewMs > skewMsMax
}

async function sweepExpired({ deps, claims }: LeaseState): Promise<void> {
  const freed = await query(
    deps.pool,
    `update task set owner = null where id in (select id from task where owner is not null
       and lease_until < clock_timestamp() limit 500 for update skip locked) returning id`,
  )
  if (freed.length > 0) claimNow(claims)
}

async function releaseAll({ pool, instanceId }: LeaseDeps): Promise<void> {
  await query(pool, 'update task set owner = null where owner = $1', [instanceId])
  await query(pool, 'delete from instance where id = $1', [instanceId])
}

async function stopLeases({ claims, jobs }: LeaseState): Promise<void> {
  claims.stopped = true
  clearTimeout(claims.next?.timer)
  await jobs.disposeAsync()
  await claims.claiming
}
