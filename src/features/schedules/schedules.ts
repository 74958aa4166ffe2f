import { type ActScope, actOf, type Caller } from '#kernel/contract/caller.ts'
import { confirmedAct, implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import type { StrategyStatus } from '#store/tables/strategies.ts'
import * as activation from './activation.ts'
import * as changes from './changes.ts'
import { contract, pageMax, type ScheduleInputOf } from './contract.ts'
import { createExecutionReads, type ExecutionDeps, executionPage, pageOf } from './executions.ts'
import { type ManualRunDeps, runNow } from './manual-run.ts'
import { preview } from './preview.ts'
import * as recommendations from './recommendations.ts'
import type { UserFacts } from './setup.ts'
import type { ApprovedActivation } from './standing-approval.ts'
import { schedulesOf } from './store.ts'
import { transactionsOf } from './transactions.ts'

export type SchedulesDeps = ManualRunDeps & ExecutionDeps & recommendations.RecommendationDeps

const statusesOf = (filter: StrategyStatus | 'all' | 'prompt') =>
  filter === 'all' || filter === 'prompt' ? null : [filter]

export function createSchedules(deps: SchedulesDeps): Operation[] {
  const { db } = deps
  const reads = createExecutionReads(deps)
  /** An act that needs no more of the world than the credits and the limit of its user. */
  const withFacts = <Input, Output>(
    run: (input: Input, given: { facts: UserFacts; caller: Caller; act: ActScope }) => Promise<Output>,
  ) =>
    preparedAct(
      async (input: Input, caller) => ({ input, facts: await deps.factsOf(caller.userId) }),
      ({ input, facts }, caller, request) => run(input, { facts, caller, act: actOf(request) }),
    )
  const pageFor = async (
    userId: string,
    { statuses, ...page }: { statuses: readonly StrategyStatus[] | null; skip: number; limit: number },
  ) => {
    const [{ rows, total }, facts] = await Promise.all([
      schedulesOf(db, userId, { statuses, ...page }),
      deps.factsOf(userId),
    ])
    return { items: rows.map((row) => activation.viewOf(deps, row, facts)), total }
  }

  const operations: Operation[] = implement(contract, {
    create: preparedAct(
      async (input: ScheduleInputOf<'create'>, caller) => ({
        input,
        ...(await changes.prepareCreate(deps, input, caller)),
      }),
      ({ input, ...prepared }, caller, request) =>
        changes.create(deps, input, prepared, { caller, act: actOf(request) }),
    ),
    all: ({ filter_type = 'all' }, { userId }) =>
      pageFor(userId, { statuses: statusesOf(filter_type), skip: 0, limit: pageMax }),
    update: preparedAct(
      async (input: ScheduleInputOf<'update'>, caller) => ({
        input,
        ...(await changes.prepareUpdate(deps, input, caller)),
      }),
      ({ input, ...prepared }, caller, request) =>
        changes.update(deps, input, prepared, { caller, act: actOf(request) }),
    ),
    disable: (input, caller, request) => activation.disable(deps, input, caller, actOf(request)),
    async list({ status = 'active', ...given }, { userId }) {
      const page = pageOf(given, 10)
      return { ...(await pageFor(userId, { statuses: statusesOf(status), ...page })), ...page }
    },
    async get({ schedule_id, include_executions = false, ...given }, { userId }) {
      const [row, facts] = await Promise.all([
        activation.requireSchedule(db, userId, schedule_id),
        deps.factsOf(userId),
      ])
      const view = activation.viewOf(deps, row, facts)
      if (!include_executions) return view
      return { ...view, executions: await executionPage(deps, schedule_id, given, 50) }
    },
    activate: confirmedAct(
      withFacts((input: ScheduleInputOf<'activate'>, given) => activation.activate(deps, input, given)),
      async (input, _person, userId) => {
        const facts = await deps.factsOf(userId)
        return (act) => activation.activateApproved(deps, input as ApprovedActivation, { facts, userId, act })
      },
    ),
    pause: withFacts((input: ScheduleInputOf<'pause'>, given) => activation.pause(deps, input, given)),
    run: withFacts((input: ScheduleInputOf<'run'>, given) => runNow(deps, input, given)),
    ...reads,
    async transactions({ schedule_id, ...given }, { userId }) {
      await activation.requireSchedule(db, userId, schedule_id)
      const page = pageOf(given, 15)
      return { ...(await transactionsOf(db, schedule_id, page)), ...page }
    },
    recommendations: recommendations.list(deps, () => operations.find(({ key }) => key === refreshKey)!),
    refreshRecommendations: recommendations.refresh(deps),
    deleteRecommendation: recommendations.remove,
    preview: preview(deps),
  })
  return operations
}

const refreshKey: keyof (typeof contract)['entries'] = 'refreshRecommendations'
