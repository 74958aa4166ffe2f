import { createHash } from 'node:crypto'
import { uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { NonceSequence, Tx } from '#kernel/task.ts'
import { query } from './query.ts'

/** An effect that was found outside, and that this database did not know: it is recorded as what it is, confirmed. */

export type FoundEffect = {
  taskId: string
  step: string
  kind: string
  /** The id of the effect and of its only transaction. */
  externalId: string
  /** The intent, as far as it is known. */
  intent: JsonObject
  nonceSequence: NonceSequence
  nonce: bigint
  proof: JsonObject
  at: Date
}

/** Instead of the receipt of a policy, which is forgotten; and instead of bytes, which are never sent again. */
const foundReceipt = 'found'
const noBytes = '0x'

export async function recordFoundEffect(tx: Tx, found: FoundEffect): Promise<void> {
  const { taskId, step, kind, externalId, intent, nonceSequence, nonce, proof, at } = found
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

/** The task that `time adopt` made of the same execution moved nothing itself: this one shows and books it. */
async function replaceAdopted(tx: Tx, taskId: string): Promise<void> {
  await query(
    tx,
    `with this as (select id, user_id, coalesce(execution_id, id) as execution_id from task where id = $1),
       replaced as (delete from task a using this where a.user_id = this.user_id and a.execution_id = this.execution_id
         and a.kind = 'adopted' and a.id <> this.id)
     update found_execution f set task_id = this.id from this
       where f.user_id = this.user_id and f.execution_id = this.execution_id`,
    [taskId],
  )
}
