import type { Files } from '#engines/files/files.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { Queryable } from '#store/query.ts'
import { pageMax, type ScheduleInputOf } from './contract.ts'
import type { ArtifactList, Execution, ExecutionView } from './execution-schemas.ts'
import * as store from './execution-store.ts'
import { startedOutcome } from './run-outcome.ts'
import { requireSchedule } from './schedule-deps.ts'

/** This module shows the runs of a schedule, with their results and files. */

export type ExecutionDeps = { db: Queryable; clock: Clock; files: Pick<Files, 'linkOf'> }
type ArtifactView = T.Static<typeof ArtifactList>['items'][number]

/** Returns the page to read. The schema sets no maximum for its fields, so a larger page is cut. */
export const pageOf = ({ skip = 0, limit }: { skip?: number; limit?: number }, limitDefault: number) => ({
  skip: Math.min(skip, Number.MAX_SAFE_INTEGER),
  limit: Math.min(limit ?? limitDefault, pageMax),
})

/**
 * Returns the present results of a run. The stored record is from the end of the run, and tasks that the run has
 * started may end later.
 */
function resultsOf(row: store.ExecutionRow) {
  const { status, outcome, started, credits_used, entered_usd } = row
  const realized_pnl_usd = row.fills_realized_usd ?? row.realized_pnl_usd
  // On paper no limit counts what a run spends.
  const spent_usd = row.mode === 'paper' ? (entered_usd ?? '0') : row.spent_usd
  if (status === 'pending' || status === 'running' || row.mode === 'paper')
    return { outcome, spent_usd, credits_used, realized_pnl_usd }
  const settled = started.length > 0 ? startedOutcome(started, status) : outcome
  const hasReleased = started.length > 0 && settled === 'not_executed'
  return {
    outcome: settled,
    spent_usd: hasReleased ? '0' : (row.counted_usd ?? spent_usd),
    credits_used: row.chat_credits ?? credits_used,
    realized_pnl_usd,
  }
}

function executionView(row: store.ExecutionRow): ExecutionView {
  const { slot, started_at: startedAt } = row
  return {
    execution_id: row.id,
    schedule_id: row.strategy_id,
    version: row.version,
    number: row.number,
    execution_type: row.execution_type as ExecutionView['execution_type'],
    mode: row.mode,
    scheduled_for: slot?.toISOString() ?? null,
    first_scheduled_for: row.first_slot?.toISOString() ?? null,
    skipped_slots: row.skipped_slots,
    status: row.status,
    ...resultsOf(row),
    skip_reason: row.skip_reason as ExecutionView['skip_reason'],
    decision: row.decision as ExecutionView['decision'],
    late_ms: slot && startedAt ? startedAt.getTime() - slot.getTime() : null,
    started_at: startedAt?.toISOString() ?? null,
    ended_at: row.ended_at?.toISOString() ?? null,
    summary: row.summary,
    rating: row.rating,
    error: row.error as ExecutionView['error'],
    chat_id: row.chat_id,
    task_ids: row.task_ids,
    created_at: row.created_at.toISOString(),
  }
}

const artifactViews = (deps: ExecutionDeps, rows: readonly store.FileRow[]): Promise<ArtifactView[]> =>
  Promise.all(
    rows.map(async ({ file_id, execution_id, name, path, size, content_type, sha256, created_at }) => {
      const digest = sha256.toString('hex')
      const { url, expiresAt } = await deps.files.linkOf({ id: file_id, sha256: digest })
      return {
        artifact_id: file_id,
        execution_id,
        name,
        path,
        size,
        content_type,
        sha256: digest,
        url,
        expires_at: expiresAt.toISOString(),
        created_at: created_at.toISOString(),
      }
    }),
  )

/** Returns the runs with the fields that only a single run shows. */
async function fullViews(
  deps: ExecutionDeps,
  scheduleId: string,
  rows: readonly store.ExecutionRow[],
): Promise<T.Static<typeof Execution>[]> {
  const ids = rows.map(({ id }) => id)
  const found = await store.filesOfRuns(deps.db, scheduleId, ids)
  const files = Map.groupBy(found, ({ execution_id }) => execution_id)
  return Promise.all(
    rows.map(async (row) => ({
      ...executionView(row),
      query: row.query,
      answer: row.answer ?? (row.ended_at === null ? null : row.chat_answer || null),
      artifacts: await artifactViews(deps, files.get(row.id) ?? []),
      usage: row.usage as Record<string, unknown> | null,
      config: row.config as Record<string, unknown> | null,
    })),
  )
}

type ListInput = Omit<ScheduleInputOf<'executions'>, 'schedule_id'>

/** Returns a page of runs for the interface; the caller has checked that the schedule belongs to the user. */
export async function executionPage(
  deps: ExecutionDeps,
  scheduleId: string,
  { fields, execution_type, status, ...given }: ListInput,
  limitDefault: number,
) {
  const page = pageOf(given, limitDefault)
  const isMode = execution_type === 'paper'
  const filter = {
    ...page,
    type: isMode ? null : (execution_type ?? null),
    mode: isMode ? execution_type : null,
    status: status ?? null,
  }
  const { rows, total } = await store.executionsOf(deps.db, scheduleId, filter)
  const items = fields === 'full' ? await fullViews(deps, scheduleId, rows) : rows.map(executionView)
  return { items, total, ...page }
}

async function requireExecution(db: Queryable, userId: string, id: string): Promise<store.ExecutionRow> {
  const row = await store.findExecution(db, userId, id)
  if (!row) throw notFound('execution', 'schedules_executions')
  return row
}

export const createExecutionReads = (deps: ExecutionDeps) => ({
  async executions({ schedule_id, ...input }: ScheduleInputOf<'executions'>, { userId }: Caller) {
    await requireSchedule(deps.db, userId, schedule_id)
    return executionPage(deps, schedule_id, input, 20)
  },
  async execution({ execution_id }: ScheduleInputOf<'execution'>, { userId }: Caller) {
    const row = await requireExecution(deps.db, userId, execution_id)
    const [view] = await fullViews(deps, row.strategy_id, [row])
    return view!
  },
  async executionEvents(
    { execution_id, after = 0, ...given }: ScheduleInputOf<'executionEvents'>,
    { userId }: Caller,
  ) {
    await requireExecution(deps.db, userId, execution_id)
    const page = pageOf(given, 10)
    const { rows, total } = await store.eventsOf(deps.db, execution_id, { ...page, after })
    const items = rows.map(({ created_at, ...row }) => ({ ...row, created_at: created_at.toISOString() }))
    return { items, total, ...page }
  },
  async artifacts({ schedule_id }: ScheduleInputOf<'artifacts'>, { userId }: Caller) {
    await requireSchedule(deps.db, userId, schedule_id)
    const rows = await store.filesOfSchedule(deps.db, schedule_id)
    const bytes = rows.reduce((sum, { size }) => sum + size, 0)
    return { items: await artifactViews(deps, rows), total: rows.length, bytes }
  },
  async rate(
    { execution_id, rating, comment }: ScheduleInputOf<'rate'>,
    { userId }: Caller,
    request: RequestFacts,
  ) {
    const { tx } = toActScope(request)
    const row = await requireExecution(tx, userId, execution_id)
    if (row.ended_at === null)
      throw new Fault('conflict', `The run is ${row.status}: rate it once it has ended`, {
        extras: { status: row.status },
      })
    const rated = rating === 'up' ? 5 : rating === 'down' ? 1 : rating
    const at = deps.clock.now()
    await store.rateExecution(tx, execution_id, { rating: rated, comment: comment ?? null, at })
    return { execution_id, rating: rated, comment: comment ?? null, updated_at: at.toISOString() }
  },
})
