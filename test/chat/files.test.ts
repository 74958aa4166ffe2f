/** The files of an answer: who gets them, how many there may be, and what a repetition of the answer does to them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ClaimLost } from '#features/chat/event-writer.ts'
import { createPublish, filesOf } from '#features/chat/turn-files.ts'
import { bearer, http } from '../harness/gateway.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'

type File = {
  file_id: string
  name: string
  content_type: string
  size: number
  url: string
  expires_at: string
}
type Files = { chat_id: string; files: File[] }

const mebibyte = 1_048_576
const idOf = (events: SentEvent[]): string => events[0]!.id!.split(':')[0]!
const errorOf = (events: SentEvent[]) =>
  events.find(({ event }) => event === 'error')?.data as { code: string } | undefined

describe('files of answers', () => {
  let app: ChatApp
  let asker: ChatUser
  before(async () => {
    app = await openChatApp()
    asker = await app.user()
  })
  after(async () => app?.[Symbol.asyncDispose]())

  const listed = (chatId: string, user = asker) => user.get<Files>(`/v1/chat/${chatId}/files`)

  test('are listed, in the thread and in the JSON answer, in the order in which they were made', async () => {
    const question = script(
      { publish: 'b.html', bytes: 3, type: 'text/html; charset=utf-8' },
      { publish: 'a.txt', bytes: 5 },
      { say: 'Two.' },
    )
    const chatId = idOf(await asker.ask(question))
    const { files } = await listed(chatId)
    assert.deepEqual(
      files.map(({ name, content_type, size }) => [name, content_type, size]),
      [
        ['b.html', 'text/html; charset=utf-8', 3],
        ['a.txt', 'text/plain', 5],
      ],
    )
    const [, message] = await asker.get<{ files: File[] }[]>(`/v1/chat/threads/${chatId}`)
    assert.deepEqual(
      message!.files.map(({ file_id }) => file_id),
      files.map(({ file_id }) => file_id),
    )
    const json = await http<{ files: File[] }>(`${app.url}/v1/chat`, {
      method: 'POST',
      headers: bearer(asker),
      body: { query: question, stream: false },
    })
    assert.deepEqual(
      json.body.files.map(({ name }) => name),
      ['b.html', 'a.txt'],
    )
  })

  test('are read at their addresses by everyone who has them, and run nothing', async () => {
    const chatId = idOf(
      await asker.ask(
        script({ publish: 'page.html', bytes: 7, letter: 'x', type: 'text/html; charset=utf-8' }),
      ),
    )
    const [file] = (await listed(chatId)).files
    const reply = await fetch(file!.url)
    assert.deepEqual([reply.status, await reply.text()], [200, 'xxxxxxx'])
    assert.match(reply.headers.get('content-disposition') ?? '', /^attachment/)
    assert.equal(reply.headers.get('x-content-type-options'), 'nosniff')
    const inMs = Date.parse(file!.expires_at) - Date.now()
    assert.ok(inMs > 14 * 60_000 && inMs <= 15 * 60_000, `${inMs} ms`)
    assert.equal((await fetch(file!.url.replace(/sig=[^&]{8}/, 'sig=AAAAAAAA'))).status, 404)
  })

  test('belong to the user who asked', async () => {
    const chatId = idOf(await asker.ask(script({ publish: 'a.txt', bytes: 1 })))
    const stranger = await app.user()
    const { status } = await http(`${app.url}/v1/chat/${chatId}/files`, { headers: bearer(stranger) })
    assert.equal(status, 404)
    assert.deepEqual((await listed(idOf(await asker.ask(script({ say: 'None.' }))))).files, [])
  })

  test('have at most five MiB each and twenty in all; what was made before stays', async () => {
    const tooLarge = await asker.ask(script({ publish: 'a.txt', bytes: 5 * mebibyte + 1 }))
    assert.equal(errorOf(tooLarge)?.code, 'conflict')
    assert.deepEqual((await listed(idOf(tooLarge))).files, [])
    const letters = ['a', 'b', 'c', 'd', 'e']
    const tooMany = await asker.ask(
      script(...letters.map((letter) => ({ publish: letter, bytes: 5 * mebibyte, letter }))),
    )
    assert.equal(errorOf(tooMany)?.code, 'conflict')
    assert.deepEqual(
      (await listed(idOf(tooMany))).files.map(({ name }) => name),
      ['a', 'b', 'c', 'd'],
    )
    const empty = await asker.ask(script({ publish: 'a.txt', bytes: 0 }))
    assert.equal(errorOf(empty)?.code, 'conflict')
  })

  test('of one name are stored once, and an instance that has lost the answer stores none', async () => {
    const chatId = idOf(
      await asker.ask(
        script({ publish: 'a.txt', bytes: 2 }, { publish: 'a.txt', bytes: 2 }, { say: 'One.' }),
      ),
    )
    assert.equal((await listed(chatId)).files.length, 1)
    const { files } = app.instances[0]!.features.images
    const { rows } = await app.db.query<{ user_id: string }>(
      'select user_id from chat_turn where chat_id = $1',
      [chatId],
    )
    const publish = createPublish({ db: app.db, files }, { chatId, userId: rows[0]!.user_id, version: 1 })
    const bytes = Buffer.from('late')
    await publish({ name: 'a.txt', contentType: 'text/plain', bytes })
    await assert.rejects(publish({ name: 'late.txt', contentType: 'text/plain', bytes }), ClaimLost)
    assert.deepEqual(
      (await filesOf(app.db, [chatId])).map(({ name, size }) => [name, size]),
      [['a.txt', 2]],
    )
  })

  test('go with the retention of files, and the answer stays', async () => {
    const chatId = idOf(
      await asker.ask(script({ publish: 'a.txt', bytes: 9, letter: 'r' }, { say: 'Kept.' })),
    )
    await app.db.query('delete from file where id in (select file_id from chat_file where chat_id = $1)', [
      chatId,
    ])
    assert.deepEqual((await listed(chatId)).files, [])
    const [, message] = await asker.get<{ answer: string; files: File[] }[]>(`/v1/chat/threads/${chatId}`)
    assert.deepEqual([message!.answer, message!.files], ['Kept.', []])
  })
})
