import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, http } from '../harness/gateway.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { script } from './scripted-answerer.ts'

type Data = Record<string, unknown> & { text?: string; chat_id?: string; thread_id?: string }
const dataOf = ({ data }: SentEvent) => data as Data
const names = (events: SentEvent[]) => events.map(({ event }) => event)
/** Pieces that waited for the same commit are one event. */
const namesOnce = (events: SentEvent[]) =>
  names(events).filter((name, at, all) => name !== 'chunk' || all[at - 1] !== name)
const textOf = (events: SentEvent[]) =>
  events
    .filter(({ event }) => event === 'chunk')
    .map((event) => dataOf(event).text)
    .join('')

describe('the stream of an answer', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp()
  })
  after(async () => app?.[Symbol.asyncDispose]())

  test('meta comes first and done last, events are numbered without a gap, and the answer is its chunks', async () => {
    const user = await app.user()
    const events = await user.ask(
      script(
        { plan: 'Look up credits' },
        { call: 'credits_available' },
        { say: 'You have ' },
        { say: 'some.' },
      ),
    )
    assert.deepEqual(namesOnce(events), [
      'meta',
      'planning',
      'tool_call',
      'tool_response',
      'chunk',
      'answer',
      'done',
    ])
    const { chat_id } = dataOf(events[0]!)
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, at) => `${chat_id}:${at + 1}`),
    )
    assert.equal(dataOf(events.at(-2)!).text, textOf(events))
    assert.deepEqual(dataOf(events.at(-1)!), {
      chat_id,
      status: 'completed',
      stop_reason: 'end',
      credits_used: 1,
      credits_remaining: 199,
    })
    assert.equal((await user.get<{ credits_available: number }>('/v1/credits')).credits_available, 199)
  })

  test('the same key reads the same answer again, from any event and on any instance, and costs nothing', async () => {
    const user = await app.user()
    const query = script({ plan: 'one' }, { spell: 'abcdef' })
    const whole = await user.ask(query, { key: 'again' })
    for (const [at, { id }] of whole.entries()) {
      const { url } = app.instances[at % 2]!
      const rest = await user.ask(query, { key: 'again', url, lastId: id! })
      assert.deepEqual(rest, whole.slice(at + 1))
    }
    assert.deepEqual(await user.ask(query, { key: 'again', url: app.instances[1]!.url }), whole)
    assert.equal((await user.get<{ credits_available: number }>('/v1/credits')).credits_available, 199)
  })

  test('a cut at every event, and a return on either instance, leave no gap and nothing twice', async () => {
    const user = await app.user()
    const query = script({ plan: 'one' }, { call: 'credits_packs' }, { spell: 'abcdefgh', everyMs: 3 })
    const wanted = await user.ask(query)
    assert.equal(textOf(wanted), 'credits_packs ok. abcdefgh')
    for (let cut = 1; cut < wanted.length; cut++) {
      const key = `cut-${cut}`
      const got = await user.ask(query, { key, until: (_, all) => all.length === cut })
      while (!isEnd(got.at(-1)!)) {
        const { url } = app.instances[got.length % 2]!
        got.push(
          ...(await user.ask(query, {
            key,
            url,
            lastId: got.at(-1)!.id!,
            until: (_, all) => all.length === 2,
          })),
        )
      }
      assert.deepEqual(namesOnce(got), namesOnce(wanted))
      assert.deepEqual(
        got.map(({ id }) => id?.split(':')[1]),
        got.map((_, at) => String(at + 1)),
      )
      assert.equal(textOf(got), textOf(wanted))
    }
  })

  test('an instance whose claim was lost adds nothing, and the answer goes on under the next claim', async () => {
    const user = await app.user()
    const letters = 'abcdefghijklmnopqrstuvwxyz'.repeat(3)
    const query = script({ call: 'credits_packs' }, { spell: letters, everyMs: 20 })
    const isStored: Promise<boolean>[] = []
    const findEvent = async (id: string) => {
      const text = 'select seq from chat_event where chat_id = $1 and seq = $2'
      return (await app.db.query(text, id.split(':'))).rowCount === 1
    }
    const events = await user.ask(query, {
      until: (event, all) => {
        isStored.push(findEvent(event.id!))
        // For a while nobody runs it, so that what the former instance goes on to say would be seen.
        if (all.length === 20)
          void app.db.query(
            `with lost as (update task set version = version + 1 where id = $1)
             update task_queue set owner = null, run_at = now() + interval '700 milliseconds' where task_id = $1`,
            [event.id!.split(':')[0]],
          )
        return isEnd(event)
      },
    })
    assert.deepEqual(
      (await Promise.all(isStored)).map((found, at) => [at + 1, found]),
      events.map((_, at) => [at + 1, true]),
    )
    assert.deepEqual(
      events.map(({ id }) => id?.split(':')[1]),
      events.map((_, at) => String(at + 1)),
    )
    assert.equal(textOf(events), `credits_packs ok. ${letters}`)
    assert.deepEqual(names(events).filter((name) => name === 'tool_call').length, 1)
    assert.equal((await user.get<{ credits_available: number }>('/v1/credits')).credits_available, 199)
  })

  test('stream: false answers with JSON, also under the key of a stream', async () => {
    const user = await app.user()
    const query = script({ say: 'Yes.' })
    const events = await user.ask(query, { key: 'both' })
    const { body } = await http(`${app.url}/v1/chat`, {
      method: 'POST',
      body: { query, stream: false },
      headers: { ...bearer(user), 'idempotency-key': 'both' },
    })
    const { chat_id, thread_id } = dataOf(events[0]!)
    assert.deepEqual(body, {
      chat_id,
      thread_id,
      status: 'completed',
      agent: 'ProAgent',
      answer: 'Yes.',
      stop_reason: 'end',
      recommendations: [],
      files: [],
      credits_used: 1,
      credits_remaining: 199,
      error: null,
      idempotency_key: 'both',
    })
  })

  test('a wrong Last-Event-ID is an error of the request', async () => {
    const user = await app.user()
    await assert.rejects(user.ask(script({ say: 'a' }), { lastId: 'elsewhere:3' }), { status: 422 })
  })

  test('an answerer that fails gives an error, once and last, and the credits back', async () => {
    const user = await app.user()
    for (const fail of ['fault', 'bug'] as const) {
      const events = await user.ask(script({ say: 'Well' }, { fail }))
      assert.deepEqual(names(events), ['meta', 'chunk', 'error'])
      assert.equal(dataOf(events[2]!).code, fail === 'fault' ? 'conflict' : 'internal')
      const { thread_id, chat_id } = dataOf(events[0]!)
      const messages = await user.get<{ status: string; answer: string }[]>(`/v1/chat/threads/${thread_id}`)
      assert.deepEqual([messages[1]?.status, messages[1]?.answer], ['failed', 'Well'])
      assert.deepEqual(messages, await user.get(`/v1/chat/threads/${chat_id}`))
    }
    assert.equal((await user.get<{ credits_available: number }>('/v1/credits')).credits_available, 200)
  })

  test('a thread goes on with its id or that of a message, and remembers', async () => {
    const user = await app.user()
    const first = await user.ask(script({ remember: { asset: 'ETH' } }, { say: 'Noted.' }))
    const { thread_id, chat_id } = dataOf(first[0]!)
    const second = await user.ask(script({ recall: true }), { body: { thread_id } })
    const third = await user.ask(script({ recall: true }), { body: { thread_id: chat_id } })
    assert.equal(textOf(second), '{"asset":"ETH"}')
    assert.equal(textOf(third), '{"asset":"ETH"}')
    const [thread, ...others] =
      await user.get<{ thread_id: string; message_count: number; last_message: string }[]>('/v1/chat/threads')
    assert.equal(others.length, 0)
    assert.deepEqual(
      [thread?.thread_id, thread?.message_count, thread?.last_message],
      [thread_id, 6, '{"asset":"ETH"}'],
    )
    const stranger = await app.user()
    await assert.rejects(stranger.ask(script({ say: 'a' }), { body: { thread_id } }), { status: 404 })
  })

  test('a cancel stops an answer, which keeps what it said and costs what it used', async () => {
    const user = await app.user()
    const query = script({ say: 'Part' }, { hang: true })
    const cancel = async (chat_id: string) =>
      http(`${app.instances[1]!.url}/v1/chat/${chat_id}/cancel`, { method: 'POST', headers: bearer(user) })
    const events = await user.ask(query, {
      until: (event) => {
        if (event.event === 'chunk') void cancel(event.id!.split(':')[0]!)
        return isEnd(event)
      },
    })
    assert.deepEqual(names(events), ['meta', 'chunk', 'answer', 'done'])
    const { chat_id, status, credits_used } = dataOf(events[3]!)
    assert.deepEqual([status, credits_used, dataOf(events[2]!).text], ['cancelled', 1, 'Part'])
    assert.equal((await cancel(chat_id!)).status, 200, 'again')
    const stranger = await app.user()
    const refused = await http(`${app.url}/v1/chat/${chat_id}/cancel`, {
      method: 'POST',
      headers: bearer(stranger),
    })
    assert.equal(refused.status, 404)
    await user.get(`/v1/chat/${chat_id}/files`)
    await assert.rejects(stranger.get(`/v1/chat/${chat_id}/files`), /404/)
  })
})

describe('an answer that nobody listens to', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { chatGraceMs: 4_000 } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  test('goes on for a while, and is cancelled then', async () => {
    const user = await app.user()
    const [meta] = await user.ask(script({ say: 'Part' }, { hang: true }), {
      until: ({ event }) => event === 'chunk',
    })
    const { thread_id } = dataOf(meta!)
    const message = await eventually(async () => {
      const [, answer] = await user.get<{ status: string; answer: string }[]>(`/v1/chat/threads/${thread_id}`)
      return answer?.status === 'running' ? undefined : answer
    }, 'the end of the answer')
    assert.deepEqual([message.status, message.answer], ['cancelled', 'Part'])
  })

  test('goes on for a while where its instance died, however long nobody could listen', async () => {
    const user = await app.user()
    const victim = await app.add()
    const query = script({ say: 'a' }, { spell: 'x'.repeat(260), everyMs: 25 })
    const key = 'died'
    const first = await user.ask(query, { key, url: victim.url, until: (_, all) => all.length === 5 })
    const chatId = first[0]!.id!.split(':')[0]!
    // As after a restart that took long.
    await app.db.query(`update chat_turn set listened_at = now() - interval '1 hour' where chat_id = $1`, [
      chatId,
    ])
    await victim[Symbol.asyncDispose]()
    await eventually(async () => {
      const { rows } = await app.db.query('select 1 from chat_event where chat_id = $1', [chatId])
      return rows.length > 65
    }, 'the answer goes on')
    const rest = await user.ask(query, { key, lastId: first.at(-1)!.id! })
    assert.equal(dataOf(rest.at(-1)!).status, 'completed')
    assert.equal(textOf([...first, ...rest]), `a${'x'.repeat(260)}`)
  })

  test('goes on while a stream of another instance listens', async () => {
    const user = await app.user()
    const query = script({ say: 'a' }, { spell: 'x'.repeat(260), everyMs: 25 })
    const elsewhere = Promise.withResolvers<SentEvent[]>()
    // It stays until the other stream has begun.
    const first = await user.ask(query, {
      key: 'elsewhere',
      until: ({ event }, all) => {
        const { url } = app.instances[1]!
        if (all.length === 1) void user.ask(query, { key: 'elsewhere', url }).then(elsewhere.resolve)
        return event === 'chunk' && all.length === 20
      },
    })
    const rest = await elsewhere.promise
    assert.deepEqual(rest.slice(0, first.length), first)
    assert.equal(dataOf(rest.at(-1)!).status, 'completed')
  })
})
