import { decideExit } from '#market/strategies/decide.ts'
import { isOvernight } from '#market/strategies/farming-rule.ts'
import type { StrategyState } from '#market/strategies/strategy.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyAccount } from './account-store.ts'
import type { StrategyTerms } from './mode-driver.ts'

/** Why an account has to end what it has open: by a guard, with its day, or because an exit did not end it. */

export type EndState = {
  /** A strategy that was stopped opens nothing; its positions keep their exits and guards. */
  hasStopped: boolean
  /** The reason of the last run, if that was an exit that has failed a while ago. */
  unfinishedExit: string | null
}
export type ExitGiven = {
  state: StrategyState
  terms: Pick<StrategyTerms, 'config' | 'timezone'>
  endState: Pick<EndState, 'unfinishedExit'>
  dayEndOf: DayEndOf
}
/** Returns the end of the local day of a zone. */
export type DayEndOf = (timezone: string, atMs: number) => number

const exitAgainMs = 30_000

export async function readEndState(
  db: Queryable,
  { strategy_id, mode }: Pick<StrategyAccount, 'strategy_id' | 'mode'>,
  nowMs: number,
): Promise<EndState> {
  const [row] = await query<EndState>(
    db,
    `select s.status in ('paused', 'disabled') as "hasStopped", e.reason as "unfinishedExit"
     from strategy s left join lateral (
       select case when execution_type = 'exit' and status = 'failed' and ended_at <= $3
         then case when decision ->> 'action' = 'exit' then decision ->> 'reason' else 'disabled' end end as reason
       from strategy_execution where strategy_id = s.id and mode = $2 order by number desc limit 1) e on true
     where s.id = $1`,
    [strategy_id, mode, new Date(nowMs - exitAgainMs)],
  )
  return row ?? { hasStopped: false, unfinishedExit: null }
}

/** Returns why an account has to end what it has open, unless the orders of a decision are under way. */
export function exitDue(
  { run }: Pick<StrategyAccount, 'run'>,
  { state, terms, endState, dayEndOf }: ExitGiven,
): string | undefined {
  const { positions } = run.account
  if (positions.size === 0 || run.pending.length > 0) return undefined
  const { config, timezone } = terms
  const decided = decideExit(state, config.decision)
  if (decided) return decided.reason
  // A part that cannot be closed is not among the positions of the state.
  if (Object.keys(state.positions).length === 0) return undefined
  const day = { nowMs: state.now_ms, dayEndOf: (atMs: number) => dayEndOf(timezone, atMs) }
  const { strategy } = config.decision
  if (strategy.type === 'day_trade_farming' && isOvernight(positions.values(), day)) return 'day_ends'
  // Nothing else asks a second time for an exit.
  return endState.unfinishedExit ?? undefined
}
