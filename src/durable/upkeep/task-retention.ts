import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import type { MaintenanceJob } from './maintenance.ts'

/** Deletes ended tasks by age, with their idempotency keys and the rows of features that only serve the task. */

export type TaskRetention = {
  /** The age at which tasks that signed nothing and moved no money are deleted; undefined if they never are. */
  tasksMs: number | undefined
  moneyTasksMs: number | undefined
}
type Deps = {
  pool: pg.Pool
  clock: Clock
  retention: TaskRetention
  /** Tables with at most one row per task, under its `task_id` as primary key. */
  taskTables: readonly string[]
}

const batchMax = 1_000

/** Tasks that moved no money. Transfers, effects with signed bytes and records of effects are never deleted. */
const isWithoutMoney = `not exists (select from effect where task_id = passed.id)
    and not exists (select from transfer where task_id = passed.id)`

/**
 * Deletes one batch in the order of creation. The position is stored, so that each task is visited once, however many
 * remain. A task that has not ended when it is visited is never deleted, because its operator may still need it.
 */
const batchSql = (condition: string, taskTables: readonly string[]) => `
with passed as materialized (
    select id, user_id, idempotency_key, completed_at from task
    where id > coalesce((select position::uuid from maintenance_position where name = $1), '00000000-0000-0000-0000-000000000000')
      and id < $2 order by id limit ${batchMax}),
  doomed as materialized (select id, user_id, idempotency_key from passed where completed_at is not null and ${condition}),
  ${taskTables.map((table) => `of_${table} as (delete from ${table} where task_id = any(array(select id from doomed))),`).join('\n  ')}
  keys as (delete from idempotency i using doomed d where i.user_id = d.user_id and i.key = d.idempotency_key),
  tasks as (delete from task where id = any(array(select id from doomed))),
  moved as (insert into maintenance_position (name, position) select $1, id::text from passed order by id desc limit 1
    on conflict (name) do update set position = excluded.position)
select count(*)::integer as passed from passed`

export function taskRetentionJobs({ pool, clock, retention, taskTables }: Deps): MaintenanceJob[] {
  const job = (name: string, ageMs: number, condition: string): MaintenanceJob => {
    // The name includes the age limit, so a changed retention starts at the oldest task again.
    const position = `${name} after ${ageMs} ms`
    const text = batchSql(condition, taskTables)
    return {
      name,
      async runBatch() {
        const before = minIdAt(later(clock.now(), -ageMs))
        const [row] = await query<{ passed: number }>(pool, text, [position, before])
        return row?.passed === batchMax
      },
    }
  }
  const { tasksMs, moneyTasksMs } = retention
  return [
    ...(tasksMs === undefined ? [] : [job('retention of tasks', tasksMs, isWithoutMoney)]),
    ...(moneyTasksMs === undefined ? [] : [job('retention of money tasks', moneyTasksMs, 'true')]),
  ]
}
