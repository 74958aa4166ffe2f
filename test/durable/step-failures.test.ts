/** Steps that fail, hang or are missing, and cancels, while a sent effect may be live. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createPostgresBus } from '#durable/events/postgres-notify.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isLookingUp, nothingFound } from '#kernel/task/forgotten-execution.ts'
import {
  externalAccount,
  type Step,
  type StepResult,
  type TaskKind,
  type TaskView,
} from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { testSpend } from '../harness/spend.ts'
import {
  type Admit,
  confirmed,
  type EngineFixture,
  executed,
  newUser,
  openFixture,
  signingStep,
  workFor,
} from './engine-fixture.ts'

describe('failing steps', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const statesOf = async (taskId: string) =>
    (
      await fixture.rows<{ type: string; state: string; outcome: string | null }>(
        `select type, body ->> 'state' as state, body ->> 'outcome' as outcome from user_event
         where task_id = $1 order by seq`,
        taskId,
      )
    ).map(({ type, state, outcome }) => `${type} ${state} ${outcome}`)

  test('a step that throws while an effect is live never ends its task', async () => {
    const failures = [
      new TypeError('a bug'),
      new Fault('market_closed', 'a rejection that no retry can help'),
      new TypeError('a bug'),
    ]
    const confirm = async (task: Parameters<typeof confirmed>[0]) => {
      const failure = failures[task.attempt]
      if (failure) throw failure
      return confirmed(task)
    }
    await using a = await fixture.instance({ steps: { sign: signingStep('confirm'), confirm } })
    const { task_id, status, outcome } = await a.run(newUser())
    assert.deepEqual([status, outcome], ['completed', 'executed'])
    assert.deepEqual(await statesOf(task_id), [
      'task.created accepted null',
      'task.updated signed null',
      'task.updated reconciling unknown',
      'task.completed done executed',
    ])
  })

  test('a step whose writes are refused commits what it gives instead, and nothing of its writes', async () => {
    const day = `insert into sponsor_day (user_id, chain_id, day, wei) values ($1, 'test', current_date, 1)`
    await using a = await fixture.instance({
      steps: {
        sign: signingStep('confirm'),
        async confirm(task) {
          const { effects = [] } = confirmed(task)
          return { next: 'reserve', effects }
        },
        reserve: async ({ userId }) => ({
          next: 'never',
          async writes(tx) {
            await query(tx, day, [userId])
            throw new Fault('rate_limited', 'no gas is left today')
          },
          onWritesRefused: ({ code, message }) => ({
            end: 'failed',
            outcome: 'partial',
            error: { code, message },
          }),
        }),
      },
    })
    const userId = newUser()
    const { task_id, status, outcome, error } = await a.run(userId)
    assert.deepEqual([status, outcome, error?.code], ['failed', 'partial', 'rate_limited'])
    assert.deepEqual(await fixture.rows('select wei from sponsor_day where user_id = $1', userId), [])
    assert.ok((await statesOf(task_id)).every((state) => !state.includes('unknown')))
  })

  test('a step cannot end its task as not executed while an effect is live', async () => {
    let hasThrown = false
    await using a = await fixture.instance({
      steps: {
        sign: signingStep('look'),
        look: async (task) => {
          if (hasThrown) return confirmed(task)
          hasThrown = true
          return { end: 'failed', outcome: 'not_executed', error: { code: 'internal', message: 'too early' } }
        },
      },
    })
    const { status, outcome } = await a.run(newUser())
    assert.deepEqual([status, outcome], ['completed', 'executed'])
  })

  test('what looks up a forgotten execution is ended by no deadline, no cancel and no fault', async () => {
    let look: 'waits' | 'throws' | 'finds' = 'waits'
    const sign = async () => {
      if (look === 'finds') return executed
      if (look === 'throws') throw new Fault('market_closed', 'a rejection that no retry can help')
      return { park: { afterMs: 20, next: 'sign' }, state: 'reconciling', outcome: 'unknown' } as const
    }
    await using a = await fixture.instance({ steps: { sign } })
    const userId = newUser()
    const { task_id } = await a.run(userId, { timeoutMs: 0 })
    const moved = async (from: number) =>
      eventually(async () => {
        const task = await fixture.readTask(task_id)
        return task.version > from + 2 ? task : undefined
      }, 'further look-ups')
    const { version } = await moved(0)
    await assert.rejects(a.taskEngine.tasks.cancel(userId, task_id), { code: 'not_cancellable' })
    // One that was requested before the first look-up.
    await fixture.rows(
      `update task set deadline = now() - interval '1 hour', cancel_requested = true where id = $1 returning id`,
      task_id,
    )
    const later = await moved(version)
    look = 'throws'
    const failed = await moved(later.version)
    assert.deepEqual([failed.status, failed.outcome], ['running', 'unknown'])
    look = 'finds'
    const ended = await fixture.waitForEnd(task_id)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'])
  })

  describe('what is past its deadline, or cancelled, before its first step', () => {
    /** Looks up in its first run, as the drivers of effects do, and signs where it need not. */
    const lookingUp = (found: boolean) => {
      const outcomes: unknown[] = []
      const sign: Step = async (task, context) => {
        outcomes.push(task.outcome)
        if (found) return executed
        return isLookingUp(task)
          ? (nothingFound('sign') as StepResult)
          : signingStep('confirm')(task, context)
      }
      return { outcomes, steps: { sign, confirm: async (task: TaskView) => confirmed(task) } }
    }
    const late: Admit = async () => ({ data: {}, first: 'sign', deadlineMs: -1_000 })
    const runLate = async (found: boolean, request: { key?: string }, looksUp = true) => {
      const { outcomes, steps } = lookingUp(found)
      await using a = await fixture.instance({ steps, looksUp }, { admit: late })
      const ended = await a.run(newUser(), request)
      return [ended.state, ended.outcome, ...outcomes]
    }

    test('looks up what was forgotten, where it has a key', async () => {
      assert.deepEqual(await runLate(true, { key: 'k' }), ['done', 'executed', 'unknown'])
    })
    test('expires once nothing was found, and signs nothing', async () => {
      assert.deepEqual(await runLate(false, { key: 'k' }), ['expired', 'not_executed', 'unknown'])
    })
    test('expires at once, where nothing outside knows it', async () => {
      assert.deepEqual(await runLate(true, {}), ['expired', 'not_executed'])
      assert.deepEqual(await runLate(true, { key: 'k' }, false), ['expired', 'not_executed'])
    })
    test('looks up also after a cancel', async () => {
      const { outcomes, steps } = lookingUp(true)
      // An instance without slots accepts the task, and the cancel comes before its first step.
      await using a = await fixture.instance({ steps, looksUp: true }, { slots: 0 })
      const userId = newUser()
      const { task_id } = await a.run(userId, { key: 'k', timeoutMs: 0 })
      await a.taskEngine.tasks.cancel(userId, task_id)
      await using _b = await fixture.instance({ steps, looksUp: true })
      const ended = await fixture.waitForEnd(task_id)
      assert.deepEqual([ended.status, ended.outcome, outcomes], ['completed', 'executed', ['unknown']])
    })
  })

  test('a step that this version lacks is left to one that has it, also while an effect is live', async () => {
    await using old = await fixture.instance({ steps: { sign: signingStep('renamed') } })
    const { task_id } = await old.run(newUser(), { timeoutMs: 0 })
    const parked = await eventually(async () => {
      const task = await fixture.readTask(task_id)
      return task.step === 'renamed' && task.owner === null ? task : undefined
    }, 'the task is parked')
    assert.deepEqual(
      [parked.status, parked.state, parked.outcome, parked.attempts],
      ['running', 'signed', null, 0],
    )
    await old[Symbol.asyncDispose]()
    await using _new = await fixture.instance({
      steps: { sign: signingStep('renamed'), renamed: async (task) => confirmed(task) },
    })
    await fixture.rows('update task_queue set run_at = now() where task_id = $1 returning 1', task_id)
    assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
  })

  test('a kind that this version lacks is not claimed', async () => {
    const newer: TaskKind = { kind: 'newer', version: 2, priority: 1, steps: { only: async () => executed } }
    await using a = await fixture.instance({ steps: { only: async () => executed } })
    const taskId = await fixture.admin.transaction((tx) =>
      a.taskEngine.enqueue(tx, {
        userId: newUser(),
        kind: newer,
        input: {},
        admission: { data: {}, first: 'only' },
      }),
    )
    for (let n = 0; n < 5; n++) assert.equal((await a.run(newUser())).outcome, 'executed')
    assert.equal((await fixture.readTask(taskId)).version, 1)
    await using _b = await fixture.instance({ steps: { only: async () => executed } }, { internal: [newer] })
    assert.equal((await fixture.waitForEnd(taskId)).outcome, 'executed')
  })

  test('a step that never returns fails at its timeout and is retried', async () => {
    await using a = await fixture.instance({
      stepTimeoutMs: 200,
      steps: {
        only: async ({ attempt }) => (attempt === 0 ? new Promise(() => undefined) : executed),
      },
    })
    assert.equal((await a.run(newUser(), { timeoutMs: 5_000 })).outcome, 'executed')
  })

  test('an instance runs no more tasks at once than it has slots', async () => {
    let now = 0
    let max = 0
    await using a = await fixture.instance(
      {
        steps: {
          only: async () => {
            max = Math.max(max, ++now)
            await workFor(30)
            now -= 1
            return executed
          },
        },
      },
      { slots: 4 },
    )
    const all = await Promise.all(Array.from({ length: 40 }, () => a.run(newUser())))
    assert.ok(all.every(({ outcome }) => outcome === 'executed'))
    assert.ok(max <= 4, `${max} at once`)
  })

  test('one user with many tasks leaves slots to the others', async () => {
    const busy = newUser()
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    let running = 0
    await using a = await fixture.instance(
      {
        steps: {
          only: async ({ userId }) => {
            if (userId !== busy) return executed
            running += 1
            await gate
            return executed
          },
        },
      },
      { slots: 4 },
    )
    const many = Array.from({ length: 12 }, () => a.run(busy))
    await eventually(async () => running >= 3 || undefined, 'the busy user has its share')
    assert.equal((await a.run(newUser(), { timeoutMs: 5_000 })).outcome, 'executed', 'a slot is left')
    assert.equal(running, 3, 'and only its share')
    open()
    assert.ok((await Promise.all(many)).every(({ outcome }) => outcome === 'executed'))
  })

  test('a task with a cancel request beside a stored effect runs to its end', async () => {
    let isFound = false
    await using a = await fixture.instance({
      steps: {
        sign: signingStep('look'),
        look: async (task) => (isFound ? confirmed(task) : { park: { afterMs: 60_000, next: 'look' } }),
      },
    })
    const { task_id } = await a.run(newUser(), { timeoutMs: 0 })
    await eventually(async () => {
      const task = await fixture.readTask(task_id)
      return task.step === 'look' && task.owner === null ? true : undefined
    }, 'the task is parked')
    isFound = true
    await fixture.rows(
      `with due as (update task_queue set run_at = now() where task_id = $1)
       update task set cancel_requested = true where id = $1 returning id`,
      task_id,
    )
    assert.deepEqual((await fixture.waitForEnd(task_id)).status, 'completed')
  })

  test('a cancel waits for the transaction that signs, and is rejected once the effect is stored', async () => {
    await using a = await fixture.instance({
      steps: { sign: signingStep('look'), look: async (task) => confirmed(task) },
    })
    const user = newUser()
    const lock = await fixture.lockRows('select 1 from nonce_sequence where signer = $1 for update', 'signer')
    const { task_id } = await a.run(user, { timeoutMs: 0 })
    const waits = (query: string) =>
      eventually(
        async () =>
          (
            await fixture.rows(
              `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like $1`,
              query,
            )
          )[0],
        query,
      )
    await waits('update nonce_sequence%')
    const cancel = a.taskEngine.tasks.cancel(user, task_id).catch((error: unknown) => error)
    await waits('%task_cancel%')
    lock[Symbol.dispose]()
    assert.equal(((await cancel) as Fault).code, 'not_cancellable')
    assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
  })

  test('a step whose commit the database refuses is not repeated at once, and runs again after a claim', async () => {
    let runs = 0
    const step = async () => {
      runs += 1
      return executed
    }
    await using a = await fixture.instance({ steps: { only: step } })
    // It has its lease once it has run a task: the next one needs no claim, which the trigger would refuse.
    assert.equal((await a.run(newUser())).outcome, 'executed')
    runs = 0
    const user = newUser()
    await fixture.rows(
      `create function refuse_update() returns trigger language plpgsql as $$ begin return null; end $$`,
    )
    await fixture.rows(
      `create trigger refused before update on task for each row when (old.user_id = '${user}')
       execute function refuse_update()`,
    )
    const { task_id } = await a.run(user, { timeoutMs: 500 })
    const refused = runs
    await fixture.rows('drop trigger refused on task')
    assert.equal(refused, 1)
    assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
    assert.equal(runs, 2)
  })

  test('slow notifications use one connection, and tasks continue', async () => {
    let now = 0
    let max = 0
    await using a = await fixture.instance(
      { steps: { only: async () => executed } },
      {
        poolMax: 3,
        createBus: (database) => {
          const bus = createPostgresBus(database)
          return {
            subscribe: (listener) => bus.subscribe(listener),
            async publish(payload) {
              max = Math.max(max, ++now)
              const client = await database.pool.connect()
              await client.query('select pg_sleep(0.2)')
              client.release()
              await bus.publish(payload)
              now -= 1
            },
          }
        },
      },
    )
    // Without a second instance nothing would be sent.
    await using _b = await fixture.instance({ steps: { only: async () => executed } })
    const all = Array.from({ length: 60 }, () => a.run(newUser()))
    for (const { outcome } of await Promise.all(all)) assert.equal(outcome, 'executed')
    assert.ok(max <= 2, `${max} notifications at once`)
  })

  test('schedules and price triggers use the newest version of a kind', async () => {
    const version = (n: number): TaskKind => ({
      kind: 'scheduled',
      version: n,
      priority: 1,
      steps: { [`first${n}`]: async () => executed },
    })
    await using a = await fixture.instance(
      { steps: { only: async () => executed } },
      { internal: [version(1), version(3), version(2)] },
    )
    await a.taskEngine.schedules.ensure(fixture.admin.pool, {
      kind: 'scheduled',
      input: {},
      everySeconds: 3_600,
      firstAt: new Date(),
    })
    const user = newUser()
    await fixture.rows(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, input, status, created_at, updated_at)
       values ($1, $2, 'scheduled', 'T', 'lte', 10, '{}', 'armed', now(), now()) returning id`,
      newUser(),
      user,
    )
    const [lease] = await a.priceTriggers.lease(['T'])
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '9'), 1)
    const made = await eventually(async () => {
      const tasks = await fixture.rows<{ kind_version: number; step: string }>(
        `select kind_version, step from task where kind = 'scheduled'`,
      )
      return tasks.length === 2 ? tasks : undefined
    }, 'both have created their task')
    assert.deepEqual(
      made.map(({ kind_version }) => kind_version),
      [3, 3],
    )
  })

  test('a voided hold cannot be posted, nor a posted one voided', async () => {
    await using a = await fixture.instance({ steps: { only: async () => executed } })
    const owner = newUser()
    const account = { owner, asset: 'test:coin', subAccount: 'wallet' }
    const apply = (...moves: Parameters<typeof a.taskEngine.ledger.apply>[1]) =>
      fixture.admin.transaction((tx) =>
        a.taskEngine.ledger.apply(tx, moves, { taskId: null, now: new Date() }),
      )
    const hold = (key: string) => ({
      move: 'hold' as const,
      key: `${owner}:${key}`,
      debit: account,
      credit: externalAccount('test:coin'),
      amountUnits: 5n,
      reason: 'test',
      token: { symbol: 'COIN', decimals: 2, address: 'coin' },
    })
    await apply({
      move: 'transfer',
      key: `${owner}:fund`,
      debit: externalAccount('test:coin'),
      credit: account,
      amountUnits: 10n,
      reason: 'fund',
    })
    await apply(hold('voided'), hold('posted'))
    await apply({ move: 'void', key: `${owner}:voided` }, { move: 'post', key: `${owner}:posted` })
    await assert.rejects(apply({ move: 'post', key: `${owner}:voided` }), { code: 'PT003' })
    await assert.rejects(apply({ move: 'void', key: `${owner}:posted` }), { code: 'PT003' })
    await apply({ move: 'void', key: `${owner}:voided` }, { move: 'post', key: `${owner}:posted` })
    const { availUnits, heldUnits } = await a.taskEngine.ledger.balance(fixture.admin.pool, account)
    assert.deepEqual([availUnits, heldUnits], [5n, 0n])
  })
  test('admissions that book balances of two accounts do not deadlock with transfers between them', async () => {
    const user = newUser()
    const account = (asset: string) => ({ owner: user, asset: `test:${asset}`, subAccount: 'wallet' })
    let seen = 100n
    await using a = await fixture.instance(
      { steps: { only: async () => executed } },
      {
        poolMax: 20,
        admit: async () => {
          seen += 1n
          const debit = account(seen % 2n === 0n ? 'a' : 'b')
          const { version } = await a.taskEngine.ledger.balance(fixture.admin.pool, debit)
          const spend = testSpend({ account: debit, amountUnits: 1n }, { totalUnits: seen, version })
          return { data: {}, first: 'only', spend }
        },
      },
    )
    const transfer = (n: number, from: string, to: string) =>
      a.database.transaction((tx) =>
        a.taskEngine.ledger.apply(
          tx,
          [
            {
              move: 'transfer',
              key: `${user}:${n}`,
              debit: from === 'outside' ? externalAccount(`test:${to}`) : account(from),
              credit: account(to),
              amountUnits: n < 2 ? 1_000n : 1n,
              reason: 'test',
            },
          ],
          { taskId: null, now: new Date() },
        ),
      )
    // The order of the ids of the accounts is the reverse of that of their names.
    await transfer(0, 'outside', 'b')
    await transfer(1, 'outside', 'a')
    const deadlocks = async () => {
      await fixture.rows('select pg_stat_force_next_flush()')
      const [row] = await fixture.rows<{ n: string }>(
        'select deadlocks::text as n from pg_stat_database where datname = current_database()',
      )
      return Number(row?.n)
    }
    const before = await deadlocks()
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        Promise.allSettled([transfer(2 * n + 2, 'b', 'a'), transfer(2 * n + 3, 'a', 'b'), a.run(user)]),
      ),
    )
    assert.equal(await deadlocks(), before)
  })
})
