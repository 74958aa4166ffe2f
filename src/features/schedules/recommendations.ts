import type { TaskQueries } from '#durable/task/task-queries.ts'
import type { Task } from '#durable/task/task-row.ts'
import type { InnerCalls } from '#invoke/inner-calls.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { notFound } from '#kernel/contract/fault.ts'
import { type Operation, taskOf } from '#kernel/contract/operation.ts'
import { uuidv7 } from '#kernel/id.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { SetGuards } from '#market/strategies/guard-distance.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import type { StrategyRecommendationRow } from '#store/tables/strategies.ts'
import type { Advice } from './advice.ts'
import type { ScheduleInputOf } from './contract.ts'
import { adviceFor, type JudgedRun, type OpenRecommendation } from './recommendation-rules.ts'
import { requireSchedule, type ScheduleDeps, viewOf } from './schedule-deps.ts'
import type { UserFacts } from './setup-checklist.ts'
import type { ScheduleRow } from './store.ts'
import { idleMin, type JudgedStrategy } from './strategy-advice.ts'
import { accountFigures, budgetSpent } from './strategy-view.ts'

/**
 * A task computes the recommendations of a schedule, and they are stored until the next such task replaces them.
 * Recommendations that the schedule's chats have made expire by the clock of tasks; the clock of schedules may be ahead
 * of it.
 */

export type RecommendationDeps = ScheduleDeps & {
  tasks: Pick<TaskQueries, 'list'>
  taskBrief: (db: Queryable, taskId: string) => Promise<object>
  calls: () => InnerCalls
  /** Returns an idempotency key that no client can send. */
  keyOf: (name: string) => string
}
type RefreshData = { schedule_id: string }

const kind = 'recommendations_refresh'
const judgedRuns = 20
/** Refreshes that are requested within one period of this length share one task. */
const sharedMs = 60_000
const callMs = 10_000

async function refreshing(
  { tasks }: RecommendationDeps,
  userId: string,
  scheduleId: string,
): Promise<Task | undefined> {
  const open = (['running', 'pending'] as const).map((status) =>
    tasks.list(userId, { skip: 0, limit: 100, status, kind }),
  )
  const found = (await Promise.all(open)).flatMap((page) => page.tasks)
  return found.find(({ data }) => data.schedule_id === scheduleId)
}

const judgedSql = `select id, number, status, skip_reason, error ->> 'message' as error, rating
  from strategy_execution where strategy_id = $1 order by number desc limit ${judgedRuns}`
const openSql = `select r.recommendation_id, r.chat_id, r.title, r.detail, r.operation, r.input, r.expires_at
  from (${judgedSql.replace('select id', 'select chat_id, id')}) e join chat_recommendation r on r.chat_id = e.chat_id
  where r.status = 'open' and r.expires_at > $2 order by r.recommendation_id desc`

async function advise(deps: RecommendationDeps, userId: string, scheduleId: string): Promise<Advice[]> {
  const { db, taskClock } = deps
  const [row, facts, runs, open, removed] = await Promise.all([
    requireSchedule(db, userId, scheduleId),
    deps.factsOf(userId),
    query<JudgedRun>(db, judgedSql, [scheduleId]),
    query<OpenRecommendation>(db, openSql, [scheduleId, taskClock.now()]),
    query<{ subject: string }>(
      db,
      `select subject from strategy_recommendation where strategy_id = $1 and status = 'declined'`,
      [scheduleId],
    ),
  ])
  const strategy = await judgedStrategy(db, row, facts)
  const schedule = { view: viewOf(deps, row, facts), runs, open, ...(strategy && { strategy }) }
  return adviceFor(schedule, new Set(removed.map(({ subject }) => subject)))
}

/** The newest decisions, in no more than four times as many runs. */
const decisionsSql = `select action, reason from (
    select number, decision ->> 'action' as action, decision ->> 'reason' as reason from strategy_execution
    where strategy_id = $1 order by number desc limit ${4 * idleMin}) d
  where action is not null order by number desc limit ${idleMin}`

/** Returns what is judged of a strategy; undefined for a schedule without accounts, which no strategy is. */
async function judgedStrategy(
  db: Queryable,
  { id, guards, strategy }: ScheduleRow,
  facts: UserFacts,
): Promise<JudgedStrategy | undefined> {
  if (strategy.accounts.length === 0) return undefined
  const decisions = await query<{ action: string; reason: string }>(db, decisionsSql, [id])
  const acted = decisions.findIndex(({ action }) => action !== 'hold')
  const idle = acted < 0 ? decisions : decisions.slice(0, acted)
  return {
    mode: strategy.mode,
    budgetMicros: strategy.budget_usd === null ? null : toMicros(strategy.budget_usd),
    spentMicros: budgetSpent(strategy) ?? 0n,
    guards: (guards ?? {}) as SetGuards,
    accounts: strategy.accounts.flatMap((account) => {
      const figures = accountFigures(account, facts)
      return figures ? [{ mode: account.mode, figures, drift: account.drift }] : []
    }),
    idleReasons: idle.map(({ reason }) => reason),
  }
}

/** Stores the advice: rows that no longer apply are deleted, and rows that apply as before keep their ids. */
async function storeAdvice(
  { clock, random }: RecommendationDeps,
  tx: Tx,
  scheduleId: string,
  advice: readonly Advice[],
): Promise<void> {
  const now = clock.now()
  const rows = advice.map(({ expiresAt, action, ...each }) => ({
    ...each,
    id: uuidv7(now, random),
    strategy_id: scheduleId,
    action: action ?? null,
    status: 'open',
    created_at: now,
    expires_at: expiresAt ?? null,
  }))
  await query(
    tx,
    `delete from strategy_recommendation where strategy_id = $1 and status = 'open' and subject <> all($2::text[])`,
    [scheduleId, advice.map(({ subject }) => subject)],
  )
  await query(
    tx,
    `insert into strategy_recommendation select * from jsonb_populate_recordset(null::strategy_recommendation, $1)
     on conflict (strategy_id, subject) do update set priority = excluded.priority, title = excluded.title,
       why = excluded.why, steps = excluded.steps, evidence = excluded.evidence, action = excluded.action,
       expires_at = excluded.expires_at`,
    [jsonText(rows)],
  )
  await query(tx, 'update strategy set recommended_at = $2 where id = $1', [scheduleId, now])
}

export const refresh = (deps: RecommendationDeps) =>
  taskOf<ScheduleInputOf<'refreshRecommendations'>, RefreshData, 'collect'>({
    async admit({ schedule_id }, { userId }) {
      const { id } = await requireSchedule(deps.db, userId, schedule_id)
      return { data: { schedule_id: id }, first: 'collect' }
    },
    async answer({ schedule_id }, { userId }) {
      const running = await refreshing(deps, userId, schedule_id.toLowerCase())
      return running && deps.taskBrief(deps.db, running.id)
    },
    steps: {
      async collect({ userId, data: { schedule_id } }) {
        const advice = await advise(deps, userId, schedule_id)
        return {
          end: 'completed',
          outcome: 'executed',
          result: { count: advice.length },
          writes: (tx) => storeAdvice(deps, tx, schedule_id, advice),
        }
      },
    },
  })

const viewOfRow = (row: StrategyRecommendationRow) => ({
  id: row.id,
  priority: row.priority,
  category: row.category,
  title: row.title,
  why: row.why,
  steps: row.steps as string[],
  evidence: row.evidence as string[],
  action: row.action as { operation: string; input: Record<string, unknown> } | null,
  status: row.status,
  expires_at: row.expires_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})

const openOf = (db: Queryable, scheduleId: string, now: Date): Promise<StrategyRecommendationRow[]> =>
  query(
    db,
    `select * from strategy_recommendation where strategy_id = $1 and status = 'open'
       and (expires_at is null or expires_at > $2)
     order by array_position(array['now', 'soon', 'later'], priority), id`,
    [scheduleId, now],
  )

/** Lists recommendations; `operation` is the operation that refreshes them. */
export const list =
  (deps: RecommendationDeps, operation: () => Operation) =>
  async ({ refresh: isWanted = false, ...input }: ScheduleInputOf<'recommendations'>, caller: Caller) => {
    const { db, clock, taskClock } = deps
    const { id: schedule_id } = await requireSchedule(db, caller.userId, input.schedule_id)
    if (isWanted) {
      const turn = Math.floor(clock.now().getTime() / sharedMs)
      await deps.calls().call({
        operation: operation(),
        input: { schedule_id },
        caller,
        key: deps.keyOf(`${schedule_id} ${turn}`),
        signal: AbortSignal.timeout(callMs),
      })
    }
    const [row, rows, running] = await Promise.all([
      requireSchedule(db, caller.userId, schedule_id),
      openOf(db, schedule_id, taskClock.now()),
      refreshing(deps, caller.userId, schedule_id),
    ])
    return {
      items: rows.map(viewOfRow),
      generated_at: row.recommended_at?.toISOString() ?? null,
      refreshing: running !== undefined,
    }
  }

/** Removes a recommendation; its row stays as declined, so it is not made again. A second removal does nothing. */
export async function remove(
  { schedule_id, recommendation_id }: ScheduleInputOf<'deleteRecommendation'>,
  { userId }: Caller,
  request: RequestFacts,
) {
  const { tx } = toActScope(request)
  await requireSchedule(tx, userId, schedule_id)
  const rows = await query(
    tx,
    `update strategy_recommendation set status = 'declined' where id = $1 and strategy_id = $2 returning id`,
    [recommendation_id, schedule_id],
  )
  if (rows.length === 0) throw notFound('recommendation of this schedule', 'schedules_recommendations')
  return { recommendation_id, deleted: true }
}
