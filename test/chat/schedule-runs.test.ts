/** Runs of schedules: one chat each, nobody who listens, and a record of what became of them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { everything } from '#durable/time/money-hold.ts'
import { query } from '#store/query.ts'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { addSchedule, endOfRun, runToEnd, type Schedule, startRun } from './schedule-fixture.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

type Event = { type: string; data: { schedule_id?: string; skip_reason?: string; reason?: string } }

describe('a run of a schedule', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { chatGraceMs: 300, addOperations: testOperations } })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const instance = () => app.instances[0]!
  const eventsOf = async (user: ChatUser, { id }: Schedule): Promise<Event[]> => {
    const { events } = await user.get<{ events: Event[] }>('/v1/notifications?limit=100')
    return events.filter(({ data }) => data.schedule_id === id)
  }
  const typesOf = async (user: ChatUser, schedule: Schedule) =>
    (await eventsOf(user, schedule)).map(({ type }) => type)
  const scheduleRow = async ({ id }: Schedule) => {
    const text =
      'select status, status_reason, thread_id, run_count, skipped_count from strategy where id = $1'
    const [row] = await query<Record<string, unknown>>(instance().db, text, [id])
    return row!
  }
  const suspend = (user: ChatUser, at: string) =>
    query(instance().db, `update app_user set suspended_at = ${at} where agent_id = $1`, [user.agentId])
  const killSwitch = (user: ChatUser, on: boolean) =>
    on
      ? http(`${app.url}/v1/kill`, { method: 'POST', body: { on: true }, headers: bearer(user) })
      : query(instance().db, `delete from kill_switch where scope = 'user'`)

  test('asks its query in the thread of the schedule, though nobody listens, and reports', async () => {
    const user = await app.user()
    const said = 'a'.repeat(20)
    const schedule = await addSchedule(instance(), user, {
      query: script({ plan: 'think' }, { call: 'credits_available' }, { spell: said, everyMs: 60 }),
    })
    const first = await runToEnd(instance(), schedule)
    assert.deepEqual(
      [first.status, first.outcome, first.skip_reason, first.answer, first.credits_used],
      ['completed', 'executed', null, `credits_available ok. ${said}`, 1],
    )
    const second = await runToEnd(instance(), schedule)
    const { thread_id: threadId, run_count: runs } = await scheduleRow(schedule)
    const messages = await user.get<{ chat_id: string }[]>(`/v1/chat/threads/${threadId}`)
    assert.deepEqual(
      messages.map(({ chat_id }) => chat_id),
      [first.chat_id, first.chat_id, second.chat_id, second.chat_id],
    )
    assert.equal(runs, 2)
    assert.deepEqual(
      (await eventsOf(user, schedule)).map(({ type }) => type),
      ['schedule.run_started', 'schedule.run_finished', 'schedule.run_started', 'schedule.run_finished'],
    )
    const events = await query<{ seq: number; type: string }>(
      instance().db,
      'select seq, type from strategy_event where execution_id = $1 order by seq',
      [first.id],
    )
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, at) => at + 1),
    )
    assert.deepEqual(
      events.map(({ type }) => type),
      ['log', 'planning', 'tool_call', 'tool_response', 'done'],
    )
    const files = await query<{ path: string }>(
      instance().db,
      'select path from strategy_file where strategy_id = $1 order by path',
      [schedule.id],
    )
    assert.deepEqual(
      files.map(({ path }) => path),
      ['runs/1/report.md', 'runs/2/report.md'],
    )
    const children = await user.get<{ items: { task_id: string; kind: string }[] }>(
      `/v1/tasks?parent_task_id=${first.id}`,
    )
    assert.deepEqual(
      children.items.map(({ task_id, kind }) => [task_id, kind]),
      [[first.chat_id, 'chat']],
    )
    assert.equal(await ledgerDrift(instance().db), 0)
  })

  test('without credits it is skipped, reported once, and three in a row pause the schedule', async () => {
    const user = await app.user()
    await app.leaveCredits(user, 0)
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    for (const n of [1, 2, 3]) {
      const run = await runToEnd(instance(), schedule)
      assert.deepEqual([run.status, run.skip_reason, run.chat_id], ['cancelled', 'no_credits', null])
      assert.equal((await scheduleRow(schedule)).status, n < 3 ? 'active' : 'paused')
    }
    assert.deepEqual(await typesOf(user, schedule), ['schedule.run_skipped', 'schedule.paused'])
    const { status_reason: reason, run_count, skipped_count } = await scheduleRow(schedule)
    assert.match(String(reason), /^no_credits: /)
    assert.deepEqual([run_count, skipped_count], [0, 3])
    assert.deepEqual(
      await query(instance().db, `select id from task where kind = 'chat' and user_id = $1`, [
        schedule.userId,
      ]),
      [],
    )
  })

  test('three failures in a row pause it, and a run that completes begins a new row', async () => {
    const user = await app.user()
    const fails = script({ fail: 'fault' })
    const schedule = await addSchedule(instance(), user, { query: fails, notify: 'failures' })
    const ask = (text: string) =>
      query(instance().db, 'update strategy_version set query = $2 where strategy_id = $1', [
        schedule.id,
        text,
      ])
    for (const text of [fails, fails, script({ say: 'hi' }), fails, fails]) {
      await ask(text)
      const { status } = await runToEnd(instance(), schedule)
      assert.equal(status, text === fails ? 'failed' : 'completed')
      assert.equal((await scheduleRow(schedule)).status, 'active')
    }
    await runToEnd(instance(), schedule)
    assert.match(String((await scheduleRow(schedule)).status_reason), /^failures: 3 times in a row it failed/)
    assert.deepEqual(await typesOf(user, schedule), [
      ...Array.from({ length: 5 }, () => 'schedule.run_finished'),
      'schedule.paused',
    ])
  })

  test('a kill switch skips it as often as it is set, and pauses nothing', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    await killSwitch(user, true)
    for (let n = 0; n < 4; n++) {
      const { status, skip_reason } = await runToEnd(instance(), schedule)
      assert.deepEqual([status, skip_reason], ['cancelled', 'frozen'])
    }
    assert.equal((await scheduleRow(schedule)).status, 'active')
    assert.deepEqual(await typesOf(user, schedule), ['schedule.run_skipped'])
    await killSwitch(user, false)
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
  })

  test('while all money waits for an operator it is skipped, and no chat begins', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    const hold = { scope: everything, reason: 'went_back', since: new Date(), detail: {} } as const
    for (const { taskEngine } of app.instances) taskEngine.holds.setLocal(hold)
    const { skip_reason, chat_id } = await runToEnd(instance(), schedule)
    for (const { taskEngine } of app.instances) taskEngine.holds.clearLocal(everything)
    assert.deepEqual([skip_reason, chat_id], ['frozen', null])
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
  })

  test('the run of an app takes credits of its day with its chat, and none without a chat', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    const grant = { grantId: `grant of ${user.agentId}`, clientId: 'an app', oauthScopes: ['chat'] }
    await query(
      instance().db,
      `insert into oauth_record (model, id, payload, account_id, created_at, expires_at)
       values ('Grant', $1, '{}', $2, now(), now() + interval '1 day')`,
      [grant.grantId, schedule.userId],
    )
    await query(
      instance().db,
      'update strategy_version set authority = authority || $2::jsonb where strategy_id = $1',
      [schedule.id, JSON.stringify(grant)],
    )
    const used = async () => {
      const text = 'select used from app_credits where user_id = $1'
      return (await query<{ used: number }>(instance().db, text, [schedule.userId]))[0]?.used
    }
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
    assert.equal(await used(), 1)
    await app.leaveCredits(user, 1)
    assert.equal((await runToEnd(instance(), schedule)).skip_reason, 'no_credits')
    assert.equal(await used(), 1, 'a chat that was refused took nothing of the day')
  })

  test('a run that meets an earlier one is skipped, and the earlier one goes on', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, {
      query: script({ spell: 'aaaaaaaaaa', everyMs: 200 }),
    })
    const first = await startRun(instance(), schedule)
    const second = await runToEnd(instance(), schedule)
    assert.equal(second.skip_reason, 'overlap')
    assert.equal((await endOfRun(instance(), first)).status, 'completed')
  })

  test('a cooldown after a run that acted skips the next one', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, {
      query: script({ say: 'hi' }),
      guards: { cooldown_seconds: 600 },
    })
    const { id } = await runToEnd(instance(), schedule)
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
    await query(
      instance().db,
      `update strategy_execution set decision = '{"action": "adjust", "reason": ""}' where id = $1`,
      [id],
    )
    assert.equal((await runToEnd(instance(), schedule)).skip_reason, 'cooldown')
  })

  test('the end of the access pauses the schedule, and ends a run that is under way with its chat', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    const running = await startRun(instance(), schedule)
    await eventually(
      async () =>
        (
          await query<{ chat_id: string | null }>(
            instance().db,
            'select chat_id from strategy_execution where id = $1',
            [running],
          )
        )[0]?.chat_id ?? undefined,
      'the chat of the run',
    )
    await suspend(user, 'now()')
    const run = await endOfRun(instance(), running)
    assert.deepEqual([run.status, run.skip_reason], ['cancelled', 'access_ended'])
    assert.match(String((await scheduleRow(schedule)).status_reason), /^access_ended: /)
    const chat = await eventually(
      async () =>
        (
          await query<{ status: string }>(
            instance().db,
            `select status from chat_turn where chat_id = $1 and status <> 'running'`,
            [run.chat_id],
          )
        )[0],
      'the end of the chat',
    )
    assert.notEqual(chat.status, 'completed')
    await suspend(user, 'null')
    assert.deepEqual((await typesOf(user, schedule)).slice(-2), ['schedule.run_skipped', 'schedule.paused'])
  })

  test('a run whose access lacks a scope is skipped as without access, and pauses the schedule', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    const text = `update strategy_version set authority = authority || '{"scopes": ["read"]}' where strategy_id = $1`
    await query(instance().db, text, [schedule.id])
    const { status, skip_reason, error } = await runToEnd(instance(), schedule)
    assert.deepEqual([status, skip_reason], ['cancelled', 'access_ended'])
    assert.equal((error as { code: string }).code, 'insufficient_scope')
    assert.match(String((await scheduleRow(schedule)).status_reason), /^access_ended: .*may not chat/)
  })

  test('an agent that its person unlinks has no schedule any more; a token that expires ends nothing', async () => {
    const user = await app.user()
    const person = await app.user()
    const idOf = async ({ agentId }: ChatUser) =>
      (
        await query<{ id: string }>(instance().db, 'select id from app_user where agent_id = $1', [agentId])
      )[0]!.id
    await query(
      instance().db,
      'insert into agent_link (user_id, person_id, linked_at) values ($1, $2, now())',
      [await idOf(user), await idOf(person)],
    )
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    await query(instance().db, 'delete from access_token where user_id = $1', [schedule.userId])
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
    await query(instance().db, 'delete from agent_link where user_id = $1', [schedule.userId])
    assert.equal((await runToEnd(instance(), schedule)).skip_reason, 'access_ended')
    assert.equal((await scheduleRow(schedule)).status, 'paused')
  })

  test('every token of an account that is revoked pauses its schedules at once', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    const revoked = await http(`${app.url}/v1/auth/token?all=true`, {
      method: 'DELETE',
      headers: bearer(user),
    })
    assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
    assert.match(String((await scheduleRow(schedule)).status_reason), /^access_ended: /)
  })

  test('a schedule keeps its newest versions, and those that its runs name', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
    for (let n = 2; n <= 26; n++) {
      const edited = await http<{ version: number }>(`${app.url}/update_schedule_chat`, {
        method: 'PUT',
        body: { schedule_id: schedule.id, query: `question ${n}` },
        headers: bearer(user),
      })
      assert.equal(edited.body.version, n, JSON.stringify(edited.body))
    }
    const rows = await query<{ version: number }>(
      instance().db,
      'select version from strategy_version where strategy_id = $1 order by version',
      [schedule.id],
    )
    const newest = Array.from({ length: 20 }, (_, at) => at + 7)
    assert.deepEqual(
      rows.map(({ version }) => version),
      [1, ...newest],
    )
  })

  test('a schedule that was stopped begins no run that was due before', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    await query(instance().db, `update strategy set status = 'disabled', next_at = null where id = $1`, [
      schedule.id,
    ])
    const run = await runToEnd(instance(), schedule)
    assert.deepEqual([run.status, run.skip_reason, run.chat_id], ['cancelled', null, null])
  })

  test('a run under way goes on when its schedule is disabled, until what it may have opened is closed', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    const id = await startRun(instance(), schedule)
    await eventually(
      async () => (await typesOf(user, schedule)).includes('schedule.run_started') || undefined,
      'the start of the run',
    )
    const isCancelled = async (fields: object) => {
      const disabled = await http(`${app.url}/disable_schedule_chats`, {
        method: 'PUT',
        body: { schedule_id: schedule.id, ...fields },
        headers: bearer(user),
      })
      assert.equal(disabled.status, 200, JSON.stringify(disabled.body))
      const [task] = await query<{ cancel_requested: boolean }>(
        instance().db,
        'select cancel_requested from task where id = $1',
        [id],
      )
      return task!.cancel_requested
    }
    assert.deepEqual([await isCancelled({}), await isCancelled({ positions: 'flatten' })], [false, true])
    assert.equal((await endOfRun(instance(), id)).status, 'cancelled')
  })

  test('a cancelled run ends its chat, and keeps what the chat has said', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'so far' }, { hang: true }) })
    const id = await startRun(instance(), schedule)
    await eventually(
      async () => (await typesOf(user, schedule)).includes('schedule.run_started') || undefined,
      'the start of the run',
    )
    const cancelled = await http(`${app.url}/v1/tasks/${id}/cancel`, {
      method: 'POST',
      body: {},
      headers: bearer(user),
    })
    assert.equal(cancelled.status, 200, JSON.stringify(cancelled.body))
    const run = await endOfRun(instance(), id)
    assert.equal(run.status, 'cancelled')
    await eventually(
      async () =>
        (
          await query<{ status: string }>(
            instance().db,
            `select status from chat_turn where chat_id = $1 and status = 'cancelled'`,
            [run.chat_id],
          )
        )[0],
      'the end of the chat',
    )
    assert.equal(await ledgerDrift(instance().db), 0)
  })

  test('a thread that is full is replaced by a new one', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, {
      query: script({ say: 'hi' }),
      threadId: crypto.randomUUID(),
    })
    const { thread_id: before } = await scheduleRow(schedule)
    assert.equal((await runToEnd(instance(), schedule)).status, 'completed')
    assert.notEqual((await scheduleRow(schedule)).thread_id, before)
  })

  test('its chat is offered nothing by which runs, webhooks or access are planned', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ show: 'tools' }) })
    const { answer } = await runToEnd(instance(), schedule)
    const tools = JSON.parse(answer!) as { name: string; effect: string }[]
    assert.ok(tools.length > 20)
    for (const { name, effect } of tools)
      if (/^(?:auth|webhooks|chat|schedules|agents|recipients|approvals)_/.test(name))
        assert.equal(effect, 'read', name)
  })
})
