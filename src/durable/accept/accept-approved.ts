import type { Committed } from '#durable/run/write-tasks.ts'
import type { Task } from '#durable/task/task-row.ts'
import { taskEvent } from '#durable/task/task-view.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { type Acceptance, insertAcceptances, type NewTask, refusalOf, type Verdict } from './acceptance.ts'
import { buildAcceptance, type IntakeDeps } from './build-acceptance.ts'

/** Accepts a task that has waited for an approval, under its id and by the present limits and balances. */

const grantsMax = 10

/** The kind and the present admission of an approved task; user, input and key are those of the waiting task. */
export type ApprovedTask = Pick<NewTask, 'kind' | 'admission'>

/**
 * Replaces the row of the waiting task by that of the accepted task in one transaction, so that the task is
 * accepted once or not at all. Returns undefined if the task was claimed again, was cancelled or has ended. The
 * task signs in its first step, because only the acceptance knows that the task is approved.
 */
export async function resumeTask(
  deps: IntakeDeps,
  waiting: Task,
  approved: ApprovedTask,
): Promise<Committed | undefined> {
  const acceptance = acceptanceAfter(deps, waiting, approved)
  let grant = acceptance.grant ?? (await acceptance.check?.())
  for (let grants = 1; ; grants++) {
    const verdict = await deps.transactions
      .run((tx) => replace(deps, tx, waiting, { ...acceptance, grant }))
      .catch((error: unknown) => {
        if (error instanceof NotAccepted) return error.verdict
        throw error
      })
    if (verdict === undefined) return undefined
    if (verdict.verdict === 'accepted')
      return {
        task: acceptance.task,
        committedEvents: { last: verdict.last ?? 0n, events: acceptance.events },
      }
    if (verdict.verdict !== 'policy' || !acceptance.check || grants === grantsMax)
      throw refusalOf(verdict, acceptance.wanted)
    // The policy's limits, switches or day's sum changed after the grant: `check` throws the fault, or grants by the
    // present limits.
    grant = await acceptance.check()
  }
}

function acceptanceAfter(deps: IntakeDeps, waiting: Task, approved: ApprovedTask): Acceptance {
  const { id, user_id: userId, input, version, idempotency_key, execution_id } = waiting
  const { asked_by_app: app } = waiting.data
  const clientId = typeof app === 'string' ? { clientId: app } : {}
  const acceptance = buildAcceptance(deps, { ...approved, ...clientId, id, userId, input, leased: true })
  // The accepted task has a version above every version of the waiting row, so that a run without its lease commits
  // nothing over the task.
  const task = { ...acceptance.task, version: version + 1, idempotency_key, execution_id }
  return { ...acceptance, task, events: [taskEvent('task.updated', task)] }
}

/** Deletes the waiting task, whose row every transaction locks first, and inserts the accepted task instead. */
async function replace(
  { instanceId }: IntakeDeps,
  tx: Tx,
  waiting: Task,
  acceptance: Acceptance,
): Promise<Verdict | undefined> {
  const taken = await query(
    tx,
    `with taken as (delete from task where id = $1 and version = $2 and status in ('pending', 'running')
       and not cancel_requested returning id)
     delete from task_queue where task_id in (select id from taken) returning task_id`,
    [waiting.id, waiting.version],
  )
  if (taken.length === 0) return undefined
  const [verdict] = await insertAcceptances(tx, instanceId, [acceptance])
  if (verdict?.verdict !== 'accepted') throw new NotAccepted(verdict!)
  await query(tx, 'update task set version = $2 where id = $1', [waiting.id, acceptance.task.version])
  return verdict
}

/** Thrown to roll back the transaction of a refused acceptance, so that the task keeps waiting. */
class NotAccepted extends Error {
  readonly verdict: Exclude<Verdict, { verdict: 'accepted' }>
  constructor(verdict: Verdict) {
    super('the acceptance was refused')
    this.verdict = verdict as Exclude<Verdict, { verdict: 'accepted' }>
  }
}
