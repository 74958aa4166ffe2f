import type { Acted, Skip, StrategyRunner } from '#features/strategies/run-port.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { EndResult, StepContext, StepResult, TaskView, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Run } from './run-task-store.ts'

/**
 * The steps of a run that asks no chat: it decides by the configuration of its version, and carries out what it has
 * decided. How strategies decide and act is the work of their own feature.
 */

/** The data of a run of a strategy; `seq` counts its decisions. */
export type StrategyRunData = { is_stopped?: true; acting?: JsonObject; seq?: number }
export type StrategyRunTask = TaskView<StrategyRunData>
export type StrategyStepDeps = {
  runner: StrategyRunner
  findRun(id: string): Promise<Run>
  /** Returns the caller in whose name the run acts; throws the fault of an access that has ended. */
  callerOf(run: Run, context: StepContext): Promise<Caller>
  endOfStopped(run: Run): EndResult
  endOfAccess(run: Run, error: unknown): EndResult
  endOfSkip(run: Run, skip: Skip): EndResult
  endOf(run: Run, ending: Extract<Acted, { end: object }>): Promise<EndResult>
}
type Names = 'decide' | 'act'

/** A run that waits for its orders is looked at again at least this often. */
const pollMsMax = 5_000

export const createStrategySteps = (deps: StrategyStepDeps) => ({
  decide: (task: StrategyRunTask, context: StepContext) => decide(deps, task, context),
  act: (task: StrategyRunTask, context: StepContext) => act(deps, task, context),
})

async function decide(
  { runner, ...deps }: StrategyStepDeps,
  task: StrategyRunTask,
  context: StepContext,
): Promise<StepResult<StrategyRunData, Names>> {
  const run = await deps.findRun(task.id)
  if (task.data.is_stopped) return deps.endOfStopped(run)
  const caller = await deps.callerOf(run, context).catch((error: unknown) => deps.endOfAccess(run, error))
  if ('end' in caller) return caller
  const seq = task.data.seq ?? 1
  const decided = await runner.decide(run, { caller, seq, context })
  if ('skip' in decided) return deps.endOfSkip(run, decided.skip)
  if ('waitMs' in decided)
    return { park: { afterMs: Math.min(decided.waitMs, pollMsMax), next: 'decide' }, state: 'waiting' }
  return {
    next: 'act',
    async complete(tx) {
      const { data, events } = await decided.store(tx)
      return { data: { acting: data }, events: [...events] }
    },
  }
}

async function act(
  { runner, ...deps }: StrategyStepDeps,
  task: StrategyRunTask,
  context: StepContext,
): Promise<StepResult<StrategyRunData, Names>> {
  const run = await deps.findRun(task.id)
  const caller = await deps.callerOf(run, context).catch((error: unknown) => deps.endOfAccess(run, error))
  if ('end' in caller) return caller
  const acted = await runner.act(run, { caller, data: task.data.acting ?? {}, context })
  if ('end' in acted) return deps.endOf(run, acted)
  const { store } = acted
  const complete = store && { complete: async (tx: Tx) => ({ events: await store(tx) }) }
  if ('decideAgainMs' in acted)
    return {
      park: { afterMs: acted.decideAgainMs, next: 'decide' },
      state: 'waiting',
      data: { seq: (task.data.seq ?? 1) + 1 },
      ...complete,
    }
  return {
    park: { afterMs: Math.min(acted.waitMs, pollMsMax), next: 'act' },
    state: 'waiting',
    data: { acting: acted.data },
    ...complete,
  }
}
