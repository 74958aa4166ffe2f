import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import { asTask, type Task } from './task-row.ts'

/** Claims of due tasks that no instance runs. */

/** How many tasks of each class (priority) may be claimed. */
export type Capacity = {
  exits: number
  /** Exits count against it too. */
  ordinary: number
  /** What background tasks may take of it, and what they may take in any case. */
  backgroundMax: number
  backgroundMin: number
}
export type ClaimDeps = {
  pool: pg.Pool
  clock: Clock
  log: Log
  instanceId: string
  options: { leaseMs: number; pollMs: number }
  isLeaseHeld: () => boolean
  capacity: () => Capacity
  /** By priority: the users who hold their share of the slots, and what each of the others may take at least. */
  userShares: (priority: 0 | 1) => { full: string[]; left: number }
  priorityOf: (task: Task) => number
  onClaimed: (task: Task) => void
  /** The kinds and versions that this instance can run; it leaves the others to its peers. */
  kinds: () => string[]
}

const batchMax = 16

const dueOf = (priority: 0 | 1 | 2, usersFull: string, limit: string): string =>
  `select task_id from task_queue where owner is null and priority = ${priority} and run_at <= $2
     and kind = any($3::text[]) and user_id <> all(${usersFull}::uuid[]) order by run_at limit ${limit} for update skip locked`

/**
 * Each class has a scan of its own, so that no backlog of one hides the tasks of another. Materialized, because the
 * planner may evaluate a joined subquery twice; arrays, so that it looks each task up by its key however many there are.
 * A task that is locked is skipped, because its transaction locks the task before its place in the queue.
 */
const claimSql = `with exits as materialized (${dueOf(0, '$5', '$6')}),
  ordinary as materialized (${dueOf(1, '$4', 'greatest(0, $7 - (select count(*) from exits))')}),
  background as materialized (${dueOf(
    2,
    '$4',
    'least($8, greatest($9, $7 - (select count(*) from exits) - (select count(*) from ordinary)))',
  )}),
  due as materialized (table exits union all table ordinary union all table background),
  free as materialized (select id from task where id = any(array(select task_id from due)) for no key update skip locked),
  owned as (update task_queue set owner = $1 where task_id = any(array(select id from free)))
  update task set status = 'running', version = version + 1 where id = any(array(select id from free)) returning *`

export type ClaimState = {
  deps: ClaimDeps
  /** The claim at the due time of a parked task. */
  next: { at: number; timer: NodeJS.Timeout } | undefined
  /** The claim under way; `claimAgain` repeats it once it ends. */
  claiming: Promise<void> | undefined
  claimAgain: boolean
  stopped: boolean
  /** The last claim may have left due tasks behind for lack of slots. */
  mayHaveMore: boolean
}

export const createClaims = (deps: ClaimDeps): ClaimState => ({
  deps,
  next: undefined,
  claiming: undefined,
  claimAgain: false,
  stopped: true,
  mayHaveMore: true,
})

export function claimNow(claims: ClaimState): void {
  if (claims.stopped) return
  if (claims.claiming) {
    claims.claimAgain = true
    return
  }
  claims.claiming = claimAll(claims)
    .catch((error: unknown) =>
      claims.deps.log.warn({ error }, 'claim of tasks failed; the next poll tries again'),
    )
    .finally(() => {
      claims.claiming = undefined
      if (claims.claimAgain) claimNow(claims)
    })
}

async function claimAll(claims: ClaimState): Promise<void> {
  do {
    claims.claimAgain = false
    while (!claims.stopped && (await claimBatch(claims)));
  } while (claims.claimAgain && !claims.stopped)
}

/** True where more tasks may be due, and there is capacity for them. */
async function claimBatch(claims: ClaimState): Promise<boolean> {
  const { pool, clock, instanceId, isLeaseHeld, userShares, priorityOf, onClaimed, kinds } = claims.deps
  claims.mayHaveMore = true
  // Its next heartbeat claims again.
  if (!isLeaseHeld()) return false
  const capacity = claims.deps.capacity()
  const [share, exitShare] = [userShares(1), userShares(0)]
  // All that one statement claims may be of one user.
  const exitsMax = Math.min(batchMax, capacity.exits, exitShare.left)
  const ordinaryMax = Math.min(batchMax, capacity.ordinary, share.left)
  if (exitsMax + ordinaryMax + capacity.backgroundMin === 0) return false
  const rows = await query<Task>(pool, claimSql, [
    instanceId,
    clock.now(),
    kinds(),
    share.full,
    exitShare.full,
    exitsMax,
    ordinaryMax,
    capacity.backgroundMax,
    capacity.backgroundMin,
  ])
  const claimed = [0, 0, 0]
  for (const row of rows) {
    const task = asTask(row)
    claimed[priorityOf(task)]! += 1
    onClaimed(task)
  }
  const [exits, ordinary, background] = claimed as [number, number, number]
  const ordinaryLeft = Math.max(0, ordinaryMax - exits)
  const backgroundLeft = Math.min(
    capacity.backgroundMax,
    Math.max(capacity.backgroundMin, ordinaryMax - exits - ordinary),
  )
  const isAnyFull = exits === exitsMax || ordinary === ordinaryLeft || background === backgroundLeft
  claims.mayHaveMore = isAnyFull || share.full.length > 0
  return rows.length > 0 && isAnyFull
}

/** Claims again when a parked task becomes due, before the next poll. */
export function claimAt(claims: ClaimState, due: Date): void {
  const { clock, options } = claims.deps
  const at = due.getTime()
  if (claims.stopped || (claims.next && claims.next.at <= at)) return
  clearTimeout(claims.next?.timer)
  const timer = setTimeout(
    () => {
      claims.next = undefined
      claimNow(claims)
    },
    Math.min(Math.max(0, at - clock.now().getTime()), options.pollMs),
  )
  claims.next = { at, timer }
}
