import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { StrategyStatus, StrategyType } from '#store/tables/strategies.ts'
import { pageMax, type ScheduleInputOf } from './contract.ts'
import { type ExecutionDeps, executionPage, pageOf } from './executions.ts'
import { transactionsOf } from './run-transactions.ts'
import { factsFor, requireSchedule, type ScheduleDeps, viewOf } from './schedule-deps.ts'
import { type ScheduleView, scheduleStatuses } from './schedule-schemas.ts'
import { type ScheduleRow, schedulesOf } from './store.ts'

/** This module lists and shows the schedules of a user. */

const loopTurn = createLoopTurns()

type Filter = { statuses: readonly StrategyStatus[] | null; type: StrategyType | null }

/** Returns what a filter word names: a status, a type, or everything. */
const filterOf = (word: StrategyStatus | StrategyType | 'all'): Filter => ({
  statuses: isStatus(word) ? [word] : null,
  type: word === 'all' || isStatus(word) ? null : word,
})

const isStatus = (word: string): word is StrategyStatus => scheduleStatuses.some((each) => each === word)

/** Whether an activation may follow, for which the positions of the account matter. */
const isPreparing = ({ status }: ScheduleRow): boolean => status === 'draft' || status === 'paused'

export function createScheduleReads(deps: ScheduleDeps & ExecutionDeps) {
  const { db } = deps
  const pageFor = async (userId: string, filter: Filter & { skip: number; limit: number }) => {
    const { rows, total } = await schedulesOf(db, userId, filter)
    const facts = await factsFor(deps, userId, rows.filter(isPreparing))
    const items: ScheduleView[] = []
    for (const row of rows) {
      // The first view of a calendar searches its times, so other work may go first.
      await loopTurn()
      items.push(viewOf(deps, row, facts))
    }
    return { items, total }
  }
  return {
    all: ({ filter_type = 'all' }: ScheduleInputOf<'all'>, { userId }: Caller) =>
      pageFor(userId, { ...filterOf(filter_type), skip: 0, limit: pageMax }),
    async list({ status = 'active', ...given }: ScheduleInputOf<'list'>, { userId }: Caller) {
      const page = pageOf(given, 10)
      return { ...(await pageFor(userId, { ...filterOf(status), ...page })), ...page }
    },
    async get(
      { schedule_id, include_executions = false, ...given }: ScheduleInputOf<'get'>,
      { userId }: Caller,
    ) {
      const row = await requireSchedule(db, userId, schedule_id)
      const facts = await factsFor(deps, userId, [row].filter(isPreparing))
      const view = viewOf(deps, row, facts)
      if (!include_executions) return view
      return { ...view, executions: await executionPage(deps, schedule_id, given, 50) }
    },
    async transactions({ schedule_id, ...given }: ScheduleInputOf<'transactions'>, { userId }: Caller) {
      await requireSchedule(db, userId, schedule_id)
      const page = pageOf(given, 15)
      return { ...(await transactionsOf(db, schedule_id, page)), ...page }
    },
  }
}
