/**
 * A thousand strategies on four instances, one of which lacks the kind of their runs: while instances are killed and
 * stopped, connections are cut, transactions are abandoned and the clock jumps by days, each slot is recorded once. In n8n
 * (#7045, #16332, #17160) a schedule fires once for each of its instances.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Clock, later } from '#kernel/clock.ts'
import type { StrategyExecutionRow, StrategyRow } from '#store/tables/strategies.ts'
import { type EngineFixture, newUser, openFixture } from '../durable/engine-fixture.ts'
import { insertStrategies } from '../durable/strategy-fixture.ts'
import { bundleEnvironment } from '../harness/child-environment.ts'
import { eventually } from '../harness/gateway.ts'

const count = 1_000
const users = Array.from({ length: 100 }, newUser)
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startAt = new Date('2026-03-02T09:00:00Z')
const phaseOf = (n: number) => startAt.getTime() + Math.floor((n * hourMs) / count)
/** Rows that are deferred for a minute would fail this. */
const punctualMsMax = 30_000
const settledMsMax = 120_000

let aheadMs = startAt.getTime() - 60_000 - Date.now()
const clock: Clock = { now: () => new Date(Date.now() + aheadMs) }

type Process = {
  child: ChildProcess
  said: (line: string) => Promise<void>
} & Disposable

const program = fileURLToPath(new URL('./slots-instance.ts', import.meta.url))

function spawnInstance(url: string, { hasKind = true } = {}): Process {
  const words = [program, url, hasKind ? 'runs' : 'old', String(aheadMs)]
  const child = spawn(process.execPath, words, {
    env: bundleEnvironment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = new Set<string>()
  createInterface({ input: child.stdout! }).on('line', (line) => lines.add(line))
  return {
    child,
    said: async (line) => void (await eventually(async () => lines.has(line) || undefined, line, 30_000)),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

/**
 * Kills an instance and starts another in its place, stops one for longer than its lease, cuts connections, and leaves
 * transactions open that have locked strategies.
 */
async function disturb(fixture: EngineFixture, runners: Process[], until: AbortSignal): Promise<void> {
  for (let turn = 0; !until.aborted; turn++) {
    const at = turn % runners.length
    const { child } = runners[at]!
    if (turn % 2 === 0) {
      child.kill('SIGKILL')
      runners[at] = spawnInstance(fixture.url)
    } else {
      child.kill('SIGSTOP')
      await delay(2_500)
      child.kill('SIGCONT')
    }
    await fixture.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name like 'portico%'
       order by random() limit 2`,
    )
    const locks = await fixture.lockRows(
      'select 1 from strategy order by random() limit 20 for update skip locked',
    )
    await delay(300 * Math.random())
    locks[Symbol.dispose]()
  }
}

test('each slot has one record, none is lost, and none comes early', async () => {
  await using fixture = await openFixture()
  const refused = newUser()
  const ids = await insertStrategies(
    fixture,
    Array.from({ length: count }, (_, n) => ({
      userId: users[n % users.length]!,
      grid: { everyMs: hourMs, phaseMs: phaseOf(n) },
      nextAt: new Date(phaseOf(n)),
    })),
  )
  await insertStrategies(
    fixture,
    Array.from({ length: 10 }, () => ({
      userId: refused,
      grid: { everyMs: hourMs, phaseMs: startAt.getTime() },
      nextAt: startAt,
    })),
  )
  await fixture.rows(`create function refuse_task() returns trigger language plpgsql as $$ begin
    if new.user_id = '${refused}' then raise exception 'refused by the test'; end if; return new; end $$`)
  await fixture.rows(
    'create trigger refuse before insert on task for each row execute function refuse_task()',
  )

  using old = spawnInstance(fixture.url, { hasKind: false })
  await old.said('on duty')
  const runners = Array.from({ length: 3 }, () => spawnInstance(fixture.url))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => {
    for (const runner of runners) runner[Symbol.dispose]()
  })
  await Promise.all(runners.map(({ said }) => said('ready')))

  const settle = () =>
    eventually(
      async () => {
        const [left] = await fixture.rows<{ due: number; queued: number }>(
          `select (select count(*)::integer from strategy where next_at <= $1 and user_id <> $2) as due,
             (select count(*)::integer from task_queue) as queued`,
          clock.now(),
          refused,
        )
        return left?.due === 0 && left.queued === 0 ? true : undefined
      },
      'no slot is due and no run is left',
      settledMsMax,
    )
  const advance = async (ms: number, { isDisturbed = true } = {}) => {
    aheadMs += ms
    for (const { child } of [old, ...runners]) child.stdin?.write(`${aheadMs}\n`)
    const end = new AbortController()
    const disturbance = isDisturbed ? disturb(fixture, runners, end.signal) : undefined
    await settle().finally(() => end.abort())
    await disturbance
    // One that was started meanwhile has the time of its start, which may be an earlier one.
    for (const { child } of runners) child.stdin?.write(`${aheadMs}\n`)
  }

  const startedMs = clock.now().getTime() + hourMs / 4
  await advance(hourMs / 4, { isDisturbed: false })
  const [latest] = await fixture.rows<{ at: Date }>('select max(created_at) as at from strategy_execution')
  assert.ok(latest!.at.getTime() - startedMs < punctualMsMax, 'a user whose runs are refused delayed others')
  for (let step = 0; step < 5; step++) await advance(hourMs / 3)
  await advance(3 * dayMs)
  const [recorded] = await fixture.rows<{ count: number }>('select count(*)::integer from strategy_execution')
  await advance(-3 * dayMs)
  await advance(hourMs)
  const [again] = await fixture.rows<{ count: number }>('select count(*)::integer from strategy_execution')
  assert.equal(again?.count, recorded?.count, 'a slot was recorded again after the clock stepped back')
  await advance(3 * dayMs)
  await advance(hourMs / 2)

  await assertEachSlotOnce(fixture, ids)
  // A slot that is too old needs no task, so that it is recorded as missed even where tasks are refused.
  const ofRefused = await fixture.rows(
    "select 1 from strategy_execution where user_id = $1 and skip_reason is distinct from 'missed'",
    refused,
  )
  assert.equal(ofRefused.length, 0, 'the user whose runs are refused has no other record')
})

async function assertEachSlotOnce(fixture: EngineFixture, ids: readonly string[]): Promise<void> {
  const strategies = await fixture.rows<StrategyRow>('select * from strategy')
  const byId = new Map(strategies.map((row) => [row.id, row]))
  const read = async () => {
    const [executions, tasks] = await Promise.all([
      fixture.rows<StrategyExecutionRow>('select * from strategy_execution order by slot'),
      fixture.rows<{ id: string; status: string }>('select id, status from task'),
    ])
    return { executions, tasks, runs: executions.filter(({ skipped_slots }) => skipped_slots === 0) }
  }
  // A slot that is served between the two reads has a task and no record here.
  const { executions, tasks, runs } = await eventually(async () => {
    const found = await read()
    return found.tasks.length === found.runs.length ? found : undefined
  }, 'a task for each run')
  assert.deepEqual(tasks.map(({ id }) => id).toSorted(), runs.map(({ id }) => id).toSorted())
  assert.ok(tasks.every(({ status }) => status === 'completed'))
  const ofStrategy = Map.groupBy(executions, ({ strategy_id }) => strategy_id)
  for (const [n, id] of ids.entries()) {
    let expected = new Date(phaseOf(n))
    for (const { slot, first_slot, skipped_slots, created_at, version } of ofStrategy.get(id) ?? []) {
      assert.deepEqual(first_slot ?? slot, expected)
      if (skipped_slots > 0)
        assert.equal(skipped_slots, 1 + (slot!.getTime() - first_slot!.getTime()) / hourMs)
      assert.ok(created_at >= slot!, 'a slot came early')
      assert.equal(version, 1)
      expected = later(slot!, hourMs)
    }
    assert.deepEqual(byId.get(id)?.next_at, expected)
    assert.equal(byId.get(id)?.execution_count, ofStrategy.get(id)?.length)
  }
}
