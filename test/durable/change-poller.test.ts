import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createChangePoller } from '#durable/change-poller.ts'
import { createEngine } from '#durable/engine.ts'
import type { MessageBus } from '#durable/notifier.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { eventually } from '../harness/gateway.ts'

/** Loses every notification. */
const silentBus: MessageBus = {
  publish: async () => undefined,
  subscribe: () => ({ [Symbol.asyncDispose]: async () => undefined }),
}

const instance = (database: Database) =>
  createEngine({
    transactions: {
      pool: database.pool,
      run: database.transaction,
      pipelined: database.pipelinedTransaction,
    },
    heartbeats: database.pool,
    bus: silentBus,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    options: { slots: 4, leaseMs: 1_000, pollMs: 100 },
  })

const newId = () => uuidv7(new Date(), systemRandom)

describe('one poll a second for all streams and waits of an instance', () => {
  let db: TestDatabase
  let first: Database
  let second: Database
  before(async () => {
    db = await testDatabase()
    first = openDatabase({ url: db.url, poolMax: 4, applicationName: 'a' })
    second = openDatabase({ url: db.url, poolMax: 4, applicationName: 'b' })
  })
  after(async () => {
    await Promise.all([first.close(), second.close()])
    await db.drop()
  })

  test('the number of statements does not grow with the number of streams and waits', async () => {
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
    await eventually(async () => (statements >= 20 ? true : undefined), 'ten polls')
    const polls = Math.ceil((performance.now() - startedMs) / 50) + 1
    assert.ok(statements <= 2 * polls, `${statements} statements in at most ${polls} looks`)
    held.dispose()
    const before = statements
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(statements - before <= 2, 'without listeners no poll runs')
  })

  test('a stream gets the events of another instance although every notification was lost', async () => {
    const here = instance(first)
    const there = instance(second)
    const stop = new AbortController()
    const users = Array.from({ length: 5 }, newId)
    const got = new Map<string, string[]>()
    const subscriptions = users.map(async (userId) => {
      for await (const page of here.events.subscribe(userId, 0n, { signal: stop.signal }))
        got.set(userId, [...(got.get(userId) ?? []), ...page.map(({ id }) => id)])
    })
    for (const userId of users) {
      for (const type of ['one', 'two'])
        await second.transaction((tx) => there.events.add(tx, userId, [{ type, data: {} }]))
      there.events.notify(userId)
    }
    await eventually(
      async () => (users.every((userId) => got.get(userId)?.join() === '1,2') ? true : undefined),
      'the events of all users',
    )
    stop.abort()
    await Promise.all(subscriptions)
    const [row] = await query<{ n: bigint }>(first.pool, 'select count(*) as n from user_event_seq', [])
    assert.ok(Number(row?.n) >= users.length)
    await here[Symbol.asyncDispose]()
    await there[Symbol.asyncDispose]()
  })
})
