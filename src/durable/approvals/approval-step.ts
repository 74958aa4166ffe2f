import { StaleBalance } from '#durable/accept/acceptance.ts'
import { admitUntilAccepted, kindOf } from '#durable/accept/admit-task.ts'
import { accountBusy } from '#durable/accept/faults.ts'
import type { OperationOf } from '#durable/accept/operation-call.ts'
import type { TaskIntake } from '#durable/accept/task-intake.ts'
import type { EventLog } from '#durable/events/event-log.ts'
import type { Notifier } from '#durable/events/notifier.ts'
import type { Committed, Committer } from '#durable/run/step-committer.ts'
import { cancelled, deferToNewerVersion, failed } from '#durable/run/synthetic-step-results.ts'
import { approvalStep, type Task } from '#durable/task/task-row.ts'
import type { Transactions } from '#durable/transactions.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { ApplyAct } from '#kernel/contract/operation.ts'
import type { Random } from '#kernel/id.ts'
import { isOperatorText } from '#kernel/task/operator-text.ts'
import type { StepResult, TaskKind, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Approvers, addEvent, approvalEvent } from './approval-events.ts'
import { type Approval, approvalOfTask, type Decision, writeDecision } from './approval-store.ts'

/** The step of a task that waits for a person. The stored decision determines what it does. */

export type ApprovalsDeps = {
  transactions: Transactions
  intake: TaskIntake
  committer: Pick<Committer, 'step'>
  events: Pick<EventLog, 'add' | 'notify'>
  notifier: Pick<Notifier, 'notify'>
  kinds: ReadonlyMap<string, TaskKind>
  operations: ReadonlyMap<string, OperationOf<'task'>>
  acts: ReadonlyMap<string, ApplyAct>
  clock: Clock
  random: Random
}

/** How long the admission of an approved request is retried while a price or a node is away. */
export const admissionMs = 5 * 60_000

export async function decideWaiting(
  deps: ApprovalsDeps,
  approvers: Approvers,
  task: Task,
): Promise<Committed | undefined> {
  const { committer, transactions, clock } = deps
  const approval = await approvalOfTask(transactions.pool, task.id)
  if (!approval) throw new Error(`task ${task.id} waits without an approval`)
  if (task.cancel_requested) return commitEnd(deps, task, cancel(deps, approvers, approval))
  const now = clock.now()
  // No instance ran for so long after the approval that prices and plans have moved on.
  if (approval.decision === 'approved' && now > later(approval.decided_at!, admissionMs))
    return committer.step(
      task,
      failed('expired', 'The deadline passed before the approved request was admitted'),
    )
  if (approval.decision === 'approved')
    return approval.intent.rule === 'confirmation'
      ? apply(deps, approvers, task, approval)
      : accept(deps, task, approval)
  if (approval.decision !== null) return committer.step(task, notApproved(approval.decision))
  if (now < approval.expires_at) {
    const afterMs = approval.expires_at.getTime() - now.getTime()
    return committer.step(task, { park: { afterMs, next: approvalStep }, state: 'awaiting_approval' })
  }
  return commitEnd(deps, task, expire(deps, approvers, approval, now))
}

/** The end of an approval request, and its event in each log; `writes` returns the users of these logs. */
type RequestEnd = { result: StepResult; writes: (tx: Tx) => Promise<string[]> }

async function commitEnd(
  { committer, events }: ApprovalsDeps,
  task: Task,
  { result, writes }: RequestEnd,
): Promise<Committed | undefined> {
  let readers: string[] = []
  const committed = await committer.step(task, {
    ...result,
    async writes(tx) {
      readers = await writes(tx)
    },
  })
  if (committed) for (const reader of readers) events.notify(reader)
  return committed
}

/** Ends a request as expired. If a decision was stored meanwhile, the step fails, is repeated, and finds it. */
const expire = (deps: ApprovalsDeps, approvers: Approvers, approval: Approval, at: Date): RequestEnd => ({
  result: notApproved('expired'),
  async writes(tx) {
    if (!(await writeDecision(tx, approval.task_id, { decision: 'expired', by: null, at })))
      throw new Fault('unavailable', 'The request was decided at this moment')
    const expired = { ...approval, decision: 'expired' as const }
    return addEvent(deps, approvers, tx, {
      userId: approval.user_id,
      event: approvalEvent('approval.expired', expired),
    })
  },
})

/** Ends a request as cancelled; a person may have approved the request, but its task was not accepted yet. */
const cancel = (deps: ApprovalsDeps, approvers: Approvers, approval: Approval): RequestEnd => ({
  result: cancelled('Cancelled on request'),
  writes: (tx) =>
    addEvent(deps, approvers, tx, {
      userId: approval.user_id,
      event: approvalEvent('approval.cancelled', approval),
    }),
})

const notApproved = (decision: Exclude<Decision, 'approved'>): StepResult =>
  decision === 'declined'
    ? failed('approval_declined', 'A person declined it')
    : failed('approval_expired', 'No person approved it in time')

/** Runs the act as the person who confirmed it, in the transaction that ends its task. */
async function apply(
  { acts, committer, transactions }: ApprovalsDeps,
  approvers: Approvers,
  task: Task,
  { decided_by: decidedBy }: Approval,
): Promise<Committed | undefined> {
  const act = acts.get(task.kind)
  if (!act) return committer.step(task, deferToNewerVersion(task))
  const person = await approvers.callerFor(transactions.pool, task.user_id)
  const isByOperator = isOperatorText(decidedBy)
  if (decidedBy !== person.agentId && !isByOperator)
    return committer.step(task, failed('conflict', 'Who confirmed it decides for this user no more'))
  const caller: Caller = isByOperator ? { ...person, confirmedBy: 'operator' } : person
  const run = await act(task.input, caller, task.user_id)
  let callbacks: (() => void)[] = []
  const committed = await committer.step(task, {
    end: 'completed',
    outcome: 'executed',
    result: {},
    async complete(tx) {
      callbacks = []
      const result = await run({ tx, afterCommit: (callback) => callbacks.push(callback) })
      return { result: result as JsonObject }
    },
  })
  if (committed) for (const callback of callbacks) callback()
  return committed
}

/** Admits the request again, with present prices, balances and limits, as asked by the person who approved it. */
async function accept(deps: ApprovalsDeps, task: Task, approval: Approval): Promise<Committed | undefined> {
  const { intake, operations, kinds, committer } = deps
  const operation = operations.get(approval.operation)
  if (!operation) return committer.step(task, deferToNewerVersion(task))
  const asker = {
    userId: task.user_id,
    agentId: approval.agent_id,
    principal: 'person' as const,
    ...(task.execution_id !== null && { executionId: task.execution_id }),
  }
  return admitUntilAccepted({ operation, input: task.input, asker }, (admission) =>
    intake.resume(task, { kind: kindOf(kinds, operation), admission }),
  ).catch((error: unknown) => {
    throw error instanceof StaleBalance ? accountBusy({ cause: error }) : error
  })
}
