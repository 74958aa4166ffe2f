/** What the database has forgotten, with a key or without one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAct } from '#durable/accept/act-invoker.ts'
import { createLockWaiters } from '#durable/accept/lock-waiters.ts'
import type { UserCall } from '#durable/accept/operation-call.ts'
import { createAcknowledged } from '#durable/time/acknowledged-commits.ts'
import { hookKind } from '#features/hooks/view.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { ApprovalRequired, actionTerms } from '#kernel/task/approval.ts'
import { firedExecutionId, rearmedExecutionId } from '#kernel/task/execution-id.ts'
import { outsideId } from '#kernel/task/forgotten-execution.ts'
import type { Step, TaskKind } from '#kernel/task/task.ts'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type Admit, type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'
import { leaveHookPair } from './hook-pair.ts'

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

/** With a hold of a database that went back, which was compared. */
async function heldOperator(fixture: EngineFixture, folder: { path: string }) {
  const operator = operatorOf({ DATABASE_URL: fixture.url, DATA_DIR: folder.path })
  const since = new Date(Date.now() - 3_600_000).toISOString()
  await operator.act('restored', 'time', 'hold', '--since', since)
  await fixture.rows('update money_hold set compared_at = now() returning scope')
  return operator
}

test('a task without a key looks up by its own id, once an operator goes on with a database that went back', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const lookedUp: unknown[] = []
  const only: Step = async (task) => {
    lookedUp.push(outsideId(task))
    return executed
  }
  const kind = { steps: { only } }
  await using accepting = await fixture.instance(kind, { slots: 0 })
  const { task_id: id } = await accepting.run(newUser(), { timeoutMs: 0 })
  const operator = await heldOperator(fixture, folder)
  await operator.act('accepted', 'time', 'resume')
  await using _running = await fixture.instance(kind)
  assert.equal((await fixture.waitForEnd(id)).outcome, 'executed')
  const isFree = async () => !accepting.taskEngine.holds.find() || undefined
  await eventually(isFree, 'money goes on')
  const { task_id: later } = await accepting.run(newUser(), { timeoutMs: 0 })
  assert.equal((await fixture.waitForEnd(later)).outcome, 'executed')
  assert.deepEqual(lookedUp, [id, undefined])
})

test('what was executed of a request that waits for a person again is a task of its own', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const admit: Admit = async (_input, { userId }) => {
    const action = { userId, operation: 'test_run', chainId: '1', tokens: [], recipients: ['0xfriend'] }
    const terms = actionTerms('Send 5 USDC', { token: 'USDC', amount: '5', recipient: '0xfriend' })
    throw new ApprovalRequired(
      { ...action, usdMicros: 5_000_000n, exit: false, terms },
      'approval_above_usd',
      'it is above 1 USD',
    )
  }
  await using instance = await fixture.instance({ steps: { only: async () => executed } }, { admit })
  const userId = newUser()
  await fixture.rows(
    `insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, 'agt_00000000000000000000000001', 'oauth', now())
       returning id`,
    userId,
  )
  const { task_id: id } = await instance.run(userId, { timeoutMs: 0 })
  const operator = await heldOperator(fixture, folder)
  await fixture.rows(
    `insert into found_execution (chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at)
       values ('8453', $1, 0, $2, '0xhash', '[]', now()) returning chain`,
    id,
    userId,
  )
  await operator.act('as the chain shows', 'time', 'adopt')
  const tasks = await fixture.rows<{ kind: string; outcome: string | null }>(
    'select kind, outcome from task where coalesce(execution_id, id) = $1 order by kind',
    id,
  )
  assert.deepEqual(
    tasks.map(({ kind, outcome }) => `${kind} ${outcome}`),
    ['adopted executed', 'test_run null'],
  )
  const shown = await operator.rows('time', 'show')
  assert.deepEqual(
    shown.filter((row) => 'execution_id' in row || 'adopted_executions' in row),
    [{ adopted_executions: 1 }],
  )
})

type Attempt = { of: 'stop' | 'target'; refunds: number }
/**
 * A stop and a target, and what is left of them once these attempts were adopted, oldest first: each task by the
 * attempt that it is, and which of them is the last one of its order.
 */
async function adoptedOf(attempts: readonly Attempt[], { isStopFired }: { isStopFired: boolean }) {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const wait: Step = async () => ({ park: { afterMs: 600_000, next: 'prepare' }, state: 'waiting' })
  const hooks: TaskKind = { kind: hookKind, version: 1, priority: 0, steps: { prepare: wait } }
  await using instance = await fixture.instance(
    { steps: { only: async () => executed } },
    { internal: [hooks] },
  )
  const userId = newUser()
  const pair = await leaveHookPair(fixture, userId)
  if (isStopFired) {
    const { priceTriggers } = instance
    const [lease] = await priceTriggers.lease([pair.stop.market])
    assert.equal(await priceTriggers.fireTriggers(lease!, '1', pair.stop.quote_key), 1)
  }
  const firedAs = ({ of, refunds }: Attempt) => {
    let order = { id: pair[of].id, execution_id: null as string | null, attempts: 0 }
    for (let n = 0; n < refunds; n++) order = { ...order, execution_id: rearmedExecutionId(order) }
    return firedExecutionId(order, { perAttempt: false })
  }
  const operator = await heldOperator(fixture, folder)
  for (const [at, attempt] of attempts.entries())
    await fixture.rows(
      `insert into found_execution (chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at)
         values ('8453', $1, 0, $2, $3, '[]', now() - interval '1 minute' + $4 * interval '10 seconds') returning chain`,
      firedAs(attempt),
      userId,
      `0x${at}`,
      at,
    )
  await operator.act('as the chain shows', 'time', 'adopt')
  const nameOf = new Map(
    (['stop', 'target'] as const).flatMap((of) =>
      [0, 1, 2].map((refunds): [string, string] => [firedAs({ of, refunds }), `${of} ${refunds}`]),
    ),
  )
  const tasks = await fixture.rows<{ kind: string; execution_id: string; outcome: string }>(
    'select kind, execution_id, outcome from task where user_id = $1',
    userId,
  )
  const orders = await fixture.rows<{ id: string; status: string; execution_id: string | null }>(
    `select o.id, o.status, t.execution_id from trigger_order o left join task t on t.id = o.task_id where o.user_id = $1`,
    userId,
  )
  return {
    tasks: tasks.map((task) => `${task.kind} ${nameOf.get(task.execution_id)} ${task.outcome}`).toSorted(),
    orders: orders
      .map(({ id, status, execution_id: last }) => {
        const of = id === pair.stop.id ? 'stop' : 'target'
        return `${of} ${status} by ${last && nameOf.get(last)}`
      })
      .toSorted(),
  }
}

test('of an order that was refunded, and then executed by the other of its pair, each attempt is looked up', async () => {
  const attempts: Attempt[] = [
    { of: 'stop', refunds: 0 },
    { of: 'target', refunds: 0 },
    { of: 'target', refunds: 1 },
  ]
  for (const isStopFired of [false, true])
    assert.deepEqual(await adoptedOf(attempts, { isStopFired }), {
      tasks: [
        'hook_execute stop 0 unknown',
        'hook_execute target 0 unknown',
        'hook_execute target 1 unknown',
      ],
      orders: ['stop cancelled by stop 0', 'target fired by target 1'],
    })
})

test('an order whose first attempt the database knows fires by the one that followed its refund', async () => {
  assert.deepEqual(await adoptedOf([{ of: 'stop', refunds: 1 }], { isStopFired: true }), {
    tasks: ['hook_execute stop 0 null', 'hook_execute stop 1 unknown'],
    orders: ['stop fired by stop 1', 'target cancelled by null'],
  })
})
