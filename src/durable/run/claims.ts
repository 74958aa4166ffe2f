import type pg from 'pg'
import { asTask, type Task } from '#durable/task/task-row.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { TaskPriority } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { TaskRow } from '#store/tables/durable.ts'

export type Capacity = {
  exits: number
  /** The free slots of ordinary tasks. Exits (tasks that reduce risk) may take them too. */
  ordinary: number
  /** The most slots that background tasks may take while ordinary slots are free. */
  backgroundMax: number
  /** The slots that background tasks may take even while ordinary tasks use all of theirs. */
  backgroundMin: number
  /** The free slots of conversations (chats and images), which no other task takes. */
  conversations: number
  /** The free slots of conversations that nobody waits for: runs of schedules and their chats. */
  unattended: number
}
export type ClaimDeps = {
  pool: pg.Pool
  clock: Clock
  log: Log
  instanceId: string
  options: { leaseMs: number; pollMs: number }
  isLeaseHeld: () => boolean
  /** Whether this instance is on duty and polls for due tasks often; other instances poll rarely. */
  isOnDuty: () => boolean
  hasPeers: () => boolean
  /** Called if there may be due tasks that this instance has no slots for. */
  onSaturated: () => void
  capacity: () => Capacity
  /** Returns the users who hold their share of a priority's slots, and how many every other user may still take. */
  userShares: (priority: 0 | 1 | 3 | 4) => { full: string[]; left: number }
  priorityOf: (task: Task) => number
  onClaimed: (task: Task) => void
  /** Returns the task kinds and versions that this instance can run; tasks of other kinds are left to its peers. */
  kinds: () => string[]
}

const batchMax = 16
/**
 * How many poll intervals pass between two claims of an instance that is not on duty, and of an instance without peers.
 * Both also claim when a hint arrives.
 */
const restPolls = 8
const alonePolls = 5
/** Tasks that become due within this span share one claim. */
const dueGrainMs = 10

const dueOf = (priority: TaskPriority, usersFull: string, limit: string): string =>
  `select task_id from task_queue where owner is null and priority = ${priority} and run_at <= $2
     and kind = any($3::text[]) and user_id <> all(${usersFull}::uuid[]) order by run_at limit ${limit} for update skip locked`

const nextDueOf = (priority: number): string =>
  `(select min(run_at) from task_queue where owner is null and priority = ${priority} and run_at > $2)`

/**
 * Each priority has its own scan, so that a backlog of one does not hide the tasks of another. The scans are
 * materialized, because the planner may evaluate a joined subquery twice; arrays make it look each task up by key.
 * A locked task is skipped, because its transaction locks the task before its place in the queue.
 */
const claimSql = `with exits as materialized (${dueOf(0, '$5', '$6')}),
  ordinary as materialized (${dueOf(1, '$4', 'greatest(0, $7 - (select count(*) from exits))')}),
  background as materialized (${dueOf(
    2,
    '$4',
    'least($8, greatest($9, $7 - (select count(*) from exits) - (select count(*) from ordinary)))',
  )}),
  conversations as materialized (${dueOf(3, '$10', '$11')}),
  unattended as materialized (${dueOf(4, '$12', '$13')}),
  due as materialized (table exits union all table ordinary union all table background union all table conversations
    union all table unattended),
  free as materialized (select id from task where id = any(array(select task_id from due)) for no key update skip locked),
  owned as (update task_queue set owner = $1 where task_id = any(array(select id from free))),
  claimed as (update task set status = 'running', version = version + 1 where id = any(array(select id from free)) returning *),
  parked as (select least(${[0, 1, 2, 3, 4].map(nextDueOf).join()}) as "nextDue")
  select claimed.*, "nextDue" from parked left join claimed on true`

export type ClaimState = {
  deps: ClaimDeps
  job: PacedJob | undefined
  parkedUntil: Set<number>
  /** When the next of all parked tasks is due, as of the last claim. */
  nextDue: Date | null
  stopped: boolean
  /** Whether the last claim may have left due tasks behind for lack of slots. */
  mayHaveMore: boolean
}

export const createClaims = (deps: ClaimDeps): ClaimState => ({
  deps,
  job: undefined,
  parkedUntil: new Set(),
  nextDue: null,
  stopped: false,
  mayHaveMore: true,
})

export function startClaims(claims: ClaimState): void {
  const { log, options } = claims.deps
  claims.job = startPacedJob(() => claimAll(claims), {
    retryMs: options.pollMs,
    onError: (error) => log.warn({ error }, 'claim of tasks failed; the next poll tries again'),
  })
}

export async function stopClaims(claims: ClaimState): Promise<void> {
  claims.stopped = true
  await claims.job?.[Symbol.asyncDispose]()
}

export const claimNow = ({ job }: ClaimState): void => job?.runWithin()

/** Claims tasks until no capacity or no due task is left, and returns the time until the next claim. */
async function claimAll(claims: ClaimState): Promise<number> {
  const { isOnDuty, hasPeers, capacity, onSaturated } = claims.deps
  while (!claims.stopped && (await claimBatch(claims)));
  // Only the instance on duty polls often; if it cannot claim, it notifies the others.
  if (isOnDuty() && hasPeers() && capacity().ordinary === 0) onSaturated()
  return untilNextClaimMs(claims)
}

function untilNextClaimMs({ deps, parkedUntil, nextDue }: ClaimState): number {
  const { clock, options, isOnDuty, hasPeers } = deps
  const now = clock.now().getTime()
  for (const at of parkedUntil) if (at <= now) parkedUntil.delete(at)
  const dues = [...parkedUntil, ...(isOnDuty() && nextDue ? [nextDue.getTime()] : [])]
  const polls = !isOnDuty() ? restPolls : hasPeers() ? 1 : alonePolls
  return Math.min(polls * options.pollMs, ...dues.map((at) => Math.max(0, at - now)))
}

/** Claims again when a parked task becomes due, before the next poll. */
export function claimAt({ deps, job, parkedUntil }: ClaimState, due: Date): void {
  const at = Math.ceil(due.getTime() / dueGrainMs) * dueGrainMs
  parkedUntil.add(at)
  job?.runWithin(Math.max(0, at - deps.clock.now().getTime()))
}

/** Claims a batch of due tasks; returns true if more tasks may be due and there is capacity for them. */
async function claimBatch(claims: ClaimState): Promise<boolean> {
  const { pool, clock, instanceId, isLeaseHeld, userShares, priorityOf, onClaimed, kinds } = claims.deps
  claims.mayHaveMore = true
  // The next heartbeat renews the lease and claims again.
  if (!isLeaseHeld()) return false
  const capacity = claims.deps.capacity()
  const [share, exitShare] = [userShares(1), userShares(0)]
  const [conversationShare, unattendedShare] = [userShares(3), userShares(4)]
  // One statement may claim the tasks of a single user, so each limit is also capped by the slots left to each user.
  const exitsMax = Math.min(batchMax, capacity.exits, exitShare.left)
  const ordinaryMax = Math.min(batchMax, capacity.ordinary, share.left)
  const conversationsMax = Math.min(batchMax, capacity.conversations, conversationShare.left)
  const unattendedMax = Math.min(batchMax, capacity.unattended, unattendedShare.left)
  if (exitsMax + ordinaryMax + capacity.backgroundMin + conversationsMax + unattendedMax === 0) return false
  const rows = await query<TaskRow & { nextDue: Date | null }>(pool, claimSql, [
    instanceId,
    clock.now(),
    kinds(),
    share.full,
    exitShare.full,
    exitsMax,
    ordinaryMax,
    capacity.backgroundMax,
    capacity.backgroundMin,
    conversationShare.full,
    conversationsMax,
    unattendedShare.full,
    unattendedMax,
  ])
  const claimed = [0, 0, 0, 0, 0]
  for (const { nextDue, ...row } of rows) {
    claims.nextDue = nextDue
    if (row.id === null) break
    const task = asTask(row)
    claimed[priorityOf(task)]! += 1
    onClaimed(task)
  }
  const [exits, ordinary, background, conversations, unattended] = claimed as [
    number,
    number,
    number,
    number,
    number,
  ]
  const ordinaryLeft = Math.max(0, ordinaryMax - exits)
  const backgroundLeft = Math.min(
    capacity.backgroundMax,
    Math.max(capacity.backgroundMin, ordinaryMax - exits - ordinary),
  )
  const isAnyFull =
    exits === exitsMax ||
    ordinary === ordinaryLeft ||
    background === backgroundLeft ||
    conversations === conversationsMax ||
    unattended === unattendedMax
  const full = [...share.full, ...conversationShare.full, ...unattendedShare.full]
  claims.mayHaveMore = isAnyFull || full.length > 0
  return rows.some(({ id }) => id !== null) && isAnyFull
}
