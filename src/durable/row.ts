import type { JsonObject } from '#kernel/json.ts'
import type { Effect, EffectStatus, Outcome, TaskStatus, TaskView } from '#kernel/task.ts'
import { all, type Queryable, q } from '#store/query.ts'
import type { TaskRow } from '#store/tables/durable.ts'

/** A task as it stands in the database, with its words typed. */
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

/** What a step sees of its task. */
export const stepView = (task: Task, effects: Effect[]): TaskView => ({
  id: task.id,
  userId: task.user_id,
  kind: task.kind,
  data: task.data,
  input: task.input,
  attempt: task.attempts,
  effects,
  createdAt: task.created_at,
  deadline: task.deadline,
})

const liveEffects: EffectStatus[] = ['prepared', 'sent', 'unknown']
export const isLive = (effect: Pick<Effect, 'status'>): boolean => liveEffects.includes(effect.status)

export async function effectsOf(on: Queryable, taskId: string): Promise<Effect[]> {
  const ofTask = q.selectFrom('effect').where('task_id', '=', taskId)
  const [rows, carriers] = await Promise.all([
    all(on, ofTask.selectAll().orderBy('id')),
    all(
      on,
      q
        .selectFrom('carrier')
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
    extId: row.ext_id,
    intent: row.intent as JsonObject,
    signed: row.signed as JsonObject,
    status: row.status as EffectStatus,
    validUntil: row.valid_until,
    at: row.at,
    carriers: carriers
      .filter((carrier) => carrier.effect_id === row.id)
      .map((carrier) => ({
        n: carrier.n,
        extId: carrier.ext_id,
        raw: carrier.raw,
        lane: { kind: carrier.lane_kind, chain: carrier.chain, signer: carrier.signer },
        nonce: BigInt(carrier.nonce),
        status: carrier.status,
        at: carrier.at,
      })),
  }))
}
