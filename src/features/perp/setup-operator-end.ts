import { actionTypeOf, type OperatorEnd, reportedEnd } from '#kernel/task/operator-end.ts'
import type { TaskView, Tx } from '#kernel/task/task.ts'
import { isLive } from '#kernel/task/task-state.ts'
import type { ApprovalTaskData } from './setup.ts'

export type ApproveKey = (
  tx: Tx,
  userId: string,
  fact: { address: string; expiresAt: Date; now: Date },
) => Promise<void>
export type SetupOperatorDeps = { approveKey: ApproveKey }

/**
 * Returns the writes that record the trading key as approved; undefined if the task has no unresolved approval of a
 * key.
 */
export function approvalWrites(
  { approveKey }: SetupOperatorDeps,
  { userId, data, effects }: TaskView<ApprovalTaskData>,
  now: Date,
): ((tx: Tx) => Promise<void>) | undefined {
  const { agent: address, valid_until_ms: untilMs } = data
  if (address === undefined || untilMs === undefined) return undefined
  const isOpen = effects.some((effect) => isLive(effect) && actionTypeOf(effect) === 'approve_agent')
  if (!isOpen) return undefined
  return (tx) => approveKey(tx, userId, { address, expiresAt: new Date(untilMs), now })
}

export const operatorEndOfSetup =
  (deps: SetupOperatorDeps): OperatorEnd =>
  (view, ending, finding) => {
    const ended = reportedEnd(view, ending, finding)
    if ('refusal' in ended || finding.outcome !== 'executed') return ended
    const writes = approvalWrites(deps, view as TaskView<ApprovalTaskData>, finding.at)
    if (!writes) return { refusal: 'The task has signed no approval of a key that could be executed.' }
    return { ...ended, writes }
  }
