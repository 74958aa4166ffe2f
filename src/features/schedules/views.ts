import type { GuardsInput, StrategyFields } from '#engines/strategy-terms/strategy-schemas.ts'
import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { StrategyType } from '#store/tables/strategies.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { comingRuns, shownDescription } from './recurrence/shown-times.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import { healthOf, setupItems, successRate, type UserFacts } from './setup-checklist.ts'
import type { ScheduleRow } from './store.ts'
import type { Compiled } from './strategy-orders.ts'
import { purchaseNotes } from './strategy-text.ts'
import { strategyView } from './strategy-view.ts'

type Reading = {
  type: StrategyType
  calendar: Calendar | null
  compiled: Compiled
  config: StrategyFields | null
  guards: GuardsInput
  budgetUsd: string | null
  facts: Pick<UserFacts, 'chatPerDayUsd'>
}

/** Returns the fields that a preview and a stored schedule both show; without `after`, no next runs are shown. */
export function readingView(
  { type, calendar, compiled, config, guards, budgetUsd, facts }: Reading,
  after: Date | undefined,
) {
  const runs = calendar && after ? comingRuns(calendar, after) : []
  const maxUsd = compiled.isSpending ? facts.chatPerDayUsd : '0'
  return {
    type,
    schedule: calendar,
    timezone: calendar?.timezone ?? null,
    description: calendar && shownDescription(calendar),
    next_runs: runs.map(({ at }) => at),
    next_runs_local: runs.map(({ local }) => local),
    compiled: {
      operations: compiled.operations,
      per_run_max_usd: compiled.runMaxUsd ?? maxUsd,
      per_day_max_usd: compiled.dayMaxUsd ?? maxUsd,
      unread: [],
      notes: [...compiled.notes, ...purchaseNotes(compiled)],
    },
    config,
    guards,
    budget_usd: budgetUsd,
  }
}

export const nothingCompiled: Compiled = { operations: [], isSpending: false, notes: [] }
export const calendarOf = ({ calendar }: Pick<ScheduleRow, 'calendar'>) => calendar as Calendar | null
export const compiledOf = ({ compiled }: Pick<ScheduleRow, 'compiled'>): Compiled =>
  (compiled as Compiled | null) ?? nothingCompiled

export const guardsOf = ({ guards }: Pick<ScheduleRow, 'guards'>) => (guards ?? {}) as GuardsInput
export const configOf = ({ config }: Pick<ScheduleRow, 'config'>) => config as StrategyFields | null

const notifyViews = { all: true, failures: 'failures', none: false } as const

type Shown = { facts: UserFacts; creditsPerRun: (agent: Agent) => number; now: Date; taskNow: Date }

export function scheduleView(row: ScheduleRow, { facts, creditsPerRun, now, taskNow }: Shown): ScheduleView {
  const calendar = calendarOf(row)
  const compiled = compiledOf(row)
  const guards = guardsOf(row)
  const agent = row.agent as Agent
  const credits = row.type === 'prompt' ? creditsPerRun(agent) : 0
  const setup = setupItems({
    ...row,
    calendar,
    compiled,
    guards,
    creditsPerRun: credits,
    facts,
    now,
    taskNow,
  })
  const isOver = row.status === 'completed' || row.status === 'disabled'
  return {
    schedule_id: row.id,
    version: row.version,
    title: row.title,
    query: row.query,
    ...readingView(
      {
        type: row.type,
        calendar,
        compiled,
        config: configOf(row),
        guards,
        budgetUsd: row.budget_usd,
        facts,
      },
      isOver ? undefined : now,
    ),
    agent,
    mode: row.mode,
    paper_balance_usd: row.type === 'prompt' ? null : row.paper_balance_usd,
    max_runs: row.max_runs,
    starts_at: calendar?.starts_at ?? null,
    ends_at: calendar?.ends_at ?? null,
    on_missed: row.on_missed,
    catch_up_seconds: row.catch_up_seconds,
    notify: notifyViews[row.notify],
    thread_id: row.thread_id,
    setup_checklist: setup,
    ...healthOf(row, setup, compiled),
    status: row.status,
    status_reason: row.status_reason,
    next_run_at: row.next_at?.toISOString() ?? null,
    last_run_at: row.last_run_at?.toISOString() ?? null,
    run_count: row.run_count,
    skipped_count: row.skipped_count,
    success_rate: successRate(row.recent),
    credits_per_run: credits,
    ...strategyView(row, facts),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    activated_at: row.activated_at?.toISOString() ?? null,
  }
}
