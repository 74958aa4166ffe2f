/** Commits of steps are HOT updates: they write no index. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { type Answer, confirmed, newUser, openFixture, signingStep, type TestKind } from './engine-fixture.ts'

const tasks = 200
const atOnce = 2
/**
 * An index that one of the four commits writes leaves three quarters at most. On a busy machine an old snapshot of another
 * session keeps former versions on a full page, so that some updates leave it.
 */
const shareMin = 0.8
/** A backend that has nothing more to do reports its counts within 10 seconds. */
const countedWithinMs = 20_000

test('commits of steps, but for the end of a task, write no index', async (t) => {
  await using fixture = await openFixture()
  let isEnding = true
  const kind: TestKind = {
    steps: {
      plan: async () => ({ next: 'sign', state: 'held', data: { note: 'x'.repeat(200) } }),
      sign: signingStep('send'),
      send: async () => ({ next: 'look', state: 'submitted', data: { hash: 'y'.repeat(66) } }),
      look: async (task) => (isEnding ? confirmed(task) : { park: { afterMs: 60_000, next: 'look' } }),
    },
  }
  await using a = await fixture.instance(kind)
  // It has its lease once it has run a task: those that follow need no claim.
  assert.equal((await a.run(newUser())).outcome, 'executed')
  isEnding = false
  const updates = async () => {
    // The backend that is asked reports at once.
    await fixture.rows('select pg_stat_force_next_flush()')
    const [row] = await fixture.rows<{ all: string; hot: string }>(
      `select n_tup_upd::text as all, n_tup_hot_upd::text as hot from pg_stat_user_tables where relname = 'task'`,
    )
    return { all: Number(row?.all), hot: Number(row?.hot) }
  }
  const before = await updates()
  const accepted: Answer[] = []
  const runAll = async () => {
    while (accepted.length < tasks) accepted.push(await a.run(newUser(), { timeoutMs: 0 }))
  }
  await Promise.all(Array.from({ length: atOnce }, runAll))
  const counted = await eventually(
    async () => {
      const { all, hot } = await updates()
      const since = { all: all - before.all, hot: hot - before.hot }
      return since.all >= 4 * accepted.length ? since : undefined
    },
    'four commits of each task are counted',
    countedWithinMs,
  )
  t.diagnostic(`${counted.hot} of ${counted.all} updates of task were HOT`)
  assert.ok(counted.hot / counted.all >= shareMin, `${counted.hot} of ${counted.all}`)
  isEnding = true
  await fixture.rows('update task_queue set run_at = now() where owner is null returning 1')
  for (const { task_id } of accepted) assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
  assert.deepEqual(await fixture.rows('select 1 from task_queue'), [], 'the queue has no ended task')
})

test('balances change without a write to an index, but where an account becomes empty or ceases to be', async () => {
  await using fixture = await openFixture()
  const add = (units: number) =>
    fixture.rows('update account set avail = avail + $1, version = version + 1 returning id', units)
  const updates = async (count: number) => {
    await fixture.rows('select pg_stat_force_next_flush()')
    return eventually(async () => {
      const [row] = await fixture.rows<{ all: number; hot: number }>(
        `select n_tup_upd::integer as all, n_tup_hot_upd::integer as hot from pg_stat_user_tables where relname = 'account'`,
      )
      return row && row.all >= count ? row : undefined
    }, 'the updates are counted')
  }
  await fixture.rows(
    `insert into account (shard, owner, asset, sub_account) values (0, $1, 'coin', 'wallet') returning id`,
    newUser(),
  )
  await add(10)
  for (let n = 0; n < 10; n++) await add(-1)
  assert.deepEqual(await updates(11), { all: 11, hot: 9 })
})
