import { backoffMs } from '#kernel/async/backoff.ts'
import { decideExit } from '#market/strategies/decide.ts'
import { isOvernight } from '#market/strategies/farming-rule.ts'
import type { StrategyState } from '#market/strategies/strategy.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyAccount } from './account-store.ts'
import { isStoppedSql } from './live-records.ts'
import type { StrategyTerms } from './mode-driver.ts'

/** Why an account has to end what it has open: by a guard, with its day, or because an exit did not end it. */

export type EndState = {
  /** A strategy that was stopped opens nothing; its positions keep their exits and guards. */
  hasStopped: boolean
  /** The last runs, if they are exits that have failed one after another for the same cause. */
  failedExit: FailedExit | null
}
export type FailedExit = {
  reason: string
  endedMs: number
  /** How many there are, at most as many as change the pause. */
  count: number
}
export type ExitGiven = {
  state: StrategyState
  terms: Pick<StrategyTerms, 'config' | 'timezone'>
  endState: Pick<EndState, 'failedExit'>
  dayEndOf: DayEndOf
}
/** Returns the end of the local day of a zone. */
export type DayEndOf = (timezone: string, atMs: number) => number

const firstPauseMs = 30_000
/** Whatever forbids an exit for long is not asked for more often than this. */
const pauseMsMax = 300_000
/** What a guard or the end of a day closes is tried again each minute until the venue says that nothing is left. */
const urgentPauseMsMax = 60_000
const countMax = 6
/** A strategy may have a year of runs of the other mode; this many of the newest are looked at. */
const runsMax = 100

type LastRun = { isFailedExit: boolean; reason: string; code: string | null; endedAt: Date | null }

export async function readEndState(
  db: Queryable,
  { strategy_id, mode }: Pick<StrategyAccount, 'strategy_id' | 'mode'>,
): Promise<EndState> {
  const rows = await query<LastRun & { hasStopped: boolean }>(
    db,
    `select ${isStoppedSql('s.status')} as "hasStopped",
       coalesce(e.execution_type = 'exit' and e.status = 'failed', false) as "isFailedExit",
       case when e.decision ->> 'action' = 'exit' then e.decision ->> 'reason' else 'disabled' end as reason,
       e.error ->> 'code' as code, e.ended_at as "endedAt"
     from strategy s left join lateral (
       select * from (
         select number, mode, execution_type, status, decision, error, ended_at from strategy_execution
         where strategy_id = s.id order by number desc limit ${runsMax}) newest
       where mode = $2 order by number desc limit $3) e on true
     where s.id = $1 order by e.number desc`,
    [strategy_id, mode, countMax],
  )
  return { hasStopped: rows[0]?.hasStopped ?? false, failedExit: failedExitOf(rows) }
}

/** Counts the newest runs that are failed exits of one cause. */
export function failedExitOf(newestFirst: readonly LastRun[]): FailedExit | null {
  const [last] = newestFirst
  if (!last?.isFailedExit || !last.endedAt) return null
  const other = newestFirst.findIndex(
    ({ isFailedExit, reason, code }) => !isFailedExit || reason !== last.reason || code !== last.code,
  )
  const count = other === -1 ? newestFirst.length : other
  return { reason: last.reason, endedMs: last.endedAt.getTime(), count }
}

const pauseAfter = (failures: number, maxMs: number): number =>
  failures === 0 ? 0 : backoffMs({ firstMs: firstPauseMs, maxMs }, failures - 1)

/** Whether an exit that a guard or the end of a day calls for is to begin now; the first one is repeated at once. */
const isDueAgain = (failed: FailedExit | null, reason: string, nowMs: number): boolean =>
  failed === null ||
  failed.reason !== reason ||
  nowMs >= failed.endedMs + pauseAfter(failed.count - 1, urgentPauseMsMax)

/**
 * Returns why an account has to end what it has open. On paper the orders of a decision come first; the exit of a live
 * account waits in their markets by itself.
 */
export function exitDue(
  { run, mode }: Pick<StrategyAccount, 'run' | 'mode'>,
  { state, terms, endState, dayEndOf }: ExitGiven,
): string | undefined {
  const { positions } = run.account
  if (positions.size === 0 || (mode === 'paper' && run.pending.length > 0)) return undefined
  const { config, timezone } = terms
  const { failedExit } = endState
  const again = (reason: string) => (isDueAgain(failedExit, reason, state.now_ms) ? reason : undefined)
  const decided = decideExit(state, config.decision)
  if (decided) return again(decided.reason)
  // A part that cannot be closed is not among the positions of the state.
  if (Object.keys(state.positions).length === 0) return undefined
  const day = { nowMs: state.now_ms, dayEndOf: (atMs: number) => dayEndOf(timezone, atMs) }
  const { strategy } = config.decision
  if (strategy.type === 'day_trade_farming' && isOvernight(positions.values(), day)) return again('day_ends')
  // Nothing else asks a second time for an exit.
  return failedExit && state.now_ms >= failedExit.endedMs + pauseAfter(failedExit.count, pauseMsMax)
    ? failedExit.reason
    : undefined
}
