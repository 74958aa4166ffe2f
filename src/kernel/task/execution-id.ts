import { sha256, uuidOf } from '#kernel/id.ts'

/**
 * Identifies an execution to chains and venues, as the nonce of a batch, the id of an order, or the reference of a
 * transaction. It is derived from who asked for what under which key, and not from this database. If the database has
 * lost an execution, the same request gets the same id, so that the chain or venue refuses the repetition or shows the
 * earlier execution. An execution id has the form of a task id; a task without an execution id of its own uses its task
 * id.
 */

const executionId = (parts: readonly [sort: string, ...rest: string[]]): string =>
  uuidOf(sha256(`portico execution\n${JSON.stringify(parts)}`).slice(0, 32))

/** `sequence` counts the effects of the execution that were executed before on the same chain. */
export type NamedExecution = { executionId: string; sequence: number }

/** The execution id of an order at a venue whose task is unknown: its client order id, which has the same length. */
export const cloidExecutionId = (cloid: string): string => uuidOf(cloid.slice(2))

/** The execution id of a withdrawal from a venue, which carries no id of ours. */
export const withdrawalExecutionId = (account: string, nonce: number): string =>
  executionId(['withdrawal', account, String(nonce)])

export type KeyedExecution = { userId: string; operation: string; key: string }

/** The execution id of a request under a key of its caller; without a key, the task's id is used. */
export const requestExecutionId = ({ userId, operation, key }: KeyedExecution): string =>
  executionId(['request', userId, operation, key])

/** The execution id of an order that a task arms; `name` distinguishes the orders of one task. */
export const armedExecutionId = (taskExecutionId: string, name: string): string =>
  executionId(['armed', taskExecutionId, name])

export type FiringOrder = { id: string; execution_id: string | null; attempts: number }

const armedAs = (order: Pick<FiringOrder, 'id' | 'execution_id'>): string => order.execution_id ?? order.id

/** The execution id of an order that is armed again after a chain executed an attempt whose payment came back. */
export const rearmedExecutionId = (order: Pick<FiringOrder, 'id' | 'execution_id'>): string =>
  executionId(['rearmed', armedAs(order)])

/**
 * The execution id of the task of an order that fires. The attempts that no chain has executed share it, because
 * a restored database may have forgotten how many there were, and a chain executes at most one of them. At a
 * venue an id names one order, which may have been refused, so each attempt has its own.
 */
export const firedExecutionId = (order: FiringOrder, { perAttempt }: { perAttempt: boolean }): string => {
  const armed = armedAs(order)
  return executionId(perAttempt ? ['fired', armed, String(order.attempts)] : ['fired', armed])
}
