import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import { asTask, type Task } from './task-row.ts'

/** Claims of due tasks that no instance has leased. */

export type ClaimDeps = {
  pool: pg.Pool
  clock: Clock
  log: Log
  instanceId: string
  options: { leaseMs: number; pollMs: number }
  capacity: (priority: 0 | 1) => number
  /** The users who hold their share of the slots for tasks of this priority. */
  usersAtShare: (priority: 0 | 1) => string[]
  onClaimed: (task: Task) => void
  /** The kinds and versions that this instance can run; it leaves the others to its peers. */
  kinds: () => string[]
}

const batchMax = 16

/** Materialized: the planner may evaluate a joined subquery twice, which would lock and claim more tasks. */
const claimSql = `with due as materialized (select id from task where status in ('pending', 'running') and owner is null
    and run_at <= $3 and priority <= $4 and kind || '@' || kind_version = any($6::text[])
    and user_id <> all(case priority when 0 then $8::uuid[] else $7::uuid[] end)
    order by priority, run_at limit $5 for update skip locked)
  update task set owner = $1, status = 'running', epoch = epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $2)
  from due where task.id = due.id returning task.*`

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

/** Claims exits only (priority 0) when the ordinary slots are full. True where more tasks may be due. */
async function claimBatch(claims: ClaimState): Promise<boolean> {
  const { pool, clock, instanceId, options, capacity, usersAtShare, onClaimed, kinds } = claims.deps
  const ordinary = capacity(1)
  const priorityMax = ordinary > 0 ? 2 : 0
  const limit = Math.min(batchMax, ordinary > 0 ? ordinary : capacity(0))
  claims.mayHaveMore = true
  if (limit === 0) return false
  const [usersFull, usersFullOfExits] = [usersAtShare(1), usersAtShare(0)]
  const values = [
    instanceId,
    options.leaseMs / 1000,
    clock.now(),
    priorityMax,
    limit,
    kinds(),
    usersFull,
    usersFullOfExits,
  ]
  const rows = await query(pool, claimSql, values)
  for (const row of rows) onClaimed(asTask(row as Task))
  claims.mayHaveMore = ordinary === 0 || rows.length === limit || usersFull.length > 0
  return rows.length === limit
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
