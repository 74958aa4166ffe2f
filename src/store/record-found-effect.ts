import { createHash } from 'node:crypto'
import { conflict } from '#kernel/contract/fault.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { NonceSequence, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from './query.ts'

/**
 * An effect that was executed on a chain or at the venue and is missing in this database. It is recorded as confirmed.
 */

export type FoundEffect = {
  taskId: string
  step: string
  kind: string
  externalId: string
  intent: JsonObject
  nonceSequence: NonceSequence
  nonce: bigint
  proof: JsonObject
  at: Date
}

/**
 * The kind of the tasks that the operator's command `time adopt` creates for executions which the database has lost.
 */
export const adoptedKind = 'adopted'

/**
 * Placeholders of a found effect: `foundReceipt` for the policy receipt, which is lost, and `noBytes` for the signed
 * bytes, which are never sent again.
 */
export const foundReceipt = 'found'
const noBytes = '0x'

export async function recordFoundEffect(tx: Tx, found: FoundEffect): Promise<void> {
  const { taskId, step, kind, externalId, intent, nonceSequence, nonce, proof, at } = found
  await assertForgotten(tx, taskId, externalId)
  const digest = createHash('sha256').update(`${taskId} ${externalId}`).digest()
  const id = uuidv7(at, { bytes: (count) => digest.subarray(0, count), fraction: () => 0 })
  const { kind: nonceKind, chain, signer } = nonceSequence
  await query(
    tx,
    `with found as (
       insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, proof, at)
         values ($1, $2, $3, $4, $5::jsonb, '{}', $6, 'confirmed', $7, $8::jsonb, $9) returning id)
     insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
       select id, 0, $10, $6, $11, $12, $13, $14, 'confirmed', $9 from found on conflict do nothing`,
    [
      id,
      taskId,
      step,
      kind,
      JSON.stringify(intent),
      externalId,
      foundReceipt,
      JSON.stringify(proof),
      at,
      noBytes,
      nonceKind,
      chain,
      signer,
      nonce,
    ],
  )
  await replaceAdopted(tx, taskId)
}

/**
 * Throws if another task has already confirmed this transaction. Effects outlive tasks and their idempotency keys, so
 * the execution of a deleted task is already booked. A repeat under the same key books nothing more, and waits for an
 * operator.
 */
async function assertForgotten(tx: Tx, taskId: string, externalId: string): Promise<void> {
  const [known] = await query<{ task_id: string }>(
    tx,
    `select e.task_id from tx_attempt a join effect e on e.id = a.effect_id
       where a.external_id = $1 and e.status = 'confirmed' and e.task_id <> $2`,
    [externalId, taskId],
  )
  if (known)
    throw conflict(
      `The task ${known.task_id} has executed and booked this under the same key before`,
      'a key is used for one request, also after its task was deleted',
    )
}

type ComparedExecution = { chainId: string; executionId: string; sequence: number }
/**
 * Returns the transaction of an execution that the comparison of the database with the chains has found. A node that
 * still has its block is then not needed.
 */
export type ComparedHash = (execution: ComparedExecution) => Promise<string | undefined>

export const comparedHashes =
  (db: Queryable): ComparedHash =>
  async ({ chainId, executionId, sequence }) => {
    const [row] = await query<{ tx_hash: string }>(
      db,
      'select tx_hash from found_execution where chain = $1 and execution_id = $2 and sequence = $3',
      [chainId, executionId, sequence],
    )
    return row?.tx_hash
  }

/**
 * Replaces the adopted tasks of this task's execution, which `time adopt` created and which moved no money, by the
 * task. `executionIds` are the executions of its orders and of its withdrawal at a venue; each of these is an execution
 * of its own.
 */
export async function replaceAdopted(
  tx: Tx,
  taskId: string,
  executionIds: readonly string[] = [],
): Promise<void> {
  await query(
    tx,
    `with this as (select id, user_id, coalesce(execution_id, id) as execution_id from task where id = $1),
       adopted as (select a.id, a.execution_id, a.user_id from task a, this where a.user_id = this.user_id
         and a.execution_id = any($2::uuid[] || this.execution_id) and a.kind = $3 and a.id <> this.id),
       replaced as (delete from task t using adopted a where t.id = a.id),
       orders as (update venue_order o set task_id = $1 from adopted a where o.task_id = a.id)
     update found_execution f set task_id = $1 from adopted a
       where f.user_id = a.user_id and f.execution_id = a.execution_id`,
    [taskId, executionIds, adoptedKind],
  )
}
