import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import { failed } from '#durable/run/synthetic-step-results.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import { systemRandom as random, uuidv7 } from '#kernel/id.ts'
import type { AdmittedSpend, TaskKind } from '#kernel/task/task.ts'

/** Tasks of a kind that nobody runs, for tests of what the acceptance counts. */

const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {} }
type Where = { transactions: Transactions; clock: Clock }

/** Returns the id of the task. */
export async function acceptTask(where: Where, userId: string, spend: AdmittedSpend): Promise<string> {
  const admission = { data: {}, first: 'first', spend }
  const wanted = { userId, kind, input: {}, admission, leased: true }
  const deps = { ...where, random, instanceId: uuidv7(where.clock.now(), random) }
  return (await createTaskIntake(deps).accept(wanted)).task.id
}

/** Ends it with nothing executed. */
export async function endUnexecuted(where: Where, taskId: string): Promise<void> {
  const committer = createCommitter({ ...where, random })
  const { task } = (await committer.reread(taskId))!
  await committer.step(task, failed('rejected', 'Nothing was executed'))
}
