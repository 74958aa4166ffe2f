import type { StoredRun } from '#market/strategies/stored-run.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import type { DriftView } from './strategy-view-schemas.ts'

/** The columns of a schedule that show what its runs have decided, and what they have. */

export type StoredAccount = {
  mode: StrategyMode
  state: StoredRun
  drift: DriftView | null
  /** What the account began with; null where its version is gone. */
  initial_usd: string | null
}
export type StrategyColumns = {
  strategy: {
    mode: StrategyMode
    budget_usd: string | null
    /** What live orders count against the budget, in micro-dollars; null on paper and without a budget. */
    spent_micros: string | null
    accounts: StoredAccount[]
    decided: {
      execution_id: string
      mode: StrategyMode
      at: string
      decision: { action: string; reason: string; text?: string }
    } | null
  }
}

/** The last decision is searched in this many of the newest runs. */
const searchedRuns = 50

/** A part of a select list, in which `s` is the strategy and `v` its present version. */
export const strategyColumns = `jsonb_build_object('mode', v.mode, 'budget_usd', v.budget_usd::text,
    'spent_micros', case when v.mode = 'live' and v.budget_usd is not null then trim_scale(strategy_spent(s.id))::text end,
    'accounts', (select coalesce(jsonb_agg(jsonb_build_object('mode', a.mode, 'state', a.state, 'drift', a.drift,
        'initial_usd', (case a.mode when 'live' then w.budget_usd else w.paper_balance_usd end)::text)), '[]')
      from strategy_account a
        left join strategy_version w on w.strategy_id = a.strategy_id and w.version = a.version
      where a.strategy_id = s.id),
    'decided', (select jsonb_build_object('execution_id', d.id, 'mode', d.mode, 'at', d.ended_at, 'decision', d.decision)
      from (select id, mode, ended_at, decision, number from strategy_execution where strategy_id = s.id
        order by number desc limit ${searchedRuns}) d
      where d.decision is not null and d.ended_at is not null order by d.number desc limit 1)) as strategy`
