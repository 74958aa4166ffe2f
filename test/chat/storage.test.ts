/** What chats read however many there are, and what is left of them after 90 days. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { recommendationsOf } from '#features/chat/decide-recommendation.ts'
import { chatRetentionJob, eventDeletionSql } from '#features/chat/retention.ts'
import * as store from '#features/chat/store.ts'
import { query } from '#store/query.ts'
import { blocksOf } from '../harness/plan-blocks.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'

const day = 86_400_000
const user = '01900000-0000-7000-8000-00000000abcd'
const idOf = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`

describe('chats in the database', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ count: 1 })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  test('reads take a bounded part of the tables', async () => {
    const id = (n: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
    const turns = 40_000
    await app.db.query(
      `insert into chat_turn select ${id('n')}, ${id('n / 4')}, case when n < 4000 then $1::uuid else ${id('n % 997')} end,
         'ProAgent', 'q', '{}', 'completed', 'a', 'done', '{}', 3, 1, now(), now(), now() from generate_series(1, ${turns}) n`,
      [user],
    )
    await app.db.query(
      `insert into chat_thread select ${id('n')}, case when n < 1000 then $1::uuid else ${id('n % 997')} end, 't', 'ProAgent',
         'm', 8, null, now(), now() - make_interval(secs => n) from generate_series(1, ${turns / 4}) n`,
      [user],
    )
    await app.db.query(
      `insert into chat_event select ${id('n')}, s, 1, 'tool_call', '{"data": {"id": "x"}}', 30
       from generate_series(1, ${turns}) n, generate_series(1, 4) s`,
    )
    await app.db.query(
      `insert into chat_recommendation select ${id('n')}, ${id('n')}, 'c', $1, 't', 'd', 'o', '{}', 'h', 'open', null, null,
         now(), now(), now() from generate_series(1, ${turns / 4}) n`,
      [user],
    )
    await app.db.query('vacuum analyze chat_turn, chat_thread, chat_event, chat_recommendation')
    const chat = idOf(turns / 2)
    const thread = idOf(turns / 8)
    const ofThread = [0, 1, 2, 3].map((n) => idOf(turns / 2 + n))
    const reads: Record<string, [(db: never) => Promise<unknown>, number]> = {
      turn: [(db) => store.findTurn(db, chat), 8],
      threads: [(db) => store.threadsOf(db, user, { skip: 20, limit: 10 }), 60],
      'a thread by a message': [(db) => store.findThread(db, user, chat), 16],
      'the turns of a thread': [(db) => store.turnsOf(db, thread), 16],
      'the size of a thread': [(db) => store.sizeOfThread(db, thread), 16],
      'the events of a turn': [(db) => store.eventsAfter(db, chat, 1, 200), 12],
      'the newest events': [(db) => store.newestEvents(db, ofThread, { events: 100, bytes: 10_000 }), 40],
      progress: [(db) => store.progressOf(db, ofThread), 40],
      'what was said': [(db) => store.spokenOf(db, chat), 12],
      recommendations: [(db) => recommendationsOf(db, ofThread), 24],
      'the oldest events': [(db) => query(db, eventDeletionSql, [idOf(0), 1_000]), 12],
    }
    for (const [name, [read, max]] of Object.entries(reads)) {
      const blocks = await blocksOf(app.db, (db) => read(db as never))
      for (const each of blocks) assert.ok(each <= max, `${name} reads ${each} blocks`)
    }
  })

  test('after 90 days an answer is read from its row, by the same key', async () => {
    const asker = await app.user()
    const question = script({ call: 'credits_packs' }, { say: 'Packs.' })
    const events = await asker.ask(question, { key: 'old' })
    const later = { now: () => new Date(Date.now() + 91 * day) }
    const job = chatRetentionJob(app.db, later)
    while (await job.runBatch());
    const { rows } = await app.db.query('select 1 from chat_event')
    assert.equal(rows.length, 0)
    const again = await asker.ask(question, { key: 'old' })
    assert.deepEqual(
      again.map(({ event, id }) => [event, id]),
      events.slice(-2).map(({ event, id }) => [event, id]),
    )
    assert.deepEqual(again.at(-1), events.at(-1))
    assert.equal((again[0]!.data as { text: string }).text, 'credits_packs ok. Packs.')
    const rest = await asker.ask(question, { key: 'old', lastId: events.at(-2)!.id! })
    assert.deepEqual(rest, events.slice(-1))
    const chatId = events[0]!.id!.split(':')[0]
    const messages = await asker.get<{ answer: string }[]>(`/v1/chat/threads/${chatId}`)
    assert.equal(messages[1]?.answer, 'credits_packs ok. Packs.')
  })

  test('a turn that runs has its results beside its events, and none afterwards', async () => {
    const asker = await app.user()
    await asker.ask(script({ call: 'credits_packs' }, { say: 'a' }))
    const { rows } = await app.db.query('select 1 from chat_call')
    assert.deepEqual(rows, [])
  })
})
