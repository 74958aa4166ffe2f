import { type Queryable, query } from '#store/query.ts'
import type { StrategyExecutionRow } from '#store/tables/strategies.ts'
import type { ExecutionView, eventTypes } from './execution-schemas.ts'
import type { StartedTask } from './run-outcome.ts'

/**
 * A run with the query of its version, and with the present state of its chat and of the tasks that it has started,
 * which may go on after the end of the run. The chat and the tasks are deleted by age; from then on, the run's own
 * columns give their state at its end.
 */
export type ExecutionRow = StrategyExecutionRow & {
  query: string
  task_ids: string[]
  started: Pick<StartedTask, 'status' | 'outcome'>[]
  /**
   * The value in USD that the tasks of the run count against the limits; null if they have no reservation on record.
   */
  counted_usd: string | null
  chat_answer: string | null
  chat_credits: number | null
  config: object | null
  /** What the fills of the run's orders were worth, and have realised, also after its end; null without any. */
  entered_usd: string | null
  fills_realized_usd: string | null
}

const selection = `select e.*, v.query, array(select t.id from task t where t.parent_id = e.id order by t.id) as task_ids,
    (select coalesce(jsonb_agg(jsonb_build_object('status', t.status, 'outcome', t.outcome)), '[]') from task t
      where t.parent_id = e.id and t.id is distinct from e.chat_id) as started,
    (select trim_scale(coalesce(sum(p.usd_micros) filter (where p.state = 'reserved'), 0) / 1000000.0)
      from policy_spend p join task t on t.id = p.task_id where t.parent_id = e.id having count(*) > 0) as counted_usd,
    c.answer as chat_answer, c.credits_used as chat_credits, v.config, f.entered_usd, f.fills_realized_usd
  from strategy_execution e join strategy_version v on v.strategy_id = e.strategy_id and v.version = e.version
    left join chat_turn c on c.chat_id = e.chat_id
    left join lateral (select trim_scale(round(sum(f.size * f.price) filter (where not f.is_exit), 6)) as entered_usd,
        trim_scale(sum(f.realized_pnl_usd)) as fills_realized_usd
      from strategy_fill f where f.execution_id = e.id) f on true`

export async function findExecution(
  db: Queryable,
  userId: string,
  id: string,
): Promise<ExecutionRow | undefined> {
  const text = `${selection} where e.id = $1 and e.user_id = $2`
  return (await query<ExecutionRow>(db, text, [id, userId]))[0]
}

type Page = { skip: number; limit: number }
type Filter = {
  type: ExecutionView['execution_type'] | null
  mode: ExecutionView['mode'] | null
  status: ExecutionView['status'] | null
}

/** Returns a page of runs; the caller has checked that the schedule belongs to the user. */
export async function executionsOf(
  db: Queryable,
  scheduleId: string,
  { type, mode, status, skip, limit }: Filter & Page,
): Promise<{ rows: ExecutionRow[]; total: number }> {
  const matching = `e.strategy_id = $1 and ($2::text is null or e.execution_type = $2)
    and ($3::text is null or e.status = $3) and ($4::text is null or e.mode = $4)`
  const values = [scheduleId, type, status, mode]
  const [rows, [counted]] = await Promise.all([
    query<ExecutionRow>(
      db,
      `${selection} where ${matching} order by e.number desc offset $5::bigint limit $6::integer`,
      [...values, skip, limit],
    ),
    query<{ total: number }>(
      db,
      `select count(*)::integer as total from strategy_execution e where ${matching}`,
      values,
    ),
  ])
  return { rows, total: counted?.total ?? 0 }
}

export type EventRow = {
  seq: number
  type: (typeof eventTypes)[number]
  data: Record<string, unknown>
  created_at: Date
}

export async function eventsOf(
  db: Queryable,
  executionId: string,
  { after, skip, limit }: Page & { after: number },
): Promise<{ rows: EventRow[]; total: number }> {
  const matching = 'execution_id = $1 and seq > $2::bigint'
  const [rows, [counted]] = await Promise.all([
    query<EventRow>(
      db,
      `select seq, type, data, created_at from strategy_event where ${matching}
       order by seq offset $3::bigint limit $4::integer`,
      [executionId, after, skip, limit],
    ),
    query<{ total: number }>(db, `select count(*)::integer as total from strategy_event where ${matching}`, [
      executionId,
      after,
    ]),
  ])
  return { rows, total: counted?.total ?? 0 }
}

export type FileRow = {
  file_id: string
  execution_id: string | null
  path: string
  sha256: Buffer
  name: string
  content_type: string
  size: number
  created_at: Date
}

const fileSelection = `select s.file_id, s.execution_id, s.path, f.sha256, f.name, f.content_type, s.size, s.created_at
  from strategy_file s join file f on f.id = s.file_id`

/** Returns the files of a schedule, the newest first. */
export const filesOfSchedule = (db: Queryable, scheduleId: string): Promise<FileRow[]> =>
  query(db, `${fileSelection} where s.strategy_id = $1 order by s.file_id desc`, [scheduleId])

/** Returns the files of some runs of a schedule. */
export const filesOfRuns = (
  db: Queryable,
  scheduleId: string,
  executionIds: readonly string[],
): Promise<FileRow[]> =>
  query(
    db,
    `${fileSelection} where s.strategy_id = $1 and s.execution_id = any($2::uuid[]) order by s.file_id desc`,
    [scheduleId, executionIds],
  )

export async function rateExecution(
  db: Queryable,
  id: string,
  { rating, comment, at }: { rating: number; comment: string | null; at: Date },
): Promise<void> {
  await query(
    db,
    'update strategy_execution set rating = $2, rating_comment = $3, rated_at = $4 where id = $1',
    [id, rating, comment, at],
  )
}
