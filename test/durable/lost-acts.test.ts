/** An act that the database has forgotten, with a key or without one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAcknowledged } from '#durable/acknowledged-commits.ts'
import { createLockWaiters } from '#durable/lock-wait.ts'
import type { UserCall } from '#durable/operation-call.ts'
import { runAct } from '#durable/run-act.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { createKeyedMutex } from '#kernel/keyed-mutex.ts'
import { newUser, openFixture } from './engine-fixture.ts'

test('acknowledged acts that are gone are found', async () => {
  await using fixture = await openFixture()
  const { pool, transaction, pipelinedTransaction } = fixture.admin
  const acknowledged = createAcknowledged(pool)
  const deps = {
    transactions: { pool, run: transaction, pipelined: pipelinedTransaction },
    clock: systemClock,
    random: systemRandom,
    actTurns: createKeyedMutex(),
    lockWaiters: createLockWaiters(),
    acknowledgeAct: acknowledged.addAct,
  }
  const act = (userId: string, options: { key?: string }) =>
    runAct(deps, {
      operation: { name: 'note', entry: { kind: 'act' }, run: async () => ({ noted: true }) },
      input: {},
      caller: { userId, agentId: userId, scheme: 'keypair', scopes: new Set() },
      options: { wait: false, timeoutMs: 1_000, ...options },
      request: { id: 'r', address: '127.0.0.1', signal: new AbortController().signal },
    } as unknown as UserCall<'act'>)
  const users = [newUser(), newUser()] as const
  await act(users[0], { key: 'k' })
  assert.equal((await act(users[1], {})).key, undefined)
  assert.equal(await acknowledged.findLost(), undefined)
  await fixture.rows('delete from idempotency where user_id = any($1) returning 1', users)
  const lost = await acknowledged.findLost()
  assert.deepEqual([lost?.count, lost?.tasks], [2, []])
  assert.deepEqual(new Set(lost?.users as string[]), new Set(users))
})
