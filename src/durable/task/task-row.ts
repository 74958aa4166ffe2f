import type { Effect, EffectStatus, TaskView } from '#kernel/task/task.ts'
import type { Outcome, TaskStatus } from '#kernel/task/task-state.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { builder, fetchAll, type Queryable } from '#store/query.ts'
import type { TaskRow } from '#store/tables/durable.ts'

export type Task = Omit<TaskRow, 'status' | 'outcome' | 'data' | 'input' | 'result' | 'error'> & {
  status: TaskStatus
  outcome: Outcome | null
  data: JsonObject
  input: JsonObject
  result: JsonObject | null
  error: JsonObject | null
}

export const asTask = (row: TaskRow): Task => row as Task

export const isEnded = (task: Pick<Task, 'status'>): boolean =>
  task.status === 'completed' || task.status === 'failed' || task.status === 'cancelled'

/** The step of a task that waits for a person. The task engine runs it; no kind has it. */
export const approvalStep = 'approval'
/** Whether a task was admitted: it was not if it waits for a person, or ended without an approval. */
export const isAdmitted = ({ step }: Pick<Task, 'step'>): boolean => step !== approvalStep

export const stepView = (task: Task, effects: Effect[]): TaskView => ({
  id: task.id,
  executionId: task.execution_id ?? task.id,
  mayBeForgotten: task.execution_id !== null,
  userId: task.user_id,
  kind: task.kind,
  data: task.data,
  input: task.input,
  attempt: task.attempts,
  version: task.version,
  effects,
  createdAt: task.created_at,
  deadline: task.deadline,
  outcome: task.outcome,
})

export async function readEffects(db: Queryable, taskId: string): Promise<Effect[]> {
  const ofTask = builder.selectFrom('effect').where('task_id', '=', taskId)
  const [rows, attempts] = await Promise.all([
    fetchAll(db, ofTask.selectAll().orderBy('id')),
    fetchAll(
      db,
      builder
        .selectFrom('tx_attempt')
        .selectAll()
        .where('effect_id', 'in', ofTask.select('id'))
        .orderBy('effect_id')
        .orderBy('n'),
    ),
  ])
  return rows.map((row) => ({
    id: row.id,
    step: row.step,
    kind: row.kind,
    externalId: row.external_id,
    intent: row.intent as JsonObject,
    signed: row.signed as JsonObject,
    status: row.status as EffectStatus,
    validUntil: row.valid_until,
    at: row.at,
    txAttempts: attempts
      .filter((attempt) => attempt.effect_id === row.id)
      .map((attempt) => ({
        n: attempt.n,
        externalId: attempt.external_id,
        raw: attempt.raw,
        nonceSequence: { kind: attempt.nonce_kind, chain: attempt.chain, signer: attempt.signer },
        nonce: BigInt(attempt.nonce),
        status: attempt.status,
        at: attempt.at,
      })),
  }))
}
