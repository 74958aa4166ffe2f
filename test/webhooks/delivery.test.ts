/** Delivery over time: retries, order, the end of retries, changes during a request, and retention. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { attemptsMax } from '#features/notifications/webhooks/retry-schedule.ts'
import { idsOf, openReceiver, type Receiver, verify } from './receiver.ts'
import { createWebhookApp, type WebhookApp } from './webhook-app.ts'

const dayMs = 86_400_000

let app: WebhookApp
let receiver: Receiver
before(async () => {
  app = await createWebhookApp()
})
after(() => app?.[Symbol.asyncDispose]())
beforeEach(async () => {
  receiver = await openReceiver()
})
afterEach(() => receiver[Symbol.asyncDispose]())

test('a message that was refused is sent again with the same id and body, before those that follow it', async () => {
  const user = await app.newUser()
  const { webhook_id: id, secret } = await app.create(user, receiver.url())
  receiver.answer(() => (receiver.received.length <= 2 ? 500 : 200))
  await app.happen(user, 3)
  await receiver.until(1)
  const failed = (times: number) =>
    app.until(
      async () => ((await app.shown(user, id)).failed_attempts >= times ? true : undefined),
      `${times} failures are stored`,
    )
  await failed(1)
  const [delivery] = await app.deliveries(user, id)
  assert.deepEqual(
    [delivery?.status, delivery?.response_status, delivery?.error],
    ['retrying', 500, 'the address answered 500'],
  )
  app.travel(5_000)
  await failed(2)
  app.travel(60_000)
  const messages = await receiver.until(5)
  assert.deepEqual(idsOf(messages), ['2', '2', '2', '3', '4'])
  const [first, second, third] = messages
  assert.equal(first?.body, third?.body)
  assert.equal(second?.headers['webhook-id'], third?.headers['webhook-id'])
  for (const message of messages.slice(0, 3)) assert.deepEqual(verify(secret, message), message.event)
  const done = async () => ((await app.shown(user, id)).delivered_through === '4' ? true : undefined)
  await app.until(done, 'all are delivered')
  assert.deepEqual(
    (await app.deliveries(user, id)).map(({ event_id, status, attempts }) => [event_id, status, attempts]),
    [
      ['4', 'delivered', 1],
      ['3', 'delivered', 1],
      ['2', 'delivered', 3],
    ],
  )
})

test('after the last attempt the webhook is disabled with an event, and continues where it failed', async () => {
  const user = await app.newUser()
  await app.create(user, receiver.url('/other'), { types: ['webhook.disabled'] })
  const { webhook_id: id } = await app.create(user, receiver.url('/broken'))
  receiver.answer(({ path }) => (path === '/broken' ? 503 : 200))
  await app.happen(user)
  for (let attempt = 1; attempt < attemptsMax; attempt++) {
    await receiver.until(attempt, '/broken')
    const stored = async () => ((await app.shown(user, id)).failed_attempts === attempt ? true : undefined)
    await app.until(stored, `attempt ${attempt} is stored`)
    app.travel(dayMs)
  }
  const [notice] = await receiver.until(1, '/other')
  assert.deepEqual(
    [notice?.event.type, notice?.event.data],
    ['webhook.disabled', { webhook_id: id, reason: 'failing', response_status: 503 }],
  )
  const { status, disabled_reason: reason } = await app.shown(user, id)
  assert.deepEqual([status, reason], ['disabled', 'failing'])
  assert.equal(receiver.at('/broken').length, attemptsMax)
  await app.happen(user)
  receiver.answer(() => 200)
  await app.main.call('webhooks_update', { webhook_id: id, enabled: true }, user)
  const messages = await receiver.until(attemptsMax + 4, '/broken')
  assert.deepEqual(
    messages.slice(attemptsMax).map(({ event }) => [event.id, event.type]),
    [
      ['3', 'security.flagged'],
      ['4', 'webhook.disabled'],
      ['5', 'security.flagged'],
      ['6', 'webhook.updated'],
    ],
  )
})

test('an address that answers 410 gets nothing more', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  receiver.answer(() => 410)
  await app.happen(user, 2)
  const disabled = async () => ((await app.shown(user, id)).status === 'disabled' ? true : undefined)
  await app.until(disabled, 'it is disabled')
  assert.equal((await app.shown(user, id)).disabled_reason, 'unsubscribed')
  assert.equal(receiver.received.length, 1)
})

test('a redirect is a failure and leads nowhere', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  receiver.answer(() => (response: ServerResponse) => {
    response.writeHead(308, { location: receiver.url('/inner') }).end()
  })
  await app.happen(user)
  const failed = async () => ((await app.shown(user, id)).failed_attempts === 1 ? true : undefined)
  await app.until(failed, 'the failure is stored')
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/hook'],
  )
})

test('a webhook that is deleted or changed during a request gets at most that request', async () => {
  const user = await app.newUser()
  const first = await app.create(user, receiver.url('/deleted'))
  const held: ServerResponse[] = []
  receiver.answer(({ path }) => (path === '/changed' ? 200 : (response) => void held.push(response)))
  await app.happen(user, 3)
  await receiver.until(1, '/deleted')
  await app.main.call('webhooks_delete', { webhook_id: first.webhook_id }, user)
  held.shift()?.writeHead(200).end()
  const second = await app.create(user, receiver.url('/held'))
  await app.happen(user, 1)
  await receiver.until(1, '/held')
  await app.main.call(
    'webhooks_update',
    { webhook_id: second.webhook_id, url: receiver.url('/changed') },
    user,
  )
  held.shift()?.writeHead(200).end()
  const changed = await receiver.until(2, '/changed')
  assert.deepEqual(
    changed.map(({ event }) => [event.id, event.type]),
    [
      ['7', 'security.flagged'],
      ['8', 'webhook.updated'],
    ],
    'the commit of the former address is void',
  )
  assert.equal(receiver.at('/deleted').length, 1)
  assert.equal(receiver.at('/held').length, 1)
  const left = await app.rows('select from webhook_delivery d where d.webhook_id = $1', [first.webhook_id])
  assert.equal(left.length, 0)
})

test('other types begin with a first attempt, and leave no failure behind', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  receiver.answer(() => 500)
  await app.happen(user)
  const failed = (times: number) =>
    app.until(
      async () => ((await app.shown(user, id)).failed_attempts === times ? true : undefined),
      `${times} failures`,
    )
  await failed(1)
  await app.main.call('webhooks_update', { webhook_id: id, types: ['task.completed'] }, user)
  const passed = async () => ((await app.shown(user, id)).delivered_through === '3' ? true : undefined)
  await app.until(passed, 'what is not wanted is passed over')
  const { next_attempt_at, failed_attempts } = await app.shown(user, id)
  assert.deepEqual([next_attempt_at, failed_attempts], [null, 0])
  assert.equal((await app.deliveries(user, id))[0]?.status, 'failed')
  await app.main.call('webhooks_update', { webhook_id: id, types: ['security.flagged'] }, user)
  await app.happen(user)
  await failed(1)
  assert.deepEqual(idsOf(receiver.received), ['2', '5'])
})

test('an answer of any size or speed is cut off, and what it says is kept nowhere', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  let written = 0
  receiver.answer(({ event }) => (response) => {
    response.writeHead(event.id === '2' ? 200 : 500)
    const write = (): void => {
      while (!response.destroyed && written < 50_000_000) {
        written += 65_536
        if (!response.write('the secret of the inner network '.repeat(2_048))) break
      }
      if (!response.destroyed && written < 50_000_000) response.once('drain', write)
    }
    write()
  })
  await app.happen(user, 2)
  const failed = async () => ((await app.shown(user, id)).failed_attempts === 1 ? true : undefined)
  await app.until(failed, 'both were answered')
  assert.equal((await app.shown(user, id)).delivered_through, '2')
  assert.ok(written < 50_000_000, `${written} bytes were taken`)
  const stored = JSON.stringify(await app.deliveries(user, id))
  assert.ok(!stored.includes('inner network'), stored)
})

test('events that are no longer stored are replaced by one reset', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  receiver.answer(() => 500)
  await app.happen(user, 4)
  const failed = async () => ((await app.shown(user, id)).failed_attempts === 1 ? true : undefined)
  await app.until(failed, 'the first one failed')
  await app.rows('delete from user_event where user_id = $1 and seq <= 3 returning seq', [user.id])
  receiver.answer(() => 200)
  app.travel(5_000)
  const messages = await receiver.until(4)
  assert.deepEqual(
    messages.slice(1).map(({ event }) => [event.type, event.id]),
    [
      ['reset', '3'],
      ['security.flagged', '4'],
      ['security.flagged', '5'],
    ],
  )
  assert.deepEqual(messages[1]?.event.data, { from: '2', to: '3' })
})

test('the messages of a webhook take a fixed number of rows, and its cursor one', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url())
  await app.happen(user, 250)
  const messages = await receiver.until(250, undefined, 60_000)
  assert.deepEqual(
    idsOf(messages),
    Array.from({ length: 250 }, (_, n) => String(n + 2)),
  )
  const done = async () => ((await app.shown(user, id)).delivered_through === '251' ? true : undefined)
  await app.until(done, 'all are delivered')
  const [{ count } = { count: 0n }] = await app.rows<{ count: bigint }>(
    'select count(*) from webhook_delivery where webhook_id = $1',
    [id],
  )
  assert.equal(Number(count), 100)
  assert.equal((await app.deliveries(user, id))[0]?.event_id, '251')
})

test('secrets are sealed in the database, and end after a day', async () => {
  const user = await app.newUser()
  const { webhook_id: id, secret } = await app.create(user, receiver.url(), { types: ['task.completed'] })
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const stored = async () =>
    app.rows<{ ciphertext: Buffer }>('select * from webhook_secret where webhook_id = $1', [id])
  for (const row of await stored())
    for (const value of Object.values(row)) assert.ok(!Buffer.from(String(value)).includes(bytes))
  for (let n = 0; n < 4; n++) await app.main.call('webhooks_rotate', { webhook_id: id }, user)
  assert.equal((await stored()).length, 3, 'a header has at most three signatures')
  await app.main.call('webhooks_test', { webhook_id: id }, user)
  assert.equal(String(receiver.received.at(-1)?.headers['webhook-signature']).split(' ').length, 3)
  app.travel(dayMs + 1)
  await app.main.call('webhooks_test', { webhook_id: id }, user)
  assert.equal(String(receiver.received.at(-1)?.headers['webhook-signature']).split(' ').length, 1)
})
