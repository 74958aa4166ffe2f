import type { Committed } from '#durable/run/write-tasks.ts'
import type { Task } from '#durable/task/task-row.ts'
import { taskEvent } from '#durable/task/task-view.ts'
import type { Tx } from '#kernel/task.ts'
import { query } from '#store/query.ts'
import { acceptPromises, type NewTask, refusalOf, type TaskPromise, type Verdict } from './acceptance.ts'
import { buildPromise, type TaskAcceptanceDeps } from './build-acceptance.ts'

/** The acceptance of a task that has waited for an approval: under its id, by the limits and balances of now. */

const grantsMax = 10

/** What its admission is now; user, input and key are those of the waiting task. */
export type ApprovedTask = Pick<NewTask, 'kind' | 'admission'>

/**
 * In one transaction the waiting row is taken away and the accepted one is inserted in its place, so that the task is
 * accepted once or not at all. Undefined where the task was claimed again, was cancelled or has ended. It signs in its
 * first step: only the acceptance knows that it is approved.
 */
export async function resumeTask(
  deps: TaskAcceptanceDeps,
  waiting: Task,
  approved: ApprovedTask,
): Promise<Committed | undefined> {
  const promise = promiseAfter(deps, waiting, approved)
  let grant = promise.grant ?? (await promise.check?.())
  for (let grants = 1; ; grants++) {
    const verdict = await deps.transactions
      .run((tx) => replace(deps, tx, waiting, { ...promise, grant }))
      .catch((error: unknown) => {
        if (error instanceof NotAccepted) return error.verdict
        throw error
      })
    if (verdict === undefined) return undefined
    if (verdict.verdict === 'accepted')
      return { task: promise.task, committedEvents: { last: verdict.last ?? 0n, events: promise.events } }
    if (verdict.verdict !== 'policy' || !promise.check || grants === grantsMax)
      throw refusalOf(verdict, promise.wanted)
    // The limits, a switch or the sum of the day have changed: this throws the fault, or grants by the present ones.
    grant = await promise.check()
  }
}

function promiseAfter(deps: TaskAcceptanceDeps, waiting: Task, approved: ApprovedTask): TaskPromise {
  const { id, user_id: userId, input, version, idempotency_key, execution_id } = waiting
  const promise = buildPromise(deps, { ...approved, id, userId, input, leased: true })
  // Above every version of the waiting row: a run that has lost its lease commits nothing over the accepted task.
  const task = { ...promise.task, version: version + 1, idempotency_key, execution_id }
  return { ...promise, task, events: [taskEvent('task.updated', task)] }
}

/** Locks the task first, as every transaction does. */
async function replace(
  { instanceId }: TaskAcceptanceDeps,
  tx: Tx,
  waiting: Task,
  promise: TaskPromise,
): Promise<Verdict | undefined> {
  const taken = await query(
    tx,
    `with taken as (delete from task where id = $1 and version = $2 and status in ('pending', 'running')
       and not cancel_requested returning id)
     delete from task_queue where task_id in (select id from taken) returning task_id`,
    [waiting.id, waiting.version],
  )
  if (taken.length === 0) return undefined
  const [verdict] = await acceptPromises(tx, instanceId, [promise])
  if (verdict?.verdict !== 'accepted') throw new NotAccepted(verdict!)
  await query(tx, 'update task set version = $2 where id = $1', [waiting.id, promise.task.version])
  return verdict
}

/** Rolls back, so that the task waits on. */
class NotAccepted extends Error {
  readonly verdict: Exclude<Verdict, { verdict: 'accepted' }>
  constructor(verdict: Verdict) {
    super('the promise was refused')
    this.verdict = verdict as Exclude<Verdict, { verdict: 'accepted' }>
  }
}
