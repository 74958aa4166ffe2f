import { recordFill } from '#engines/cost-basis/store.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import type { EndResult, Tx } from '#kernel/task/task.ts'
import { completeAttached, type FillDeps } from './attached-tp-sl.ts'
import type { SwapDeps } from './deps.ts'
import { filledOf } from './settle/swap-fill.ts'
import { type NamedSwapSteps, swapSteps } from './steps.ts'
import type { SwapStep, SwapStepNames, SwapTask, SwapTaskData } from './task-data.ts'

/** Steps and ends of a swap that record the cost of what it bought. */

export function costedSteps<Names extends string>(
  deps: SwapDeps,
  names: SwapStepNames<Names>,
): NamedSwapSteps<Names> {
  const { sign, confirm, track } = swapSteps(deps, names)
  const costed =
    (step: NamedSwapSteps<Names>[SwapStep]): NamedSwapSteps<Names>[SwapStep] =>
    async (task, context) => {
      const result = await step(task, context)
      return 'end' in result ? (withFill(deps, task, result, context.now) as typeof result) : result
    }
  return { sign, confirm: costed(confirm), track: costed(track) }
}

type Ended = EndResult<Partial<SwapTaskData>>

/** Adds to the end of a swap the cost of the bought units, and the hooks that an executed swap arms or cancels. */
export function withFill<End extends Ended>(deps: FillDeps, task: SwapTask, ending: End, at: Date): End {
  const outUnits = BigInt(String(ending.result?.amount_out ?? '0'))
  if (outUnits === 0n) return ending
  const fill = filledOf(deps, { task, outUnits, at })
  const isAlone = ending.end !== 'completed' || (!task.data.attached && !task.data.cancels_hooks)
  return {
    ...ending,
    writes: combineWrites((tx) => recordFill(tx, fill), ending.writes),
    ...(!isAlone && { complete: (tx: Tx) => completeAttached(deps, tx, { task, ...fill }) }),
  }
}
