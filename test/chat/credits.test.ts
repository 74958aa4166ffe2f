import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { Refused } from './read-chat.ts'
import { script } from './scripted-answerer.ts'

type Counts = { turns: number; threads: number; events: number; tasks: number }

describe('the credits of an answer', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp()
  })
  after(async () => app?.[Symbol.asyncDispose]())

  const creditsOf = async (user: ChatUser) =>
    (await user.get<{ credits_available: number }>('/v1/credits')).credits_available
  /** Leaves a user so many credits. */
  async function spendTo(user: ChatUser, left: number): Promise<string> {
    const { rows } = await app.db.query<{ id: string }>('select id from app_user where agent_id = $1', [
      user.agentId,
    ])
    const userId = rows[0]!.id
    const [instance] = app.instances
    const available = await creditsOf(user)
    await instance!.taskEngine.transact((tx) =>
      instance!.taskEngine.ledger.apply(
        tx,
        [
          {
            move: 'transfer',
            key: `test:${userId}`,
            debit: { owner: userId, asset: 'credits', subAccount: 'credits:signup' },
            credit: {
              owner: '00000000-0000-7000-8000-000000000000',
              asset: 'credits',
              subAccount: 'external',
            },
            amountUnits: BigInt(available - left),
            reason: 'test',
          },
        ],
        { taskId: null, now: new Date() },
      ),
    )
    return userId
  }
  const countsOf = async (userId: string): Promise<Counts> => {
    const { rows } = await app.db.query<Counts>(
      `select (select count(*)::integer from chat_turn where user_id = $1) as turns,
         (select count(*)::integer from chat_thread where user_id = $1) as threads,
         (select count(*)::integer from chat_event e join chat_turn t using (chat_id) where t.user_id = $1) as events,
         (select count(*)::integer from task where user_id = $1 and kind = 'chat') as tasks`,
      [userId],
    )
    return rows[0]!
  }

  test('each agent has its price, which is held while it answers and posted at the end', async () => {
    const user = await app.user()
    let left = 200
    for (const [agent, price] of [
      ['ProAgent', 1],
      ['MarketAnalyzerAgent', 2],
      ['ProDeepResearchAgent', 5],
    ] as const) {
      let during = 0
      const events = await user.ask(script({ say: 'a' }, { spell: 'bcd', everyMs: 40 }), {
        body: { agent },
        until: ({ event }) => {
          if (event === 'chunk' && during === 0) {
            during = 1
            void creditsOf(user).then((now) => {
              during = now
            })
          }
          return event === 'done'
        },
      })
      left -= price
      assert.equal((events.at(-1)!.data as { credits_remaining: number }).credits_remaining, left)
      assert.equal(await creditsOf(user), left)
      assert.equal(during, left, 'held while it answers')
    }
    assert.equal(await ledgerDrift(app.db), 0)
  })

  test('the history has each answer, newest first, and the first credits last', async () => {
    const user = await app.user()
    type History = {
      items: { task_id: string | null; kind: string; credits: number }[]
      next_before: string | null
    }
    const asked: string[] = []
    for (const agent of ['ProAgent', 'ProDeepResearchAgent'] as const)
      asked.push((await user.ask(script({ say: 'a' }), { body: { agent } }))[0]!.id!.split(':')[0]!)
    await user.ask(script({ fail: 'fault' }))
    const shown = ({ items }: History) => items.map(({ task_id, kind, credits }) => [task_id, kind, credits])
    const all = await user.get<History>('/v1/credits/history')
    assert.deepEqual(shown(all), [
      [asked[1], 'chat', -5],
      [asked[0], 'chat', -1],
      [null, 'signup', 200],
    ])
    assert.equal(all.next_before, null)
    const paged: unknown[] = []
    for (let before: string | null = ''; before !== null; ) {
      const query: string = before === '' ? '' : `&before=${before}`
      const page: History = await user.get(`/v1/credits/history?limit=1${query}`)
      paged.push(...shown(page))
      before = page.next_before
    }
    assert.deepEqual(paged, shown(all))
  })

  test('without credits the answer is refused before the stream with what is missing, and nothing is stored', async () => {
    const user = await app.user()
    const userId = await spendTo(user, 1)
    const refusal = await user.ask(script({ say: 'a' }), { body: { agent: 'ProDeepResearchAgent' } }).then(
      () => undefined,
      (error: unknown) => error,
    )
    assert.ok(refusal instanceof Refused)
    assert.equal(refusal.status, 402)
    const { code, required, available, missing } = refusal.body
    assert.deepEqual([code, required, available, missing], ['insufficient_credits', 5, 1, 4])
    assert.deepEqual(await countsOf(userId), { turns: 0, threads: 0, events: 0, tasks: 0 })
    assert.equal(await creditsOf(user), 1)
  })

  test('64 chats at once on one credit, over both instances: one answers and 63 get 402', async () => {
    const user = await app.user()
    const userId = await spendTo(user, 1)
    const chats = await Promise.all(
      Array.from({ length: 64 }, (_, at) =>
        user.ask(script({ say: 'a' }), { url: app.instances[at % 2]!.url }).then(
          () => 200,
          (error: Refused) => error.status,
        ),
      ),
    )
    assert.deepEqual(
      Object.fromEntries(
        Object.entries(Object.groupBy(chats, String)).map(([status, all]) => [status, all?.length]),
      ),
      { 200: 1, 402: 63 },
    )
    assert.equal(await creditsOf(user), 0)
    assert.deepEqual(await countsOf(userId), { turns: 1, threads: 1, events: 4, tasks: 1 })
    assert.equal(await ledgerDrift(app.db), 0)
  })

  test('64 requests with one key at once are one answer and one credit', async () => {
    const user = await app.user()
    const query = script({ spell: 'abc', everyMs: 5 })
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, at) =>
        http(`${app.instances[at % 2]!.url}/v1/chat`, {
          method: 'POST',
          body: { query, stream: false },
          headers: { ...bearer(user), 'idempotency-key': 'once' },
        }),
      ),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ body }) => body.chat_id)).size, 1)
    assert.equal(await creditsOf(user), 199)
  })

  test('another question under the key of an answer is refused', async () => {
    const user = await app.user()
    await user.ask(script({ say: 'a' }), { key: 'taken' })
    await assert.rejects(user.ask(script({ say: 'b' }), { key: 'taken' }), { status: 409 })
  })

  test('an account that is suspended ends its answers without a charge', async () => {
    const user = await app.user()
    const [instance] = app.instances
    const { rows } = await app.db.query<{ id: string }>('select id from app_user where agent_id = $1', [
      user.agentId,
    ])
    const events = user.ask(script({ say: 'a' }, { hang: true }), { until: ({ event }) => event === 'chunk' })
    const [meta] = await events
    await instance!.features.auth.suspend(rows[0]!.id)
    const chatId = meta!.id!.split(':')[0]
    const ended = await eventually(async () => {
      const found = await app.db.query<{ status: string; last_data: { code: string } }>(
        'select status, last_data from chat_turn where chat_id = $1',
        [chatId],
      )
      return found.rows[0]?.status === 'running' ? undefined : found.rows[0]
    }, 'the end of the answer')
    assert.deepEqual([ended.status, ended.last_data.code], ['failed', 'suspended'])
    await instance!.features.auth.resume(rows[0]!.id)
    await eventually(async () => ((await creditsOf(user)) === 200 ? true : undefined), 'the credits are back')
  })

  test('a token that is revoked ends the calls of tools of its answers', async () => {
    const user = await app.user()
    const query = script({ say: 'a' }, { spell: 'x'.repeat(40), everyMs: 25 }, { call: 'credits_available' })
    const events = await user.ask(query, {
      until: ({ event, id }) => {
        if (id?.endsWith(':2'))
          void http(`${app.url}/v1/auth/token`, { method: 'DELETE', headers: bearer(user) })
        return event === 'error'
      },
    })
    const chatId = events[0]!.id!.split(':')[0]
    const text = await eventually(async () => {
      const found = await app.db.query<{ answer: string | null }>(
        'select answer from chat_turn where chat_id = $1 and completed_at is not null',
        [chatId],
      )
      return found.rows[0]?.answer ?? undefined
    }, 'the end of the answer')
    assert.match(text, /credits_available invalid_token/)
  })
})
