import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createChangePoller } from '#durable/events/change-poller.ts'
import type { MessageBus } from '#durable/events/notifier.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'

/** Loses every notification. */
const silentBus: MessageBus = {
  publish: async () => undefined,
  subscribe: () => ({ [Symbol.asyncDispose]: async () => undefined }),
}

const env = { RUNNER_SLOTS: '4', LEASE_MS: '1000', DATABASE_POOL: '4' }
const instance = (databaseUrl: string) =>
  openTestCore({ databaseUrl, env, overrides: { createBus: () => silentBus } })

const newId = () => uuidv7(new Date(), systemRandom)

describe('one poll a second for all streams and waits of an instance', () => {
  let db: TestDatabase
  let first: Database
  before(async () => {
    db = await testDatabase()
    first = openDatabase({ url: db.url, poolMax: 4, applicationName: 'a' })
  })
  after(async () => {
    await first.close()
    await db.drop()
  })

  test('one statement per poll, however many streams and waits there are', async () => {
    let statements = 0
    first.pool.on('acquire', () => {
      statements += 1
    })
    const poller = createChangePoller(first.pool, 50)
    const held = new DisposableStack()
    for (let count = 0; count < 200; count++) {
      held.use(poller.onEvents(newId(), { seq: () => 0n, notify: () => assert.fail('nothing happened') }))
      held.use(poller.onEnd(newId(), () => assert.fail('nothing ended')))
    }
    const startedMs = performance.now()
    await eventually(async () => (statements >= 20 ? true : undefined), 'twenty polls')
    const polls = Math.ceil((performance.now() - startedMs) / 50) + 1
    assert.ok(statements <= polls, `${statements} statements in at most ${polls} polls`)
    held.dispose()
    const before = statements
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(statements - before <= 1, 'without listeners no poll runs')
  })

  test('a stream gets the events of another instance although every notification was lost', async () => {
    await using here = await instance(db.url)
    await using there = await instance(db.url)
    const stop = new AbortController()
    const users = Array.from({ length: 5 }, newId)
    const got = new Map<string, string[]>()
    const subscriptions = users.map(async (userId) => {
      for await (const page of here.taskEngine.events.subscribe(userId, 0n, { signal: stop.signal }))
        got.set(userId, [...(got.get(userId) ?? []), ...page.map(({ id }) => id)])
    })
    for (const userId of users) {
      for (const type of ['one', 'two'])
        await there.transactions.run((tx) => there.taskEngine.events.add(tx, userId, [{ type, data: {} }]))
      there.taskEngine.events.notify(userId)
    }
    await eventually(
      async () => (users.every((userId) => got.get(userId)?.join() === '1,2') ? true : undefined),
      'the events of all users',
    )
    stop.abort()
    await Promise.all(subscriptions)
    const [row] = await query<{ n: bigint }>(first.pool, 'select count(*) as n from user_event_seq', [])
    assert.ok(Number(row?.n) >= users.length)
  })
})
