/** What the database has forgotten, with a key or without one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAct } from '#durable/accept/act-invoker.ts'
import { createLockWaiters } from '#durable/accept/lock-wait.ts'
import type { UserCall } from '#durable/accept/operation-call.ts'
import { createAcknowledged } from '#durable/time/acknowledged-commits.ts'
import { insertTriggerOrders } from '#engines/trigger-orders/store.ts'
import { hookRow } from '#features/hooks/hook-row.ts'
import { ApprovalRequired, actionTerms } from '#kernel/approval.ts'
import type { Chain } from '#kernel/chains.ts'
import { systemClock } from '#kernel/clock.ts'
import { firedExecutionId, rearmedExecutionId } from '#kernel/execution-id.ts'
import { outsideId } from '#kernel/forgotten-execution.ts'
import { systemRandom } from '#kernel/id.ts'
import { createKeyedMutex } from '#kernel/keyed-mutex.ts'
import type { Step } from '#kernel/task.ts'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type Admit, type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

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
})

test('of an order that was refunded, and then executed by the other of its pair, that one fires', async () => {
  await using fixture = await openFixture()
  using folder = dataFolder()
  const userId = newUser()
  const group = newUser()
  const hookOf = (type: 'stop_loss' | 'take_profit') =>
    hookRow({
      id: newUser(),
      userId,
      chain: { id: '8453', usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' } as Chain,
      token: { symbol: 'WETH', address: '0xweth' },
      leg: { type, fraction: '0.1', price: null, sell: '1' },
      reference: '2000',
      referenceName: 'entry',
      mark: '2000',
      slippageBps: 100,
      group,
      expiresAt: null,
      units: 5_000_000n,
      isLot: true,
      at: new Date(),
    })
  const [stop, target] = [hookOf('stop_loss'), hookOf('take_profit')]
  await fixture.admin.transaction((tx) => insertTriggerOrders(tx, [stop, target]))
  const firedAs = (id: string, refunds: number) => {
    let order = { id, execution_id: null as string | null, attempts: 0 }
    for (let n = 0; n < refunds; n++) order = { ...order, execution_id: rearmedExecutionId(order) }
    return firedExecutionId(order, { perAttempt: false })
  }
  const executions = [firedAs(stop.id, 0), firedAs(target.id, 0), firedAs(target.id, 1)]
  const operator = await heldOperator(fixture, folder)
  for (const [at, executionId] of executions.entries())
    await fixture.rows(
      `insert into found_execution (chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at)
         values ('8453', $1, 0, $2, $3, '[]', now() - interval '1 minute' + $4 * interval '10 seconds') returning chain`,
      executionId,
      userId,
      `0x${at}`,
      at,
    )
  await operator.act('as the chain shows', 'time', 'adopt')
  const orders = await fixture.rows<{ id: string; status: string; execution_id: string }>(
    `select o.id, o.status, t.execution_id from trigger_order o left join task t on t.id = o.task_id where o.user_id = $1`,
    userId,
  )
  const shown = orders.map(({ id, status, execution_id: fired }) => [
    id === stop.id ? 'stop' : 'target',
    status,
    fired,
  ])
  assert.deepEqual(shown.toSorted(), [
    ['stop', 'cancelled', null],
    ['target', 'fired', executions[2]],
  ])
  const adopted = await fixture.rows<{ execution_id: string }>(
    `select execution_id from task where user_id = $1 and kind = 'adopted' order by created_at`,
    userId,
  )
  assert.deepEqual(
    adopted.map(({ execution_id: id }) => id),
    executions.slice(0, 2),
  )
})
