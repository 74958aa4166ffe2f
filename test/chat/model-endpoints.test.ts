/** What real endpoints of models do beside their documents, and what an answer costs where they do not answer. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { ledgerDrift } from '../harness/ledger.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../harness/model-world.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { testOperations } from './test-operations.ts'

type Done = { status: string; stop_reason: string; credits_used: number }
const textOf = (events: SentEvent[]) =>
  (events.find(({ event }) => event === 'answer')?.data as { text: string } | undefined)?.text ?? ''
const doneOf = (events: SentEvent[]) => {
  const last = events.at(-1)!
  assert.equal(last.event, 'done', JSON.stringify(last))
  return last.data as Done
}
const outputsOf = (events: SentEvent[]) =>
  events.flatMap(({ event, data }) =>
    event === 'tool_response' ? [(data as { data: { output: Record<string, unknown> } }).data.output] : [],
  )

for (const api of ['openai', 'anthropic'] as const)
  describe(`endpoints behind the interface of ${api}`, () => {
    let world: ModelWorld
    let app: ChatApp
    before(async () => {
      world = await openModelWorld()
      app = await openChatApp({
        count: 1,
        answerer: 'product',
        urls: { model: world.url },
        env: { MODEL_API: api, MODEL_PRICE_IN: '5', MODEL_PRICE_OUT: '5' },
        overrides: { addOperations: testOperations },
      })
    })
    afterEach(() => world.reset())
    after(async () => {
      await app?.[Symbol.asyncDispose]()
      await world?.[Symbol.asyncDispose]()
    })

    let scripts = 0
    const free = { type: 'usage', input: 10, output: 10 }
    const answers = (contains: string, ...turns: object[][]) =>
      world.control('PUT', '/model/scripts', { name: `s-${++scripts}`, contains, turns })

    test('a name that the model has invented is sent back in a form that the endpoint takes', async () => {
      const user = await app.user()
      const invented = tools([
        { name: 'functions.credits packs', arguments: {} },
        { name: 'x'.repeat(90), arguments: {} },
      ])
      await answers('invented', [invented], [text('There is none.')])
      assert.equal(textOf(await user.ask('invented?')), 'There is none.')
    })

    test('a model that continues no text of its own is asked with words of a user', async () => {
      const user = await app.user()
      await world.control('PUT', '/model/settings', { refuses_prefix: true })
      await answers('break off', [text('It begins. And '), { type: 'reset' }])
      await answers('was cut off', [text('And it goes on.')])
      for (const _ of [1, 2]) assert.equal(textOf(await user.ask('break off')), 'It begins. And it goes on.')
      // The refusal is learned: the second answer has no request more than it needs.
      assert.equal((await world.requests()).length, 5)
    })

    test('an endpoint that refuses has counted no tokens, and none are charged', async () => {
      const user = await app.user()
      for (const step of [
        { type: 'fail', status: 400, times: 9 },
        { type: 'fail', status: 503, times: 9 },
      ]) {
        await answers('credits', [step])
        const done = doneOf(await user.ask(`${'long words '.repeat(700)} credits?`))
        assert.equal(done.credits_used, 1, JSON.stringify(step))
      }
      assert.equal(await ledgerDrift(app.db), 0)
    })

    test('an answer and arguments of any length and any characters end in an answer', async () => {
      const user = await app.user()
      await answers('long answer', [text('价格很好。'.repeat(24_000), { piece: 20_000 })])
      assert.match(textOf(await user.ask('a long answer')), /^价格很好。/)
      const call = (arguments_text: string) => [
        tools([{ name: 'test_move', arguments_text }], { piece: 9_000 }),
        free,
      ]
      for (const given of [
        '{"units":1,"\\u0000":"\\u0000"}',
        '{"units":1,"\\ud800":1}',
        `{"units":1,"to":"${'价'.repeat(100_000)}"}`,
      ]) {
        await answers('arguments', call(given), [text('It is refused.')])
        assert.equal(textOf(await user.ask('test the arguments')), 'It is refused.', given.slice(0, 40))
      }
    })

    test('a research whose model calls as much as it can ends with what it has', async () => {
      const user = await app.user()
      const sixteen = tools(Array.from({ length: 16 }, () => ({ name: 'chains_list', arguments: {} })))
      await world.control('PUT', '/model/scripts', {
        name: 'endless',
        contains: 'endless',
        turns: [[sixteen, free]],
        repeat: true,
      })
      const events = await user.ask('endless', { body: { agent: 'ProDeepResearchAgent' } })
      assert.equal(doneOf(events).status, 'completed')
      assert.equal(outputsOf(events).length, 24)
    })
  })
