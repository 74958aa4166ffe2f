/** Several instances, instances that die, and users who share the connections of one. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { Overrides } from '#compose/compose.ts'
import { createPostgresBus } from '#durable/events/postgres-notify.ts'
import { places, sharedMax } from '#features/notifications/webhooks/delivery-slots.ts'
import { budgetMs } from '#features/notifications/webhooks/delivery-time-budget.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import type { Sample } from '#kernel/metrics.ts'
import { dataFolder, eventually, launch, newAgent } from '../harness/gateway.ts'
import type { Instance, TestUser } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { offlineSettings } from '../journeys/offline-gateway.ts'
import { personOf } from '../journeys/users.ts'
import { idsOf, openReceiver, type Receiver, verify } from './receiver.ts'
import { createWebhookApp, type WebhookApp } from './webhook-app.ts'

/** A lease that no pause of a busy machine ends: the events of a lost lease are sent twice, or wait for a poll. */
const wholeTestMs = 60_000
/** The first event is that of the webhook itself. */
const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n + 2))

test('two instances that commit at once deliver every event once and in order', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ leaseMs: wholeTestMs })
  await using other = await app.open()
  const users = await Promise.all(Array.from({ length: 6 }, () => app.newUser()))
  for (const [n, user] of users.entries()) await app.create(user, receiver.url(`/${n}`))
  const rounds = 12
  for (let round = 0; round < rounds; round++)
    await Promise.all(users.map((user) => app.happen(user, 2, round % 2 === 0 ? app.main : other)))
  await receiver.until(users.length * rounds * 2)
  for (const [n] of users.entries()) assert.deepEqual(idsOf(receiver.at(`/${n}`)), numbers(rounds * 2))
})

test('an event whose hint was lost is found by the poll, and an instance that ended leaves its webhooks to others', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp()
  const user = await app.newUser()
  await app.create(user, receiver.url())
  const { transactions, taskEngine } = app.main
  await transactions.run((tx) => taskEngine.events.add(tx, user.id, [{ type: 'security.flagged', data: {} }]))
  await receiver.until(1)
  const held: ServerResponse[] = []
  receiver.answer(() => (response) => void held.push(response))
  const other = await app.open()
  await app.happen(user, 1, other)
  await receiver.until(2)
  const ended = other[Symbol.asyncDispose]()
  receiver.answer(() => 200)
  for (const response of held) response.writeHead(200).end()
  await ended
  await app.happen(user)
  await receiver.until(3)
  assert.deepEqual([...new Set(idsOf(receiver.received))], numbers(3))
})

test('a gateway that is killed during a request sends that message again, and loses none', async () => {
  await using receiver = await openReceiver()
  await using own = await ownDatabase()
  using folder = dataFolder()
  const start = () =>
    launch({ env: { ...offlineSettings, DATA_DIR: folder.path, DATABASE_URL: own.url, LEASE_MS: '4000' } })
  await using first = await start()
  const person = await personOf(first.url, await newAgent(first.url))
  const { body: webhook } = await person.call<{ secret: string }>('POST /v1/webhooks', {
    body: { url: receiver.url() },
  })
  receiver.answer(({ event }) => (event.id === '2' ? 200 : () => undefined))
  for (const per_day_usd of ['900', '800', '700'])
    await person.call('PUT /v1/policy', { body: { per_day_usd } })
  await receiver.until(2)
  await first.kill()
  receiver.answer(() => 200)
  await using _second = await start()
  // The second one starts before the lease of the first has ended, then comes on duty and polls: after up to a minute,
  // where its first poll has taken a second or more.
  await receiver.until(4, undefined, 120_000)
  assert.deepEqual(idsOf(receiver.received), ['2', '3', '3', '4'])
  const [, cut, again] = receiver.received
  assert.equal(again?.headers['webhook-id'], cut?.headers['webhook-id'])
  for (const message of receiver.received) assert.deepEqual(verify(webhook.secret, message), message.event)
})

test('an instance that comes on duty polls for the webhooks of the one before it', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: { webhookPollMs: 10_000 } })
  const user = await app.newUser()
  await app.create(user, receiver.url())
  await using other = await app.open()
  for (const each of [app.main, other]) await firstRoundOf(app, each)
  const instances = [app.main, other]
  const onDuty = await app.until(async () => {
    const found = instances.filter(({ taskEngine }) => taskEngine.isOnDuty())
    return found.length === 1 ? found[0] : undefined
  }, 'one of the instances is on duty')
  const [next] = instances.filter((each) => each !== onDuty)
  await onDuty[Symbol.asyncDispose]()
  const { transactions, taskEngine } = next!
  await transactions.run((tx) => taskEngine.events.add(tx, user.id, [{ type: 'security.flagged', data: {} }]))
  // Off duty it would have left out the polls of a minute.
  await receiver.until(1, undefined, 50_000)
})

/** Addresses that begin with `/held` are answered by the test, and the order in which requests ended is kept. */
function holdRequests(receiver: Receiver) {
  const held: ServerResponse[] = []
  let ended = 0
  receiver.answer(({ path }) =>
    path.startsWith('/held')
      ? (response) => {
          held.push(response)
          response.on('close', () => {
            ended += 1
          })
        }
      : 200,
  )
  const until = (count: number) =>
    eventually(async () => (held.length === count ? true : undefined), `${count} requests are held`)
  const release = () => held.shift()?.writeHead(200).end()
  return { until, release, ended: () => ended }
}
/** Users with webhooks that are held, each with an event. */
async function heldUsers(app: WebhookApp, receiver: Receiver, count: number, webhooks: number) {
  const users: TestUser[] = []
  for (let n = 0; n < count; n++) {
    const user = await app.newUser()
    for (let m = 0; m < webhooks; m++)
      await app.create(user, receiver.url(`/held/${user.id}/${m}`), { types: ['security.flagged'] })
    users.push(user)
  }
  for (const user of users) await app.happen(user)
}
/** The next claim that asks for this user has its reply. */
function claimFor(instance: Instance, user: TestUser): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  around(instance, async ({ text, values }, send) => {
    const found = await send()
    if (text.includes('epoch = c.epoch + 1') && JSON.stringify(values).includes(user.id)) resolve()
    return found
  })
  return promise
}
const withoutSoonPolls: Overrides = { webhookPollMs: 600_000 }

test('24 users whose addresses do not answer delay neither a new webhook of another user nor a quick one', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: withoutSoonPolls, leaseMs: wholeTestMs })
  const quick = await app.newUser()
  await app.create(quick, receiver.url('/quick'))
  await app.happen(quick)
  await receiver.until(1, '/quick')
  const requests = holdRequests(receiver)
  const { running } = app.main.features.webhooks
  await heldUsers(app, receiver, 24, 3)
  await requests.until(24)
  assert.deepEqual(running(), { quick: 0, new: 24, slow: 0 }, 'one place of each user')
  const honest = await app.newUser()
  await app.create(honest, receiver.url('/new'))
  for (const user of [honest, quick]) await app.happen(user)
  await receiver.until(1, '/new')
  await receiver.until(2, '/quick')
  assert.equal(requests.ended(), 0)
  // Who finds no place is claimed at the end of a run, without a hint or a poll.
  await heldUsers(app, receiver, places.new.max - 24, 1)
  await requests.until(places.new.max)
  const late = await app.newUser()
  await app.create(late, receiver.url('/late'))
  const claimed = claimFor(app.main, late)
  await app.happen(late)
  await claimed
  assert.equal(receiver.at('/late').length, 0)
  requests.release()
  await receiver.until(1, '/late')
  assert.equal(requests.ended(), 1)
})

test('users whose deliveries took long leave half of the places to the others', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: withoutSoonPolls, leaseMs: wholeTestMs })
  const requests = holdRequests(receiver)
  const users = 20
  await heldUsers(app, receiver, users, 2)
  await requests.until(users)
  app.travel(budgetMs)
  for (let n = 0; n < users; n++) requests.release()
  await requests.until(sharedMax('new'))
  const honest = await app.newUser()
  await app.create(honest, receiver.url('/new'))
  await app.happen(honest)
  await receiver.until(1, '/new')
  const { running } = app.main.features.webhooks
  const isQuiet = async () => (running().new === sharedMax('new') ? true : undefined)
  await eventually(isQuiet, 'none of the users has a place of the other half')
  assert.equal(requests.ended(), users)
})

test('changes of one webhook on two instances wait for each other in one order', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp()
  await using other = await app.open()
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  const waiting = (count: number) =>
    app.until(async () => {
      const found = await app.rows(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return found.length >= count ? true : undefined
    }, `${count} statements wait for locks`)
  const deadlocks = async () => {
    await app.rows('select pg_stat_force_next_flush()')
    const [row] = await app.rows<{ n: string }>(
      'select deadlocks::text as n from pg_stat_database where datname = current_database()',
    )
    return row?.n
  }
  const before = await deadlocks()
  const holder = await app.database.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from webhook_secret where webhook_id = $1 for update', [id])
    const rotated = app.main.call('webhooks_rotate', { webhook_id: id }, user)
    await waiting(1)
    const deleted = other.call<{ deleted: boolean }>('webhooks_delete', { webhook_id: id }, user)
    await waiting(2)
    await holder.query('commit')
    const [first, second] = await Promise.allSettled([rotated, deleted])
    // A change that waits for long begins anew, and so may come after the deletion.
    if (first.status === 'rejected') assert.equal((first.reason as Fault).code, 'not_found')
    assert.equal(second.status, 'fulfilled')
  } finally {
    holder.release(true)
  }
  assert.equal(await deadlocks(), before)
})

type Statement = { text: string; values?: unknown[] }
/** Passes each statement of the instance to `around`, which sends it. */
function around(
  { transactions: { pool } }: Instance,
  each: (statement: Statement, send: () => Promise<unknown>) => Promise<unknown>,
): void {
  const original = pool.query
  const query = (...args: Parameters<typeof original>) =>
    each(args[0] as unknown as Statement, () => original.apply(pool, args) as unknown as Promise<unknown>)
  Object.assign(pool, { query })
}
/** As some seconds after the start: commits are hints to no other instance. The next round of polls is far away. */
const withoutPolls: Overrides = {
  webhookPollMs: 600_000,
  createBus(database) {
    const bus = createPostgresBus(database)
    const withoutUsers = (payload: string) =>
      payload
        .split(',')
        .filter((topic) => !topic.startsWith('u:'))
        .join()
    return { ...bus, publish: (payload) => bus.publish(withoutUsers(payload)) }
  },
}
/** Its polls have counted this webhook. */
async function firstRoundOf(app: WebhookApp, { features }: Instance): Promise<void> {
  await app.until(async () => {
    const found = (await features.webhooks.metrics.webhooks()).find(
      ({ name }) => name === 'portico_webhooks',
    )!
    const enabled = (found.samples as Sample[]).find(({ labels }) => labels.state === 'enabled')
    return enabled?.value === 1 ? true : undefined
  }, 'a whole round has counted the webhook')
}

test('an event that another instance commits while a webhook is released waits for no poll', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: withoutPolls, leaseMs: wholeTestMs })
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  await using other = await app.open()
  await firstRoundOf(app, other)
  const holder = await app.database.pool.connect()
  try {
    let isHeld = false
    around(app.main, async ({ text }, send) => {
      if (!isHeld && /^update webhook_cursor.* owner = null/.test(text)) {
        isHeld = true
        await holder.query('begin')
        await holder.query('select from webhook_cursor where webhook_id = $1 for update', [id])
      }
      return send()
    })
    await app.happen(user)
    await app.until(async () => {
      const waiting = await app.rows(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length === 1 ? true : undefined
    }, 'the release waits')
    const claimed = Promise.withResolvers<void>()
    around(other, async ({ text, values }, send) => {
      const found = await send()
      if (text.includes('epoch = c.epoch + 1') && JSON.stringify(values).includes(user.id)) claimed.resolve()
      return found
    })
    await app.happen(user, 1, other)
    await claimed.promise
    await holder.query('commit')
    await receiver.until(2)
    assert.deepEqual(idsOf(receiver.received), numbers(2))
  } finally {
    holder.release(true)
  }
})

test('slices of all cursors find every event without a hint, and count the webhooks', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: { webhookSliceMax: 10 } })
  const users = await Promise.all(Array.from({ length: 25 }, () => app.newUser()))
  for (const [n, user] of users.entries()) await app.create(user, receiver.url(`/${n}`))
  await app.main.call(
    'webhooks_update',
    { webhook_id: await idOf(app, users[0]!), enabled: false },
    users[0]!,
  )
  const { transactions, taskEngine } = app.main
  await transactions.run(async (tx) => {
    for (const { id } of users.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
      await taskEngine.events.add(tx, id, [{ type: 'security.flagged', data: {} }])
  })
  await receiver.until(users.length - 1, undefined, 60_000)
  for (const [n] of users.slice(1).entries()) assert.deepEqual(idsOf(receiver.at(`/${n + 1}`)), numbers(1))
  const { metrics } = app.main.features.webhooks
  const counted = async () => {
    const found = (await metrics.webhooks()).find(({ name }) => name === 'portico_webhooks')!
    const values = (found.samples as Sample[]).map(({ labels, value }) => [labels.state, value])
    const { enabled, disabled, behind } = Object.fromEntries(values)
    return enabled === users.length - 1 && disabled === 1 && behind === 0 ? true : undefined
  }
  await app.until(counted, 'a whole round has counted them')
})
const idOf = async (app: WebhookApp, user: TestUser): Promise<string> => {
  const { webhooks } = await app.main.call<{ webhooks: { webhook_id: string }[] }>('webhooks_list', {}, user)
  return webhooks[0]!.webhook_id
}

test('commits of a user without webhooks cost one statement, once', async () => {
  await using receiver = await openReceiver()
  await using app = await createWebhookApp({ overrides: { webhookPollMs: 600_000 }, leaseMs: wholeTestMs })
  const [without, other] = [await app.newUser(), await app.newUser()]
  await app.create(other, receiver.url())
  const { pool } = app.main.transactions
  const original = pool.query
  let statements = 0
  Object.assign(pool, {
    query(...args: Parameters<typeof original>) {
      const [{ text, values }] = args as unknown as [{ text: string; values?: unknown[] }]
      if (text.includes('webhook_cursor') && JSON.stringify(values).includes(without.id)) statements += 1
      return original.apply(pool, args)
    },
  })
  for (let round = 1; round <= 3; round++) {
    for (let n = 0; n < 50; n++) await app.happen(without)
    // Its claim comes after those of the hints before it.
    await app.happen(other)
    await receiver.until(round)
  }
  assert.equal(statements, 1)
})
