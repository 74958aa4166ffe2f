/** Each fault of a model endpoint at each place of a turn: the stream stays well-formed, nothing comes twice, credits are right. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ledgerDrift } from '../harness/ledger.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../harness/model-world.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { testOperations } from './test-operations.ts'

const list = { name: 'test_list', arguments: { rows: 1 } }
const move = { name: 'test_move', arguments: { units: 3 } }

/** `away`: the endpoint answers nothing that could be used. */
const faults: Record<string, { steps: object[]; isAway?: boolean }> = {
  'an error 503': { steps: [{ type: 'fail', status: 503, times: 1_000 }], isAway: true },
  'a limit that asks for a long pause': {
    steps: [{ type: 'fail', status: 429, times: 1_000, retry_after_seconds: 900 }],
    isAway: true,
  },
  'a wrong key': { steps: [{ type: 'fail', status: 401, times: 1_000 }], isAway: true },
  'a page of HTML': { steps: [{ type: 'fail', status: 502, times: 1_000, html: true }], isAway: true },
  'a connection that is reset': { steps: [{ type: 'reset' }], isAway: true },
  'a body without an end': { steps: [{ type: 'close' }], isAway: true },
  'an error event': { steps: [{ type: 'error', status: 500 }], isAway: true },
  'bytes that are no event': { steps: [{ type: 'raw', text: 'data: {"a\n\n' }], isAway: true },
  'an answer of nothing': { steps: [], isAway: true },
  'a call that is cut': {
    steps: [tools([{ name: 'test_list', arguments_text: '{"rows": ' }]), { type: 'stop', reason: 'length' }],
  },
  'ids and indexes that are the same': {
    steps: [
      tools([
        { ...list, id: 'same', index: 0 },
        { ...list, id: 'same', index: 0 },
      ]),
    ],
  },
  'calls in pieces of each other': { steps: [tools([list, list], { interleave: true, piece: 2 })] },
  'text after a call': { steps: [tools([list]), text('Then this.')] },
  'an answer that is too long': { steps: [text('Long.'), { type: 'stop', reason: 'length' }] },
  'a refusal': { steps: [{ type: 'refusal', text: 'I cannot say that.' }] },
  'no count of tokens': { steps: [text('Fine.'), { type: 'usage', absent: true }] },
  'a text of 100,000 characters': { steps: [text('Word after word. '.repeat(6_000), { piece: 20_000 })] },
  'bytes one by one': { steps: [text('Héllo wörld.'), { type: 'wire', line_end: 'crlf', split_bytes: 1 }] },
}
/** What comes before the fault. */
const places: Record<string, { turns: object[][]; isSaid: boolean; proposals: number }> = {
  'at once': { turns: [[]], isSaid: false, proposals: 0 },
  'in mid-answer': { turns: [[text('It begins. And ')]], isSaid: true, proposals: 0 },
  'after a result': { turns: [[tools([list])], []], isSaid: false, proposals: 0 },
  'after a recommendation': { turns: [[tools([move])], []], isSaid: false, proposals: 1 },
}

describe('faults of a model endpoint', () => {
  let world: ModelWorld
  const apps: ChatApp[] = []
  before(async () => {
    world = await openModelWorld()
    for (const MODEL_API of ['openai', 'anthropic'])
      apps.push(
        await openChatApp({
          count: 1,
          answerer: 'product',
          urls: { model: world.url },
          env: { MODEL_API },
          overrides: { addOperations: testOperations },
        }),
      )
  })
  after(async () => {
    for (const app of apps) await app[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
  })

  const dataOf = <T>({ data }: SentEvent) => data as T
  let scripts = 0

  for (const [at, [fault, { steps, isAway = false }]] of Object.entries(faults).entries())
    test(fault, async () => {
      for (const [place, { turns, isSaid, proposals }] of Object.entries(places)) {
        // A status comes before any text.
        if (isSaid && steps.some((step) => 'type' in step && step.type === 'fail')) continue
        const app = apps[(at + scripts) % 2]!
        const user = await app.user()
        const scripted = turns.map((turn, n) => (n === turns.length - 1 ? [...turn, ...steps] : turn))
        const rest = [text('That is all.')]
        const script = { name: `f-${++scripts}`, contains: 'test it', turns: [...scripted, rest] }
        await world.control('PUT', '/model/scripts', script)
        const events = await user.ask('test it')
        const names = events.map(({ event }) => event)
        assert.deepEqual(
          events.map(({ id }) => id?.split(':')[1]),
          events.map((_, n) => String(n + 1)),
          place,
        )
        assert.equal(names[0], 'meta')
        assert.equal(events.filter(isEnd).length, 1, place)
        assert.equal(names.at(-1), 'done', `${place}: ${JSON.stringify(events.at(-1))}`)
        const chunks = events
          .filter(({ event }) => event === 'chunk')
          .map((event) => dataOf<{ text: string }>(event).text)
        assert.equal(dataOf<{ text: string }>(events.at(-2)!).text, chunks.join(''), place)
        const calls = events.filter(({ event }) => event === 'tool_call').length
        assert.equal(names.filter((name) => name === 'tool_response').length, calls, place)
        // Nothing comes twice: the grammar takes over only where nothing was said or proposed.
        const chatId = events[0]!.id!.split(':')[0]
        const messages = await user.get<{ recommendations: object[] }[]>(`/v1/chat/threads/${chatId}`)
        assert.equal(messages.at(-1)!.recommendations.length, proposals, place)
        const planned = events.flatMap((event) =>
          event.event === 'planning' ? [dataOf<{ data: { id: string } }>(event).data.id] : [],
        )
        assert.equal(planned.includes('fallback'), isAway && !isSaid && proposals === 0, place)
        if (isSaid && isAway && steps.length > 0) {
          assert.match(chunks.join(''), /^It begins\./, place)
          assert.match(chunks.join(''), /The answer ends here/, place)
        }
        const done = dataOf<{ credits_used: number; credits_remaining: number }>(events.at(-1)!)
        assert.ok(done.credits_used >= 1 && done.credits_used <= 5, place)
        assert.equal(done.credits_remaining, 200 - done.credits_used, place)
        const { credits_available } = await user.get<{ credits_available: number }>('/v1/credits')
        assert.equal(credits_available, done.credits_remaining, place)
      }
      for (const app of apps) assert.equal(await ledgerDrift(app.db), 0)
    })
})
