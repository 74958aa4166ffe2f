/** What was found outside is recorded once: what a deleted task has booked is not booked again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import { recordFoundEffect } from '#store/record-found-effect.ts'
import { ownDatabase } from '../harness/own-database.ts'

const newId = () => uuidv7(new Date(), systemRandom)

test('a transaction is recorded for one task, unless that of before has not executed it', async () => {
  await using home = await ownDatabase()
  const { pool, transaction } = home.database
  const record = (taskId: string) =>
    transaction((tx) =>
      recordFoundEffect(tx, {
        taskId,
        step: 'sign',
        kind: 'evm_batch',
        externalId: '0xhash',
        intent: {},
        nonceSequence: { kind: 'evm', chain: '8453', signer: '0xsponsor' },
        nonce: 7n,
        proof: {},
        at: new Date(),
      }),
    )
  const [first, second] = [newId(), newId()]
  // As the first task has signed it: under the hash of the batch.
  await query(
    pool,
    `with signed as (insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
         values ($1, $2, 'sign', 'evm_batch', '{}', '{}', '0xbatch', 'dropped', 'r', now()) returning id)
       insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
         select id, 0, '0x', '0xhash', 'evm', '8453', '0xsponsor', 7, 'dropped', now() from signed`,
    [newId(), first],
  )
  await record(second)
  await query(pool, `update effect set status = 'confirmed' where task_id = $1`, [first])
  await assert.rejects(record(newId()), { code: 'conflict' })
})
