/** What an answerer is given besides its question, and what of it outlasts an instance. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { PastMessage, ToolDescription } from '#kernel/wire/chat-answerer.ts'
import { bearer, http } from '../harness/gateway.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

const textOf = (events: SentEvent[]) => (events.at(-2)!.data as { text: string }).text
const doneOf = (events: SentEvent[]) => events.at(-1)!.data as { credits_used: number; thread_id?: string }
const threadOf = (events: SentEvent[]) => (events[0]!.data as { thread_id: string }).thread_id

describe('what an answerer is given', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { addOperations: testOperations } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  test('a note is made once, also where another instance runs the turn again', async () => {
    const user = await app.user()
    const query = script(
      { note: 'one' },
      { note: 'one' },
      { spell: 'x'.repeat(60), everyMs: 20 },
      { note: 'two' },
    )
    let isTaken = false
    const events = await user.ask(query, {
      until: (event) => {
        if (event.event === 'chunk' && event.id?.endsWith(':8') && !isTaken) {
          isTaken = true
          void app.takeOver(event.id.split(':')[0]!)
        }
        return isEnd(event)
      },
    })
    assert.ok(isTaken)
    assert.equal(textOf(events), `note 1 of 1. note 1 of 1. ${'x'.repeat(60)}note 1 of 1. `)
    const { rows } = await app.db.query('select 1 from chat_call')
    assert.deepEqual(rows, [], 'notes are deleted with the end of the turn')
  })

  test('notes are bounded in bytes, and no call of a tool has the id of a note', async () => {
    const user = await app.user()
    const failed = await user.ask(script({ note: 'large', bytes: 300_000 }))
    assert.deepEqual(failed.at(-1)!.event, 'error')
    const many = Array.from({ length: 20 }, (_, at) => ({ note: `n${at}`, bytes: 250_000 }))
    assert.equal((await user.ask(script(...many))).at(-1)!.event, 'error')
    assert.equal((await user.ask(script(...many.slice(0, 16)))).at(-1)!.event, 'done')
  })

  const toolsOf = async (user: ChatUser): Promise<Map<string, ToolDescription>> => {
    const shown = JSON.parse(textOf(await user.ask(script({ show: 'tools' })))) as ToolDescription[]
    return new Map(shown.map((tool) => [tool.name, tool]))
  }

  test('tools are described with their effect and a schema of the input alone', async () => {
    const tools = await toolsOf(await app.user())
    assert.deepEqual(tools.get('test_move'), {
      name: 'test_move',
      description: 'Move units.',
      inputSchema: {
        type: 'object',
        properties: { units: { type: 'integer', minimum: 1 } },
        required: ['units'],
      },
      effect: 'change',
      hasDryRun: false,
    })
    const effects = ['wallets_holdings', 'policy_kill', 'market_candles'].map((name) => {
      const tool = tools.get(name)
      return [name, tool?.effect, tool?.hasDryRun]
    })
    assert.deepEqual(effects, [
      ['wallets_holdings', 'read', false],
      ['policy_kill', 'tighten', false],
      ['market_candles', 'read', false],
    ])
    for (const { name, inputSchema } of tools.values()) {
      assert.equal(inputSchema.type, 'object', name)
      for (const field of ['wait', 'idempotency_key', 'confirm_repeat'])
        assert.ok(!(field in (inputSchema.properties as object)), `${name} ${field}`)
    }
    for (const closed of ['auth_revoke', 'chat_stream', 'webhooks_create', 'policy_update'])
      assert.equal(tools.has(closed), false, closed)
  })

  test('a caller with fewer scopes has fewer tools', async () => {
    const user = await app.user()
    await app.db.query(
      `update access_token set scopes = '{read,chat}' where user_id = (select id from app_user where agent_id = $1)`,
      [user.agentId],
    )
    const tools = await toolsOf(user)
    assert.equal(tools.has('wallets_holdings'), true)
    assert.equal(tools.has('test_move'), false)
    assert.equal(tools.has('policy_kill'), false)
  })

  test('the messages of the thread before it are given, oldest first, and at most twenty', async () => {
    const user = await app.user()
    const first = await user.ask(script({ say: 'answer 0' }))
    const thread_id = threadOf(first)
    for (let at = 1; at < 12; at++) await user.ask(script({ say: `answer ${at}` }), { body: { thread_id } })
    const shown = JSON.parse(
      textOf(await user.ask(script({ show: 'history' }), { body: { thread_id } })),
    ) as PastMessage[]
    assert.equal(shown.length, 20)
    assert.deepEqual(
      shown,
      Array.from({ length: 10 }, (_, at) => [
        { role: 'user', text: script({ say: `answer ${at + 2}` }) },
        { role: 'assistant', text: `answer ${at + 2}` },
      ]).flat(),
    )
    assert.deepEqual(JSON.parse(textOf(await user.ask(script({ show: 'history' })))), [])
  })

  test('long threads are cut to their newest messages', async () => {
    const user = await app.user()
    const long = 'y'.repeat(7_900)
    const thread_id = threadOf(await user.ask(script({ say: long })))
    for (let at = 0; at < 9; at++) await user.ask(script({ say: long }), { body: { thread_id } })
    const shown = JSON.parse(
      textOf(await user.ask(script({ show: 'history' }), { body: { thread_id } })),
    ) as PastMessage[]
    const characters = shown.reduce((sum, { text }) => sum + text.length, 0)
    assert.ok(characters <= 96_000 && characters > 60_000, String(characters))
    assert.equal(shown[0]!.role, 'user')
  })

  test('a turn knows what is held for it, and costs its price where it reports no tokens', async () => {
    const user = await app.user()
    const events = await user.ask(script({ show: 'turn' }), { body: { agent: 'ProDeepResearchAgent' } })
    assert.deepEqual(JSON.parse(textOf(events)), { said: '', creditsMax: 5 })
    assert.equal(doneOf(events).credits_used, 5)
  })
})

describe('credits with a model', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ count: 1, overrides: { chatPrices: { in: '1', out: '10' } } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  const availableOf = async (user: ChatUser) =>
    (await user.get<{ credits_available: number }>('/v1/credits')).credits_available

  test('more is held, the tokens are charged, and never more than was held', async () => {
    const user = await app.user()
    let left = 200
    for (const [agent, held, usage, charge] of [
      ['ProAgent', 5, undefined, 1],
      ['ProAgent', 5, { inputTokens: 1_000, outputTokens: 100 }, 1],
      // 0.02 + 0.03 USD, of which a credit is the 60th part.
      ['ProAgent', 5, { inputTokens: 20_000, outputTokens: 3_000 }, 3],
      ['ProAgent', 5, { inputTokens: 20_000, outputTokens: 3_001 }, 4],
      ['ProAgent', 5, { inputTokens: 9_000_000, outputTokens: 0 }, 5],
      ['MarketAnalyzerAgent', 10, { inputTokens: 0, outputTokens: 10_000 }, 6],
      ['ProDeepResearchAgent', 40, { inputTokens: 0, outputTokens: 50_000 }, 30],
    ] as const) {
      const events = await user.ask(script({ show: 'turn' }, ...(usage ? [{ spend: usage }] : [])), {
        body: { agent },
      })
      assert.equal(JSON.parse(textOf(events)).creditsMax, held)
      assert.equal(doneOf(events).credits_used, charge, JSON.stringify(usage))
      left -= charge
      assert.equal(await availableOf(user), left)
    }
  })

  test('a turn that is stopped pays for what its notes have counted', async () => {
    const user = await app.user()
    const query = script({ note: 'a', usage: { inputTokens: 50_000, outputTokens: 0 } }, { hang: true })
    const events = await user.ask(query, {
      until: (event) => {
        if (event.event === 'chunk')
          void http(`${app.url}/v1/chat/${event.id!.split(':')[0]}/cancel`, {
            method: 'POST',
            headers: bearer(user),
          })
        return isEnd(event)
      },
    })
    assert.equal(doneOf(events).credits_used, 3)
  })
})
