/** The record of a run: what it counts as, which schedule its trouble pauses, and what it says once all has ended. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { endSchedules } from '#features/schedules/access-end.ts'
import { executionPage } from '#features/schedules/executions.ts'
import { type RunRecord, recordEnd, skippedEnd } from '#features/schedules/record-run-end.ts'
import { createRunKind, type RunDeps } from '#features/schedules/run.ts'
import { cutShort, type RunEnd, type StartedTask } from '#features/schedules/run-outcome.ts'
import { findRun, storeBegin } from '#features/schedules/run-task-store.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import type { TaskView } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { StrategyRow } from '#store/tables/strategies.ts'
import { testDatabase } from '../harness/cluster.ts'
import { openTestCore, type TestCore } from '../harness/core.ts'
import { insertSchedule } from './schedule-fixture.ts'

const completed: RunEnd = {
  status: 'completed',
  outcome: 'executed',
  skipReason: null,
  error: null,
  decision: { action: 'notify', reason: 'It answered' },
}
const failed: RunEnd = {
  ...completed,
  status: 'failed',
  outcome: 'not_executed',
  error: { code: 'conflict', message: 'no', retryable: false },
  decision: null,
}
const frozen = skippedEnd('frozen', 'trading_paused', 'no')
const denied = skippedEnd('policy_denied', 'policy_denied', 'no')
const swap: StartedTask = {
  task_id: 'a task',
  kind: 'swap_execute',
  status: 'completed',
  outcome: 'executed',
  error: null,
}

describe('the record of a run', () => {
  const parts = new AsyncDisposableStack()
  let core: TestCore
  before(async () => {
    const { url } = parts.use(await testDatabase())
    core = parts.use(await openTestCore({ databaseUrl: url }))
  })
  after(() => parts.disposeAsync())

  const rows = <Row extends object>(text: string, ...values: unknown[]) => query<Row>(core.db, text, values)
  const rowOf = async (schedule: string) =>
    (await rows<StrategyRow>('select * from strategy where id = $1', schedule))[0]!
  const countsOf = async (schedule: string) => {
    const { status, run_count, skipped_count } = await rowOf(schedule)
    return [status, run_count, skipped_count]
  }
  const add = (fields: { maxRuns?: number; threadId?: string } = {}) =>
    insertSchedule(core.db, crypto.randomUUID(), { query: 'hi', authority: {}, ...fields })
  /** A run of a slot that has begun its chat, unless `hasChat` is false. */
  const addRun = async (schedule: string, { type = 'scheduled', hasChat = true } = {}) => {
    const id = crypto.randomUUID()
    await rows(
      `with numbered as (update strategy set execution_count = execution_count + 1 where id = $2
         returning id, user_id, version, execution_count)
       insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, slot, status,
         chat_id, created_at)
       select $1, id, user_id, version, execution_count, $3, 'live', case when $3 <> 'manual' then clock_timestamp() end,
         'running', $4, clock_timestamp() from numbered`,
      id,
      schedule,
      type,
      hasChat ? crypto.randomUUID() : null,
    )
    return findRun(core.db, id)
  }
  const paused: string[] = []
  const deps = {
    disarm: async (_tx: unknown, id: string) => {
      paused.push(id)
      return true
    },
    cancelNotSent: async () => [],
  }
  type Given = Partial<Omit<RunRecord, 'run' | 'end'>>
  const end = (run: RunRecord['run'], how: RunEnd, given: Given = {}) =>
    core.transactions.run((tx) =>
      recordEnd(deps, tx, {
        run,
        end: how,
        started: [],
        answer: null,
        creditsUsed: 0,
        chatId: run.chat_id,
        hasBegun: run.chat_id !== null,
        at: new Date(),
        ...given,
      }),
    )
  const endNew = async (schedule: string, how: RunEnd, options: Parameters<typeof addRun>[1] = {}) =>
    end(await addRun(schedule, options), how)

  test('counts a run at its end, and completes the schedule with the last one that was not skipped', async () => {
    const schedule = await add({ maxRuns: 2 })
    for (const skip of [frozen, denied]) await endNew(schedule, skip)
    assert.deepEqual(await countsOf(schedule), ['active', 0, 2])
    await endNew(schedule, completed)
    assert.deepEqual(await countsOf(schedule), ['active', 1, 2])
    await endNew(schedule, failed)
    assert.deepEqual(await countsOf(schedule), ['completed', 2, 2])
    assert.equal((await rowOf(schedule)).next_at, null)
  })

  test('a run by hand counts as nothing, whatever became of it', async () => {
    const schedule = await add({ maxRuns: 2 })
    await endNew(schedule, completed)
    for (const how of [frozen, frozen, completed, failed]) await endNew(schedule, how, { type: 'manual' })
    assert.deepEqual(await countsOf(schedule), ['active', 1, 0])
  })

  test('the end of an access cancels the runs that act by it, and none that closes positions', async () => {
    const schedule = await add()
    const run = await addRun(schedule)
    await addRun(schedule, { type: 'exit', hasChat: false })
    const cancelled: string[] = []
    await core.transactions.run((tx) =>
      endSchedules(tx, {
        userId: run.user_id,
        at: new Date(),
        random: systemRandom,
        cancelTasks: async (ids) => cancelled.push(...ids),
      }),
    )
    assert.deepEqual(cancelled, [run.id, run.chat_id])
  })

  test('a run that traded counts, though its access ended; one that was stopped before it began does not', async () => {
    const schedule = await add({ maxRuns: 2 })
    const stopped: RunEnd = { ...frozen, skipReason: null }
    await endNew(schedule, stopped, { hasChat: false })
    await endNew(schedule, failed, { hasChat: false })
    assert.deepEqual(await countsOf(schedule), ['active', 0, 2])
    await endNew(schedule, stopped)
    assert.deepEqual(await countsOf(schedule), ['active', 1, 2])
    const ended = skippedEnd('access_ended', 'invalid_token', 'no')
    const [event] = await end(await addRun(schedule), cutShort(ended, [swap]), { started: [swap] })
    assert.deepEqual(await countsOf(schedule), ['completed', 2, 2])
    assert.equal(event?.type, 'schedule.run_finished')
  })

  test('pauses no schedule that its user has stopped, or activated again, since the run was read', async () => {
    const pause = { reason: 'access_ended', text: 'no' } as const
    const changes = [
      `update strategy set status = 'disabled', next_at = null where id = $1`,
      `update strategy set version = 2, activated_at = now() where id = $1`,
      `update strategy set activated_at = now() + interval '1 second' where id = $1`,
    ]
    for (const change of changes) {
      const schedule = await add()
      await rows(
        `insert into strategy_version select (jsonb_populate_record(v, '{"version": 2}')).* from strategy_version v
         where strategy_id = $1`,
        schedule,
      )
      const run = await addRun(schedule)
      await rows(change, schedule)
      await end(run, failed, { pause })
      assert.ok(!paused.includes(schedule), change)
    }
    const schedule = await add()
    await end(await addRun(schedule), failed, { pause })
    assert.ok(paused.includes(schedule))
  })

  test('three failures in a row pause it, though each run outlasts its interval; those by hand never do', async () => {
    const outlasting = async () => {
      const run = await addRun(schedule)
      await endNew(schedule, skippedEnd('overlap', 'conflict', 'no'), { hasChat: false })
      await end(run, failed)
    }
    const schedule = await add()
    for (const _ of [1, 2]) await outlasting()
    await endNew(schedule, failed, { type: 'manual' })
    assert.ok(!paused.includes(schedule))
    await outlasting()
    assert.ok(paused.includes(schedule))
  })

  test('the new thread of a run replaces the thread that the run was read with, and no newer one', async () => {
    const [before, chosen, threadId] = [1, 2, 3].map(() => crypto.randomUUID()) as [string, string, string]
    for (const now of [before, chosen]) {
      const schedule = await add({ threadId: before })
      const run = await addRun(schedule)
      await rows('update strategy set thread_id = $2 where id = $1', schedule, now)
      const begun = { run, chatId: run.chat_id!, threadId, at: new Date() }
      await core.transactions.run((tx) => storeBegin(tx, begun))
      assert.equal((await rowOf(schedule)).thread_id, now === before ? threadId : chosen)
    }
  })

  const shown = async (schedule: string) => {
    const files = { linkOf: () => assert.fail('there are no files') }
    const { items } = await executionPage(
      { db: core.db, clock: systemClock, files },
      schedule,
      { fields: 'full' },
      20,
    )
    return items[0]!
  }
  const addChat = ({ user_id: userId, chat_id: chatId }: RunRecord['run']) =>
    rows(
      `insert into chat_turn (chat_id, thread_id, user_id, agent, query, caller, status, listened_at, created_at)
       values ($1, gen_random_uuid(), $2, 'ProAgent', 'hi', '{}', 'running', now(), now())`,
      chatId,
      userId,
    )
  const endChat = ({ chat_id: chatId }: RunRecord['run']) =>
    rows(
      `update chat_turn set status = 'completed', answer = 'It is 5', credits_used = 3, last_event = 'done',
         last_data = '{}', last_seq = 1, completed_at = now() where chat_id = $1`,
      chatId,
    )
  const addTask = async ({ id: parent, user_id: userId }: RunRecord['run']) => {
    const id = crypto.randomUUID()
    await rows(
      `insert into task (id, shard, user_id, parent_id, kind, kind_version, input, data, step, status, state, deadline,
         created_at, updated_at)
       values ($1, 0, $2, $3, 'swap_execute', 1, '{}', '{}', 'sign', 'running', 'held', now(), now(), now())`,
      id,
      userId,
      parent,
    )
    await rows(
      `insert into policy_spend (task_id, user_id, usd_micros, state, at) values ($1, $2, 20500000, 'reserved', now())`,
      id,
      userId,
    )
    return id
  }
  const endTask = async (id: string, status: string, outcome: string) => {
    await rows(
      'update task set status = $2, outcome = $3, completed_at = now() where id = $1',
      id,
      status,
      outcome,
    )
    if (outcome === 'not_executed')
      await rows(`update policy_spend set state = 'released' where task_id = $1`, id)
  }
  /** Ends a run as the engine does where no step has ended it. */
  const cancel = (run: RunRecord['run']) => {
    const kind = createRunKind({ ...deps, db: core.db, clock: systemClock } as unknown as RunDeps)
    const error = { code: 'expired', message: 'The deadline passed' }
    const ended = kind.completeEnd!({ id: run.id } as TaskView, {
      end: 'failed',
      outcome: 'not_executed',
      error,
    })
    return core.transactions.run((tx) => ended.complete!(tx))
  }

  test('a run that the engine ends has the answer and the credits of its chat', async () => {
    const schedule = await add()
    const run = await addRun(schedule)
    await addChat(run)
    await endChat(run)
    await cancel(run)
    const [stored] = await rows<object>(
      'select status, outcome, answer, credits_used from strategy_execution where id = $1',
      run.id,
    )
    assert.deepEqual(stored, {
      status: 'failed',
      outcome: 'not_executed',
      answer: 'It is 5',
      credits_used: 3,
    })
  })

  test('what a run has started goes on after it, and its record follows until all has ended', async () => {
    const schedule = await add()
    const run = await addRun(schedule)
    await addChat(run)
    const tasks = [await addTask(run), await addTask(run)] as const
    const open = await shown(schedule)
    assert.deepEqual([open.outcome, open.spent_usd, open.credits_used, open.answer], [null, null, null, null])
    await cancel(run)
    const view = async () => {
      const { status, outcome, spent_usd, credits_used, answer } = await shown(schedule)
      return [status, outcome, spent_usd, credits_used, answer]
    }
    assert.deepEqual(await view(), ['failed', 'unknown', '41', 0, null])
    await endChat(run)
    await endTask(tasks[0], 'failed', 'not_executed')
    assert.deepEqual(await view(), ['failed', 'unknown', '20.5', 3, 'It is 5'])
    await endTask(tasks[1], 'completed', 'executed')
    assert.deepEqual(await view(), ['failed', 'partial', '20.5', 3, 'It is 5'])
    await endTask(tasks[1], 'failed', 'not_executed')
    assert.deepEqual(await view(), ['failed', 'not_executed', '0', 3, 'It is 5'])
  })

  test('a run that left a trade open is executed once the trade is', async () => {
    const schedule = await add()
    const run = await addRun(schedule)
    const task = await addTask(run)
    const open: StartedTask = { ...swap, task_id: task, status: 'running', outcome: null }
    await end(run, { ...completed, outcome: 'unknown' }, { started: [open] })
    assert.equal((await shown(schedule)).outcome, 'unknown')
    await endTask(task, 'completed', 'executed')
    assert.deepEqual(
      [(await shown(schedule)).outcome, (await shown(schedule)).spent_usd],
      ['executed', '20.5'],
    )
    await rows('delete from policy_spend where task_id = $1', task)
    await rows('delete from task where id = $1', task)
    assert.deepEqual(
      [(await shown(schedule)).outcome, (await shown(schedule)).spent_usd],
      ['unknown', '20.5'],
    )
  })
})
