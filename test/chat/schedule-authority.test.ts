/** In whose name runs of schedules act, what a person has approved for them, and how both end. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { termsHash } from '#features/schedules/standing-approval.ts'
import { findSchedule } from '#features/schedules/store.ts'
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
