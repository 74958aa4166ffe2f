/** Commits of steps are HOT updates: they write no index. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Task } from '#durable/task/task-row.ts'
import type { StepResult } from '#kernel/task/task.ts'
import { eventually } from '../harness/gateway.ts'
import {
  type Answer,
  confirmed,
  type EngineFixture,
  newUser,
  openFixture,
  signingStep,
  type TestKind,
  writer,
} from './engine-fixture.ts'

const tasks = 200
const atOnce = 2
/** A backend that has nothing more to do reports its counts within 10 seconds. */
const countedWithinMs = 120_000
const endsWithinMs = 120_000

/** The commits of a task, its end included. */
const commitsOfTask = 4
/**
 * Without spare room on a page every update moves the row and writes each index. An index on a column that one of the
 * four commits writes limits the share to 3/4.
 */
const shareMin = 0.8

type Updates = { all: number; hot: number; moved: number }

type CountOptions = { table: 'task' | 'account'; isWhole: (updates: Updates) => boolean }

/** Updates of a table since the start, once all that the test has made are counted. */
const countUpdates = ({ rows }: Pick<EngineFixture, 'rows'>, { table, isWhole }: CountOptions) =>
  eventually(
    async () => {
      // The backend that is asked reports at once.
      await rows('select pg_stat_force_next_flush()')
      const [row] = await rows<Updates>(
        `select n_tup_upd::integer as all, n_tup_hot_upd::integer as hot, n_tup_newpage_upd::integer as moved
         from pg_stat_user_tables where relname = $1`,
        table,
      )
      return row && isWhole(row) ? row : undefined
    },
    `the updates of ${table} are counted`,
    countedWithinMs,
  )

test('commits of steps, but for the end of a task, write no index', async (t) => {
  await using fixture = await openFixture()
  // A page for each task: no snapshot of another session, however old it is, fills it with former versions.
  await fixture.rows('alter table task set (fillfactor = 10)')
  let isEnding = false
  const kind: TestKind = {
    steps: {
      plan: async () => ({ next: 'sign', state: 'held', data: { note: 'x'.repeat(200) } }),
      sign: signingStep('send'),
      send: async () => ({ next: 'look', state: 'submitted', data: { hash: 'y'.repeat(66) } }),
      look: async (task) => (isEnding ? confirmed(task) : { park: { afterMs: 60_000, next: 'look' } }),
    },
  }
  await using a = await fixture.instance(kind)
  const accepted: Answer[] = []
  const runOne = async () => void accepted.push(await a.run(newUser(), { timeoutMs: 0 }))
  // The first task is claimed, which writes an index: until it has run one, an instance has no lease.
  await runOne()
  const looks = () => fixture.rows("select 1 from task where step = 'look'")
  await eventually(async () => ((await looks()).length > 0 ? true : undefined), 'the first one runs')
  const runAll = async () => {
    while (accepted.length < tasks) await runOne()
  }
  await Promise.all(Array.from({ length: atOnce }, runAll))
  const commits = commitsOfTask * accepted.length
  const counted = await countUpdates(fixture, { table: 'task', isWhole: ({ hot }) => hot >= commits })
  t.diagnostic(`updates of task: ${JSON.stringify(counted)}`)
  assert.deepEqual([counted.hot, counted.moved], [commits, 0])
  assert.ok(counted.all - commits <= atOnce + 1, `${counted.all - commits} of ${counted.all} wrote an index`)
  isEnding = true
  await fixture.rows('update task_queue set run_at = now() where owner is null returning 1')
  for (const { task_id } of accepted)
    assert.equal((await fixture.waitForEnd(task_id, endsWithinMs)).outcome, 'executed')
  assert.deepEqual(await fixture.rows('select 1 from task_queue'), [], 'the queue has no ended task')
})

test('the pages of tasks have room for the versions of most commits', async (t) => {
  // Without an instance: no other session has a snapshot for which former versions have to be kept.
  await using fixture = await openFixture()
  const { accept, step } = writer(fixture)
  const results: StepResult[] = [
    { next: 'sign', state: 'held', data: { note: 'x'.repeat(200) } },
    { next: 'send', state: 'signed' },
    { next: 'look', state: 'submitted', data: { hash: 'y'.repeat(66) } },
    { park: { afterMs: 60_000, next: 'look' } },
  ]
  for (let n = 0; n < tasks; n += 1) {
    let task: Task | undefined = await accept(newUser())
    for (const result of results) task = task && (await step(task, result))?.task
    assert.ok(task)
  }
  const commits = results.length * tasks
  const { all, hot } = await countUpdates(fixture, { table: 'task', isWhole: (row) => row.all >= commits })
  t.diagnostic(`${hot} of ${all} updates of task were HOT`)
  assert.ok(hot / all >= shareMin, `${hot} of ${all}`)
})

test('balances change without a write to an index, but where an account becomes empty or ceases to be', async () => {
  await using fixture = await openFixture()
  const add = (units: number) =>
    fixture.rows('update account set avail = avail + $1, version = version + 1 returning id', units)
  await fixture.rows(
    `insert into account (shard, owner, asset, sub_account) values (0, $1, 'coin', 'wallet') returning id`,
    newUser(),
  )
  await add(10)
  for (let n = 0; n < 10; n++) await add(-1)
  const { all, hot } = await countUpdates(fixture, { table: 'account', isWhole: (row) => row.all >= 11 })
  assert.deepEqual({ all, hot }, { all: 11, hot: 9 })
})
