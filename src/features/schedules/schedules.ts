import { type ActScope, type Caller, toActScope } from '#kernel/contract/caller.ts'
import { confirmedAct, implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import * as activation from './activation.ts'
import { contract, type ScheduleInputOf } from './contract.ts'
import * as changes from './create-and-update.ts'
import { createExecutionReads, type ExecutionDeps } from './executions.ts'
import { createFarming } from './farming.ts'
import { type ManualRunDeps, runNow } from './manual-run.ts'
import { disable, pause } from './pause-and-disable.ts'
import { createPreview } from './preview.ts'
import * as recommendations from './recommendations.ts'
import { factsFor, requireSchedule } from './schedule-deps.ts'
import { createScheduleReads } from './schedule-reads.ts'
import type { UserFacts } from './setup-checklist.ts'
import type { ApprovedActivation } from './standing-approval.ts'

export type SchedulesDeps = ManualRunDeps & ExecutionDeps & recommendations.RecommendationDeps

export function createSchedules(deps: SchedulesDeps): Operation[] {
  const factsOfSchedule = async (userId: string, id: string) =>
    factsFor(deps, userId, [await requireSchedule(deps.db, userId, id)])
  /** Makes an act on one schedule that first reads only what its user has and may do. */
  const withFacts = <Input extends { schedule_id: string }, Output>(
    run: (input: Input, given: { facts: UserFacts; caller: Caller; act: ActScope }) => Promise<Output>,
  ) =>
    preparedAct(
      async (input: Input, caller) => ({
        input,
        facts: await factsOfSchedule(caller.userId, input.schedule_id),
      }),
      ({ input, facts }, caller, request) => run(input, { facts, caller, act: toActScope(request) }),
    )
  const operations: Operation[] = implement(contract, {
    create: preparedAct(
      async (input: ScheduleInputOf<'create'>, caller) => ({
        input,
        ...(await changes.prepareCreate(deps, input, caller)),
      }),
      ({ input, ...prepared }, caller, request) =>
        changes.create(deps, input, prepared, { caller, act: toActScope(request) }),
    ),
    update: preparedAct(
      async (input: ScheduleInputOf<'update'>, caller) => ({
        input,
        ...(await changes.prepareUpdate(deps, input, caller)),
      }),
      ({ input, ...prepared }, caller, request) =>
        changes.update(deps, input, prepared, { caller, act: toActScope(request) }),
    ),
    disable: (input, caller, request) => disable(deps, input, caller, toActScope(request)),
    activate: confirmedAct(
      withFacts((input: ScheduleInputOf<'activate'>, given) => activation.activate(deps, input, given)),
      async (input, _person, userId) => {
        const facts = await factsOfSchedule(userId, (input as ApprovedActivation).schedule_id)
        return (act) => activation.activateApproved(deps, input as ApprovedActivation, { facts, userId, act })
      },
    ),
    pause: withFacts((input: ScheduleInputOf<'pause'>, given) => pause(deps, input, given)),
    run: withFacts((input: ScheduleInputOf<'run'>, given) => runNow(deps, input, given)),
    ...createFarming(deps),
    ...createScheduleReads(deps),
    ...createExecutionReads(deps),
    recommendations: recommendations.list(deps, () => operations.find(({ key }) => key === refreshKey)!),
    refreshRecommendations: recommendations.refresh(deps),
    deleteRecommendation: recommendations.remove,
    preview: createPreview(deps),
  })
  return operations
}

const refreshKey: keyof (typeof contract)['entries'] = 'refreshRecommendations'
