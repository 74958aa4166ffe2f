/** Answers of a language model, in both interfaces: what it reads, what it may say, and what it may propose. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { instructions } from '#agent/model/instructions.ts'
import { bearer, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../harness/model-world.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { isEnd, Refused } from './read-chat.ts'
import { testOperations } from './test-operations.ts'

type Done = { status: string; stop_reason: string; credits_used: number; credits_remaining: number }
type Response = { type: string; data: { id: string; name: string; output: Record<string, unknown> } }
type Message = { recommendations: { id: string; action: { operation: string; input: object } }[] }

const answerOf = (events: SentEvent[]) =>
  (events.find(({ event }) => event === 'answer')?.data ?? {}) as {
    text: string
    citations: { tool: string; pointer: string }[]
  }
const doneOf = (events: SentEvent[]) => events.at(-1)!.data as Done
const responsesOf = (events: SentEvent[]) =>
  events.flatMap(({ event, data }) => (event === 'tool_response' ? [data as Response] : []))

for (const api of ['openai', 'anthropic'] as const)
  describe(`a chat with a model behind the interface of ${api}`, () => {
    let world: ModelWorld
    let app: ChatApp
    before(async () => {
      world = await openModelWorld()
      app = await openChatApp({
        answerer: 'product',
        urls: { model: world.url },
        env: { MODEL_API: api, MODEL_PRICE_IN: '1', MODEL_PRICE_OUT: '10' },
        overrides: { addOperations: testOperations },
      })
    })
    afterEach(() => world.reset())
    after(async () => {
      await app?.[Symbol.asyncDispose]()
      await world?.[Symbol.asyncDispose]()
    })

    let scripts = 0
    /** What the model answers to questions with these words. */
    const answers = (contains: string, ...turns: object[][]) =>
      world.control('PUT', '/model/scripts', { name: `s-${++scripts}`, contains, turns })
    const free = { type: 'usage', input: 10, output: 10 }
    const calls = (...names: (string | object)[]) =>
      tools(names.map((each) => (typeof each === 'string' ? { name: each, arguments: {} } : each)))
    const move = (units: unknown) => ({ name: 'test_move', arguments: { units } })
    const proposalsOf = async (user: ChatUser, events: SentEvent[]) => {
      const chatId = events[0]!.id!.split(':')[0]!
      const messages = await user.get<Message[]>(`/v1/chat/threads/${chatId}`)
      return { chatId, recommendations: messages.at(-1)!.recommendations }
    }

    test('a question is answered from tools, its figures have their sources, and no text enters the instructions', async () => {
      const user = await app.user()
      await answers(
        'packs',
        [text('Let me look.'), calls('credits_packs')],
        [text('A pack of 5 USD has 300 credits.'), free],
      )
      const events = await user.ask('which credit packs are there?')
      const { text: said, citations } = answerOf(events)
      assert.equal(said, 'Let me look.\n\nA pack of 5 USD has 300 credits.')
      assert.deepEqual(
        citations.map(({ tool, pointer }) => [tool, pointer]),
        [
          ['credits_packs', '/packs/0/pack_id'],
          ['credits_packs', '/packs/0/credits'],
        ],
      )
      assert.deepEqual(doneOf(events).status, 'completed')
      const [first, second, ...others] = await world.requests()
      assert.deepEqual(others, [])
      for (const request of [first!, second!]) {
        const messages = request.messages as { role: string; content: string }[]
        const own = api === 'openai' ? messages[0]!.content : request.system
        assert.equal(own, instructions)
        assert.equal(messages.filter(({ role }) => role === 'system').length, api === 'openai' ? 1 : 0)
        assert.ok((request.tools as object[]).length <= 16)
      }
      assert.match(JSON.stringify(second), /untrusted\\*":true/)
    })

    test('a number that is in no result is asked for again, and marked where it comes again', async () => {
      const user = await app.user()
      const first = [calls('credits_packs')]
      const wrong = [text('The first has 300 credits. The next has 777 credits. More later.')]
      await answers('cheap packs', first, wrong)
      await answers('in no result of a tool: 777', [text('The next has 650 credits. More later.')])
      const right = await user.ask('cheap packs?')
      assert.equal(
        answerOf(right).text,
        'The first has 300 credits.\n\nThe next has 650 credits. More later.',
      )
      await answers('in no result of a tool: 777', [text('The next has 778 credits.')])
      const marked = await user.ask('cheap packs?')
      assert.equal(
        answerOf(marked).text,
        'The first has 300 credits.\n\nThe next has 778 credits (unverified).',
      )
    })

    test('numbers of the user, and what is calculated from known ones, are known', async () => {
      const user = await app.user()
      const sum = { name: 'calculate', arguments: { operation: 'product', a: '300', b: '7' } }
      const foreign = { name: 'calculate', arguments: { operation: 'sum', a: '123', b: '1' } }
      await answers(
        'times 7',
        [calls('credits_packs')],
        [calls(sum, foreign)],
        [text('7 packs have 2,100 credits, or 124.')],
      )
      await answers('no result of a tool: 124', [text('7 packs have 2,100 credits.')])
      const events = await user.ask('a pack times 7?')
      assert.equal(answerOf(events).text, '7 packs have 2,100 credits.')
    })

    test('what would change something is recommended with exactly its input, and done once it is accepted', async () => {
      const user = await app.user()
      await answers('move', [calls(move(3))], [text('I have proposed it.')])
      const events = await user.ask('please move 3')
      const { chatId, recommendations } = await proposalsOf(user, events)
      assert.deepEqual(
        recommendations.map(({ action }) => [action.operation, action.input]),
        [['test_move', { units: 3 }]],
      )
      assert.match(answerOf(events).text, /^I have proposed it\.\n\nIt waits for you/)
      const path = `${app.url}/v1/chat/${chatId}/recommendations/${recommendations[0]!.id}`
      const accepted = await http(path, {
        method: 'PATCH',
        body: { status: 'accepted' },
        headers: bearer(user),
      })
      assert.equal(accepted.status, 200)
      const { items } = await user.get<{ items: object[] }>('/v1/tasks?kind=test_move')
      assert.equal(items.length, 1)
    })

    test('once a model has read what strangers wrote, it proposes nothing that the user has not asked for', async () => {
      const user = await app.user()
      const list = { name: 'test_list', arguments: { rows: 2 } }
      await answers('rows', [calls(list)], [calls(move(3))], [text('No.')])
      const events = await user.ask('test: list the rows')
      const denied = responsesOf(events).at(-1)!
      assert.deepEqual(
        [denied.type, denied.data.name, denied.data.output.code],
        ['error', 'test_move', 'policy_denied'],
      )
      assert.deepEqual((await proposalsOf(user, events)).recommendations, [])
      // What a model wrote before is such a text too.
      await answers('move it', [calls(move(3))], [text('No.')])
      const { thread_id } = events[0]!.data as { thread_id: string }
      const later = await user.ask('test: now move it', { body: { thread_id } })
      assert.equal(responsesOf(later)[0]!.data.output.code, 'policy_denied')
      // The kill switch asks for the words of the user in any case.
      await answers('hello', [calls({ name: 'policy_kill', arguments: { on: true } })], [text('Hello.')])
      const killed = await user.ask('hello, what of the policy and its kill switch?')
      assert.equal(responsesOf(killed)[0]?.data.output.code, 'policy_denied')
    })

    test('at most three recommendations, whatever the model asks for', async () => {
      const user = await app.user()
      await answers('moves', [calls(...[1, 2, 3, 4, 5].map(move))], [text('Done.')])
      const events = await user.ask('test moves')
      assert.equal((await proposalsOf(user, events)).recommendations.length, 3)
    })

    test('unknown tools and malformed arguments go back to the model, and nobody else sees them', async () => {
      const user = await app.user()
      const malformed = { name: 'wallets_holdings', arguments_text: '{"a": ' }
      const wrong = { name: 'test_move', arguments: { units: 0, to: 'me' } }
      await answers('test', [calls('auth_revoke', malformed, wrong)], [text('That did not work.')])
      const events = await user.ask('test it')
      assert.deepEqual(
        responsesOf(events).map(({ data }) => [data.name, data.output.code]),
        [['test_move', 'validation']],
      )
      const [, second] = await world.requests()
      const sent = JSON.stringify(second!.messages)
      assert.match(sent, /There is no tool of this name/)
      assert.match(sent, /no valid JSON/)
      assert.equal(answerOf(events).text, 'That did not work.')
      assert.deepEqual((await proposalsOf(user, events)).recommendations, [])
    })

    test('a link, an image and a hidden sign of a model do not reach the reader', async () => {
      const user = await app.user()
      await answers('links', [
        text(
          'See ![x](https://evil.example/a.png?q=secret), [this](http://evil.example) or //evil.example/b and www.evil.example. A\u200bB <img src=x>.',
        ),
      ])
      const { text: said } = answerOf(await user.ask('any links?'))
      assert.doesNotMatch(said, /evil|\u200b|<img|!\[/)
      assert.match(said, /See x, this or \(link removed\)/)
    })

    test('the turn costs its tokens, at least its price, and no more than is held', async () => {
      const user = await app.user()
      let left = 200
      for (const [input, output, charge] of [
        [100, 100, 1],
        [20_000, 3_000, 3],
        [900_000, 0, 5],
      ] as const) {
        await answers('tokens', [text('Yes.'), { type: 'usage', input, output }])
        const events = await user.ask('tokens?')
        left -= charge
        assert.deepEqual([doneOf(events).credits_used, doneOf(events).credits_remaining], [charge, left])
      }
      // Without a count of the endpoint the tokens are estimated.
      await answers('tokens', [text('Yes.'), { type: 'usage', absent: true }])
      assert.equal(doneOf(await user.ask('tokens?')).credits_used, 1)
      assert.equal(await ledgerDrift(app.db), 0)
    })

    test('less is held of a user who has less; below the price a turn is refused; a step beyond it ends with credits', async () => {
      const [poor, none] = [await app.user(), await app.user()]
      await app.leaveCredits(poor, 2)
      await app.leaveCredits(none, 0)
      await answers(
        'tokens',
        [calls('credits_packs'), { type: 'usage', input: 33_000, output: 0 }],
        [text('No.')],
      )
      const events = await poor.ask('tokens?')
      assert.deepEqual([doneOf(events).stop_reason, doneOf(events).credits_used], ['credits', 2])
      assert.match(answerOf(events).text, /credits that are held for it are used up/)
      assert.equal((await world.requests()).length, 1)
      await assert.rejects(
        none.ask('tokens?'),
        (error: unknown) => error instanceof Refused && error.status === 402,
      )
    })

    test('a model that calls without an end is stopped', async () => {
      const user = await app.user()
      await world.control('PUT', '/model/scripts', {
        name: 'endless',
        contains: 'endless',
        turns: [[calls('credits_packs', 'credits_packs', 'credits_packs'), free]],
        repeat: true,
      })
      const events = await user.ask('endless credits')
      assert.equal(doneOf(events).stop_reason, 'length')
      assert.equal((await world.requests()).length, 12)
      assert.equal(responsesOf(events).length, 24)
    })

    test('an instance that dies in mid-answer: what was said stays, the rest follows, and each step is asked for once', async () => {
      const user = await app.user()
      const words = Array.from({ length: 12 }, (_, at) => `Sentence ${'abcdefghijkl'[at]}.`).join(' ')
      await answers('slow', [calls('credits_packs'), free], [text(words, { pace_ms: 60 }), free])
      let isTaken = false
      const events = await user.ask('slow packs', {
        until: (event) => {
          if (
            event.event === 'chunk' &&
            !isTaken &&
            String((event.data as { text: string }).text).includes('c.')
          ) {
            isTaken = true
            void app.takeOver(event.id!.split(':')[0]!)
          }
          return isEnd(event)
        },
      })
      assert.ok(isTaken)
      assert.equal(answerOf(events).text, words)
      assert.equal(responsesOf(events).length, 1)
      const requests = (await world.requests()).map((request) => JSON.stringify(request.messages))
      // The first step was noted; the second one was asked for again, with what it had said.
      assert.equal(requests.length, 3)
      assert.ok(requests[2]!.includes('Sentence a.'), requests[2])
    })
  })
