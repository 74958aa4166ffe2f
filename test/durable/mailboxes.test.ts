/** Answers on their way to a stream of MCP's transport of 2024. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const mebibyte = 1024 * 1024

describe('mailboxes', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  test('what waits for a reader is bounded in bytes, and is taken message by message as the reader takes it', async () => {
    await using instance = await fixture.instance({ steps: { only: async () => executed } })
    const { mailboxes } = instance.taskEngine
    const leaving = new AbortController()
    await using mailbox = await mailboxes.open('m', newUser())
    assert.ok(mailbox)
    const sent: boolean[] = []
    for (let at = 0; at < 6; at++) sent.push(await mailboxes.send('m', Buffer.alloc(mebibyte, at)))
    assert.deepEqual(sent, [true, true, true, true, false, false])
    const messages = mailbox.messages(leaving.signal)[Symbol.asyncIterator]()
    const next = async () => Buffer.from((await messages.next()).value as Uint8Array)
    assert.deepEqual(await next(), Buffer.alloc(mebibyte, 0))
    const small = Buffer.alloc(1)
    // One is taken, and three wait: there is room for one more.
    assert.deepEqual(
      [await mailboxes.send('m', Buffer.alloc(mebibyte, 4)), await mailboxes.send('m', small)],
      [true, false],
    )
    for (const at of [1, 2, 3, 4]) assert.deepEqual(await next(), Buffer.alloc(mebibyte, at))
    leaving.abort()
    await messages.return?.()
  })
})
