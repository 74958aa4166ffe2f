import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { StrategyStatus } from '#store/tables/strategies.ts'
import { requireSchedule, type ScheduleDeps, viewOf } from './activation.ts'
import { pageMax, type ScheduleInputOf } from './contract.ts'
import { type ExecutionDeps, executionPage, pageOf } from './executions.ts'
import { transactionsOf } from './run-transactions.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import { schedulesOf } from './store.ts'

/** This module lists and shows the schedules of a user. */

const loopTurn = createLoopTurns()

const statusesOf = (filter: StrategyStatus | 'all' | 'prompt') =>
  filter === 'all' || filter === 'prompt' ? null : [filter]

export function createScheduleReads(deps: ScheduleDeps & ExecutionDeps) {
  const { db } = deps
  const pageFor = async (
    userId: string,
    { statuses, ...page }: { statuses: readonly StrategyStatus[] | null; skip: number; limit: number },
  ) => {
    const [{ rows, total }, facts] = await Promise.all([
      schedulesOf(db, userId, { statuses, ...page }),
      deps.factsOf(userId),
    ])
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
      pageFor(userId, { statuses: statusesOf(filter_type), skip: 0, limit: pageMax }),
    async list({ status = 'active', ...given }: ScheduleInputOf<'list'>, { userId }: Caller) {
      const page = pageOf(given, 10)
      return { ...(await pageFor(userId, { statuses: statusesOf(status), ...page })), ...page }
    },
    async get(
      { schedule_id, include_executions = false, ...given }: ScheduleInputOf<'get'>,
      { userId }: Caller,
    ) {
      const [row, facts] = await Promise.all([requireSchedule(db, userId, schedule_id), deps.factsOf(userId)])
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
