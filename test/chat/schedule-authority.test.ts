/** In whose name runs of schedules act, what a person has approved for them, and how both end. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { endRuns } from '#admin/end-schedules-and-webhooks.ts'
import { activateApproved } from '#features/schedules/activation.ts'
import type { ScheduleDeps } from '#features/schedules/schedule-deps.ts'
import { termsHash, versionHash } from '#features/schedules/standing-approval.ts'
import { findSchedule } from '#features/schedules/store.ts'
import { systemClock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { query } from '#store/query.ts'
import { bearer, eventually, freshToken, http } from '../harness/gateway.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { addSchedule, endOfRun, runToEnd, type Schedule, startRun } from './schedule-fixture.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

type Stored = {
  scopes: string[]
  approvedMicros?: string
  approvedUntil?: string
  approvedTerms?: string
  endedAt?: string
}
type Activated = { status: string; approval?: object }

const approvedMicros = '60000000'

describe('the authority of a schedule', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { chatGraceMs: 300, addOperations: testOperations } })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const instance = () => app.instances[0]!
  const sql = <Row>(text: string, values: unknown[] = []) =>
    query<Row & Record<string, unknown>>(instance().db, text, values)
  const idOf = async ({ agentId }: Pick<ChatUser, 'agentId'>) =>
    (await sql<{ id: string }>('select id from app_user where agent_id = $1', [agentId]))[0]!.id
  const link = async (agent: ChatUser, person: ChatUser) => {
    await sql('delete from agent_link where user_id = $1', [await idOf(agent)])
    const text = `insert into agent_link (user_id, person_id, linked_at)
      values ($1, $2, date_trunc('milliseconds', clock_timestamp()))`
    await sql(text, [await idOf(agent), await idOf(person)])
  }
  const contest = async (agent: ChatUser, at: string) =>
    sql(`update agent_link set contested_at = ${at} where user_id = $1`, [await idOf(agent)])
  /** What one order may be, and the value above which it needs an approval. */
  const setLimits = (userId: string, aboveMicros: number) =>
    sql(
      `insert into policy (user_id, version, chat_per_day_micros, per_transaction_micros, approval_above_micros, updated_at)
       values ($1, 1, $2, $2, $3, now())
       on conflict (user_id) do update set approval_above_micros = $3, version = policy.version + 1`,
      [userId, Number(approvedMicros), aboveMicros],
    )
  const storedOf = async ({ id }: Schedule): Promise<Stored> =>
    (
      await sql<{ authority: Stored }>('select authority from strategy_version where strategy_id = $1', [id])
    )[0]!.authority
  const callerOf = async (chatId: string | null) =>
    (
      await sql<{ caller: { scopes: string[]; run: { approvedMicros: string | null } } }>(
        'select caller from chat_turn where chat_id = $1',
        [chatId],
      )
    )[0]!.caller
  const statusOf = async ({ id }: Schedule) =>
    (await sql<{ status: string }>('select status from strategy where id = $1', [id]))[0]!.status
  const call = (user: Pick<ChatUser, 'token'>, { id }: Schedule, verb: string) =>
    http<Activated & { task_id: string; code?: string }>(`${app.url}/schedule-chat/schedule/${id}/${verb}`, {
      method: 'POST',
      headers: bearer(user),
    })
  const activate = async (user: ChatUser, schedule: Schedule) => {
    if ((await statusOf(schedule)) === 'active') await call(user, schedule, 'pause')
    const { status, body } = await call(user, schedule, 'activate')
    assert.equal(status, 200, JSON.stringify(body))
    return body.approval ? 'asks' : body.status
  }
  /** A schedule that orders, activated by its agent. */
  const ordering = async (user: ChatUser, text = script({ say: 'hi' })): Promise<Schedule> => {
    const schedule = await addSchedule(instance(), user, { query: text })
    await sql('update strategy_version set compiled = $2 where strategy_id = $1', [
      schedule.id,
      JSON.stringify({ operations: ['test_move'], isSpending: true, notes: [] }),
    ])
    await setLimits(schedule.userId, Number(approvedMicros))
    assert.equal(await activate(user, schedule), 'active')
    return schedule
  }
  /** Stores what the approval of a person stores. */
  const approve = async ({ id, userId }: Schedule) => {
    const row = (await findSchedule(instance().db, userId, id))!
    const approval = {
      approvedMicros,
      approvedUntil: new Date(Date.now() + 86_400_000).toISOString(),
      approvedTerms: termsHash(row, row.authority as object),
    }
    await sql('update strategy_version set authority = authority || $2::jsonb where strategy_id = $1', [
      id,
      JSON.stringify(approval),
    ])
    await setLimits(userId, 1_000_000)
  }
  const approvedRun = async (schedule: Schedule) =>
    (await callerOf((await runToEnd(instance(), schedule)).chat_id)).run.approvedMicros

  test('has only the scopes that its runs need', async () => {
    const user = await app.user()
    const schedule = await ordering(user)
    assert.deepEqual((await storedOf(schedule)).scopes, ['read', 'chat', 'trade'])
    const asking = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    assert.equal(await activate(user, asking), 'active')
    assert.deepEqual((await storedOf(asking)).scopes, ['read', 'chat'])
  })

  test('is no wider than the caller of a run by hand', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ call: 'credits_available' }) })
    assert.equal(await activate(user, schedule), 'active')
    const token = await freshToken(app.url, user.agentId, user.privateKey)
    await sql(`update access_token set scopes = '{chat}' where hash = sha256(convert_to($1, 'UTF8'))`, [
      token,
    ])
    const started = await call({ token }, schedule, 'run')
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const run = await endOfRun(instance(), started.body.task_id)
    assert.deepEqual((await callerOf(run.chat_id)).scopes, ['chat'])
    assert.match(String(run.answer), /^credits_available insufficient_scope/)
    assert.deepEqual((await storedOf(schedule)).scopes, ['read', 'chat'])
  })

  test('lets a token that only reads see what its runs have answered, and stop nothing', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'for readers' }) })
    const { id } = await runToEnd(instance(), schedule)
    const token = await freshToken(app.url, user.agentId, user.privateKey)
    await sql(`update access_token set scopes = '{read}' where hash = sha256(convert_to($1, 'UTF8'))`, [
      token,
    ])
    const headers = bearer({ token })
    const run = await http<{ answer: string; chat_id: string }>(`${app.url}/schedule-chat/execution/${id}`, {
      headers,
    })
    assert.deepEqual([run.status, run.body.answer], [200, 'for readers'])
    assert.equal((await call({ token }, schedule, 'pause')).status, 403)
  })

  test('keeps its approval only while the same person owns the agent by the same link', async () => {
    const [user, first, second] = await Promise.all([app.user(), app.user(), app.user()])
    await link(user, first)
    const schedule = await ordering(user)
    await approve(schedule)
    assert.equal(await activate(user, schedule), 'active')
    assert.equal((await storedOf(schedule)).approvedMicros, approvedMicros)
    assert.equal(await approvedRun(schedule), approvedMicros)

    await contest(user, 'now()')
    assert.equal(await approvedRun(schedule), null)
    assert.equal(await activate(user, schedule), 'asks')
    await contest(user, 'null')
    assert.equal(await activate(user, schedule), 'active')
    assert.equal(await approvedRun(schedule), approvedMicros)

    await link(user, second)
    assert.equal(await activate(user, schedule), 'asks')
    await link(user, first)
    assert.equal(await activate(user, schedule), 'asks')
    await sql('delete from agent_link where user_id = $1', [schedule.userId])
    assert.equal(await activate(user, schedule), 'active')
    assert.equal((await storedOf(schedule)).approvedMicros, undefined)
    assert.equal(await approvedRun(schedule), null)
  })

  test('is not approved for another version, another access, or after every access has ended', async () => {
    const [user, person] = await Promise.all([app.user(), app.user()])
    await link(user, person)
    const schedule = await ordering(user)
    await approve(schedule)
    const change = (text: string) =>
      sql(`update strategy_version set ${text} where strategy_id = $1`, [schedule.id])
    await change(`guards = '{"cooldown_seconds": 1}'`)
    assert.equal(await approvedRun(schedule), null)
    await change('guards = null')
    assert.equal(await approvedRun(schedule), approvedMicros)
    await change(`authority = jsonb_set(authority, '{scopes}', '["read", "chat", "trade", "manage"]')`)
    assert.equal(await approvedRun(schedule), null)
    await revokeAll(user)
    assert.equal((await storedOf(schedule)).approvedMicros, undefined)
    const token = await freshToken(app.url, user.agentId, user.privateKey)
    assert.equal(await activate({ ...user, token }, schedule), 'asks')
  })

  const revokeAll = async (user: ChatUser) => {
    const revoked = await http(`${app.url}/v1/auth/token?all=true`, {
      method: 'DELETE',
      headers: bearer(user),
    })
    assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  }
  const chatOf = (id: string) =>
    eventually(async () => {
      const text = 'select chat_id from strategy_execution where id = $1'
      return (await sql<{ chat_id: string | null }>(text, [id]))[0]?.chat_id ?? undefined
    }, 'the chat of the run')
  const assertEnded = async (id: string) => {
    const { status, skip_reason, chat_id } = await endOfRun(instance(), id)
    assert.deepEqual([status, skip_reason], ['cancelled', 'access_ended'])
    await eventually(async () => {
      const text = `select from chat_turn where chat_id = $1 and status = 'cancelled'`
      return (await sql(text, [chat_id]))[0]
    }, 'the end of the chat')
  }

  test('ends the run under way with its chat when every token is revoked, and begins no run that waits', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    const running = await startRun(instance(), schedule)
    await chatOf(running)
    // Its last time has come, so it is completed while the run goes on.
    await sql(`update strategy set status = 'completed', next_at = null where id = $1`, [schedule.id])
    await revokeAll(user)
    assert.equal((await storedOf(schedule)).endedAt !== undefined, true)
    await assertEnded(running)
    assert.equal(await statusOf(schedule), 'completed')
    const late = await runToEnd(instance(), schedule)
    assert.deepEqual([late.status, late.skip_reason, late.chat_id], ['cancelled', 'access_ended', null])
  })

  test('records the times that have come by its end, and says so once', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    const text = `update strategy set next_at = date_trunc('hour', now()) - interval '1 hour' where id = $1`
    await sql(text, [schedule.id])
    await revokeAll(user)
    const records = await sql(
      'select status, skip_reason, skipped_slots from strategy_execution where strategy_id = $1',
      [schedule.id],
    )
    assert.deepEqual(records, [{ status: 'cancelled', skip_reason: 'access_ended', skipped_slots: 2 }])
    const counted = 'select status, skipped_count, execution_count from strategy where id = $1'
    assert.deepEqual(await sql(counted, [schedule.id]), [
      { status: 'paused', skipped_count: 2, execution_count: 1 },
    ])
    const events = await sql<{ type: string }>(
      `select type from user_event where user_id = $1 and type like 'schedule.%' order by seq`,
      [schedule.userId],
    )
    assert.deepEqual(
      events.map(({ type }) => type),
      ['schedule.run_skipped', 'schedule.paused'],
    )
  })

  test('ends with the grant of the app, and with the account that an operator freezes', async () => {
    const [user, frozen] = await Promise.all([app.user(), app.user()])
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    const grant = { grantId: `grant of ${user.agentId}`, clientId: 'an app', oauthScopes: ['chat'] }
    await sql(
      `insert into oauth_record (model, id, payload, account_id, created_at, expires_at)
       values ('Grant', $1, '{}', $2, now(), now() + interval '1 day')`,
      [grant.grantId, schedule.userId],
    )
    await sql('update strategy_version set authority = authority || $2::jsonb where strategy_id = $1', [
      schedule.id,
      JSON.stringify(grant),
    ])
    const other = await addSchedule(instance(), frozen, { query: script({ hang: true }) })
    const running = await Promise.all([schedule, other].map((each) => startRun(instance(), each)))
    await Promise.all(running.map(chatOf))
    await sql(`delete from oauth_record where id = $1`, [grant.grantId])
    await instance().transactions.run(async (tx) => {
      const at = new Date()
      await query(tx, 'update app_user set suspended_at = $2 where id = $1', [other.userId, at])
      await endRuns(tx, { userId: other.userId, at })
    })
    await Promise.all(running.map(assertEnded))
    assert.deepEqual(await Promise.all([schedule, other].map(statusOf)), ['paused', 'paused'])
  })

  test('an activation that meets the end of its access waits for it, and activates nothing', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ say: 'hi' }) })
    assert.equal((await call(user, schedule, 'pause')).status, 200)
    let answer: Promise<{ status: number }> | undefined
    await instance().transactions.run(async (tx) => {
      await query(tx, 'delete from access_token where user_id = $1', [schedule.userId])
      answer = call(user, schedule, 'activate')
      await eventually(async () => {
        const text = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%access_token%for key share%'`
        return (await sql(text))[0]
      }, 'the activation waits')
      assert.equal(await statusOf(schedule), 'paused')
    })
    assert.equal((await answer)?.status, 401)
    assert.equal(await statusOf(schedule), 'paused')
  })

  test('what a person has approved is refused once the link or the version is another one', async () => {
    const [user, person, other] = await Promise.all([app.user(), app.user(), app.user()])
    await link(user, person)
    const schedule = await ordering(user)
    assert.equal((await call(user, schedule, 'pause')).status, 200)
    const row = (await findSchedule(instance().db, schedule.userId, schedule.id))!
    const approved = {
      schedule_id: schedule.id,
      version: row.version,
      version_sha256: versionHash(row),
      max_usd: '60',
      authority: row.authority as JsonObject,
    }
    const facts = { credits: 10, chatPerDayUsd: '60', perTransactionUsd: '60', approvalAboveUsd: '1' }
    const deps = {
      taskClock: systemClock,
      clock: systemClock,
      creditsPerRun: () => 1,
    } as unknown as ScheduleDeps
    const refusal = (input: typeof approved) =>
      instance()
        .transactions.run((tx) =>
          activateApproved(deps, input, {
            facts,
            userId: schedule.userId,
            act: { tx, afterCommit: () => undefined },
          }),
        )
        .then(
          () => undefined,
          ({ code, extras }: { code: string; extras?: object }) => [code, extras],
        )
    assert.deepEqual(await refusal({ ...approved, version_sha256: 'another' }), [
      'conflict',
      { version: row.version },
    ])
    await link(user, other)
    assert.deepEqual(await refusal(approved), ['conflict', { status: 'link_changed' }])
    await contest(user, 'now()')
    assert.notEqual(await refusal(approved), undefined)
    assert.equal(await statusOf(schedule), 'paused')
  })

  test('ends with the link under which the agent has activated it', async () => {
    const [user, person] = await Promise.all([app.user(), app.user()])
    await link(user, person)
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    const running = await startRun(instance(), schedule)
    await chatOf(running)
    const unlinked = await http(`${app.url}/v1/agents/${user.agentId}`, {
      method: 'DELETE',
      headers: bearer(user),
    })
    assert.equal(unlinked.status, 200, JSON.stringify(unlinked.body))
    assert.equal(await statusOf(schedule), 'paused')
    await assertEnded(running)
  })

  test('of a run by hand ends when every token is revoked', async () => {
    const user = await app.user()
    const schedule = await addSchedule(instance(), user, { query: script({ hang: true }) })
    await sql(`update strategy set status = 'completed', next_at = null where id = $1`, [schedule.id])
    const started = await call(user, schedule, 'run')
    assert.equal(started.status, 200, JSON.stringify(started.body))
    await chatOf(started.body.task_id)
    await revokeAll(user)
    await assertEnded(started.body.task_id)
  })
})
