/** Webhooks of the apps of a person: whose they are, and that they end with the app, a new password and a time. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { deletionJobs } from '#durable/upkeep/retention.ts'
import { oauthDeletions } from '#features/oauth/retention.ts'
import { eventually } from '../harness/gateway.ts'
import { createBrowser } from '../oauth/oauth-app.ts'
import { authorizeUrl } from '../oauth/session.ts'
import { type ConnectedApp, type ConnectedApps, createConnectedApps, type Webhook } from './connected-apps.ts'
import { openReceiver, type Receiver, verify } from './receiver.ts'

const dayMs = 86_400_000

let apps: ConnectedApps
let receiver: Receiver
before(async () => {
  apps = await createConnectedApps()
})
after(() => apps?.[Symbol.asyncDispose]())
beforeEach(async () => {
  receiver = await openReceiver()
})
afterEach(() => receiver[Symbol.asyncDispose]())

const typesAt = (path: string) => receiver.at(path).map(({ event }) => event.type)
/** Neither the webhook nor a secret is left. */
const assertGone = async ({ webhook_id: id }: Webhook) => {
  for (const table of ['webhook', 'webhook_cursor', 'webhook_secret', 'webhook_delivery'])
    assert.deepEqual(await apps.rows(`select from ${table} where webhook_id = $1`, [id]), [], table)
}

describe('the end of an app', () => {
  test('an app that the person disconnects at one instance gets nothing more from any', async () => {
    const { main, other, happen } = apps
    const { browser, apps: connected } = await apps.newPerson(['leaving', 'staying'])
    const [leaving, staying] = connected
    const webhook = await leaving.register(receiver.url('/leaving'), { at: main.address })
    assert.equal(webhook.client_id, leaving.clientId)
    await staying.register(receiver.url('/staying'), { at: other.address })
    await happen(staying, other.address)
    for (const path of ['/leaving', '/staying']) await receiver.until(path === '/leaving' ? 2 : 1, path)
    const account = await browser.open(`${other.address}/oauth/account`)
    assert.match(account.html, new RegExp(`Sends your events to ${new URL(receiver.url()).host}`))
    assert.match(account.html, /webhooks that it has added are deleted/)
    const done = await browser.submit(account, 'disconnect', { client_id: leaving.clientId })
    assert.match(done.html, /The app is disconnected/)
    await happen(staying, main.address)
    await receiver.until(3, '/staying')
    assert.deepEqual(typesAt('/staying'), ['policy.changed', 'webhook.deleted', 'policy.changed'])
    assert.deepEqual(typesAt('/leaving'), ['webhook.created', 'policy.changed'])
    await assertGone(webhook)
    const [deleted] = await staying.events('webhook.deleted')
    assert.deepEqual(deleted?.data, {
      webhook_id: webhook.webhook_id,
      origin: new URL(receiver.url()).origin,
      client_id: leaving.clientId,
      reason: 'disconnected',
    })
    assert.equal((await leaving.ask('GET /v1/webhooks')).status, 401)
  })

  test('a new password ends the webhooks of all apps, in the commit that sets it', async () => {
    const { main, happen } = apps
    const { email, apps: connected } = await apps.newPerson(['one', 'two'])
    const webhooks = await Promise.all(connected.map((app, n) => app.register(receiver.url(`/${n}`))))
    await happen(connected[0])
    for (const path of ['/0', '/1'])
      await eventually(async () => typesAt(path).includes('policy.changed') || undefined, `${path} has it`)
    const resetting = createBrowser()
    const page = await resetting.open(authorizeUrl(main, connected[0].clientId))
    const form = await resetting.open(`${page.url}?view=reset`)
    const next = 'an entirely new password'
    const sent = await resetting.submit(form, 'reset', { email, password: next })
    const count = receiver.received.length
    await resetting.submit(sent, 'code', { email, code: main.codeFor(email) })
    for (const webhook of webhooks) await assertGone(webhook)
    const again = await apps.connectAgain({ email, password: next }, connected[0].clientId)
    const deleted = await again.events('webhook.deleted')
    assert.deepEqual(
      deleted.map(({ data }) => [data.webhook_id, data.reason]).sort(),
      webhooks.map(({ webhook_id: id }) => [id, 'revoked']).sort(),
    )
    await again.register(receiver.url('/again'))
    await happen(again)
    await receiver.until(1, '/again')
    assert.equal(receiver.received.length, count + 1)
  })

  test('webhooks of an app last as long as one of its grants, also when two end at once', async () => {
    const { main, other } = apps
    for (let round = 0; round < 2; round++) {
      const person = await apps.newPerson()
      const [first] = person.apps
      const second = await apps.connectAgain(person, first.clientId)
      const third = await apps.connectAgain(person, first.clientId)
      const webhook = await first.register(receiver.url(`/${round}`))
      const revoked = await first.ask('DELETE /v1/auth/token')
      assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
      assert.deepEqual(
        (await second.webhooks()).map(({ webhook_id: id }) => id),
        [webhook.webhook_id],
      )
      const { refresh_token: token } = third.tokens
      const form = new URLSearchParams({ client_id: first.clientId, token })
      const release = await apps.hold(
        `select from oauth_record where model = 'Grant' and account_id = $1 for update`,
        [person.userId],
      )
      const ending = Promise.all([
        second.ask('DELETE /v1/auth/token', undefined, { at: main.address }),
        fetch(`${other.address}/oauth/revoke`, { method: 'POST', body: form }),
      ])
      await apps.untilBlocked(2)
      await release()
      const ends = await ending
      assert.deepEqual(
        ends.map(({ status }) => status),
        [200, 200],
      )
      await assertGone(webhook)
    }
  })

  test('a call with all ends every webhook of the person', async () => {
    const { apps: connected } = await apps.newPerson(['one', 'two'])
    const webhooks = await Promise.all(connected.map((app, n) => app.register(receiver.url(`/${n}`))))
    assert.equal((await connected[0].ask('DELETE /v1/auth/token?all=true')).status, 200)
    for (const webhook of webhooks) await assertGone(webhook)
  })

  test('a connection whose time is over takes its webhooks with it', async () => {
    const { main } = apps
    const person = await apps.newPerson()
    const webhook = await person.apps[0].register(receiver.url())
    const { clock, db: pool, features } = main.composed
    const { grants } = features.oauth!
    const runRetention = async () => {
      for (const { runBatch } of deletionJobs({ pool, clock }, oauthDeletions)) while (await runBatch());
      while (await grants.endExpired());
    }
    await runRetention()
    assert.equal((await person.apps[0].webhooks()).length, 1)
    main.time.offsetMs = 181 * dayMs
    try {
      await runRetention()
    } finally {
      main.time.offsetMs = 0
    }
    await assertGone(webhook)
  })

  test('a connection that is renewed while the expired ones are removed stays', async () => {
    const { main, rows } = apps
    const person = await apps.newPerson()
    const grant = `model = 'Grant' and account_id = $1`
    const release = await apps.hold(
      `update oauth_record set expires_at = expires_at + interval '180 days' where ${grant}`,
      [person.userId],
    )
    main.time.offsetMs = 181 * dayMs
    try {
      const { grants } = main.composed.features.oauth!
      const removing = (async () => {
        while (await grants.endExpired());
      })()
      await apps.untilBlocked(1)
      await release()
      await removing
    } finally {
      main.time.offsetMs = 0
    }
    assert.equal((await rows(`select from oauth_record where ${grant}`, [person.userId])).length, 1)
  })

  test('a webhook that is added while its app is disconnected is either deleted or refused', async () => {
    const { other } = apps
    const { browser, apps: connected, userId } = await apps.newPerson(['leaving'])
    const [leaving] = connected
    // The instance knows the token, so that only the commit can refuse it.
    await leaving.webhooks()
    const account = await browser.open(`${other.address}/oauth/account`)
    const release = await apps.hold('select pg_advisory_xact_lock(7061952, hashtext($1))', [userId])
    const disconnecting = browser.submit(account, 'disconnect', { client_id: leaving.clientId })
    await apps.untilBlocked(1)
    const adding = leaving.ask('POST /v1/webhooks', { url: receiver.url() })
    await apps.untilBlocked(2)
    await release()
    await disconnecting
    const { status, body } = await adding
    assert.deepEqual([status, body.code], [401, 'invalid_token'])
    assert.deepEqual(await apps.rows('select from webhook where user_id = $1', [userId]), [])
  })
})

describe('another app of the same person', () => {
  const routesOf = (id: string): [string, object?][] => [
    [`PATCH /v1/webhooks/${id}`, { url: 'http://127.0.0.1:9/stolen' }],
    [`POST /v1/webhooks/${id}/rotate`],
    [`POST /v1/webhooks/${id}/test`],
    [`GET /v1/webhooks/${id}/deliveries`],
    [`POST /v1/webhooks/${id}/replay`, { after: '0' }],
    [`DELETE /v1/webhooks/${id}`],
  ]
  const statusesOf = async (app: ConnectedApp, id: string) => {
    const statuses: number[] = []
    for (const [route, body] of routesOf(id)) statuses.push((await app.ask(route, body)).status)
    return statuses
  }

  test('a replayed change shows another app no address that it did not name', async () => {
    const { apps: connected } = await apps.newPerson(['owner', 'curious'])
    const [owner, curious] = connected
    const webhook = await owner.register(receiver.url('/first'))
    const change = `PATCH /v1/webhooks/${webhook.webhook_id}`
    const input = { url: receiver.url('/second') }
    assert.equal((await owner.ask(change, input, { key: 'change-1' })).status, 200)
    const replayed = await curious.ask(change, input, { key: 'change-1' })
    assert.deepEqual([replayed.status, replayed.body.code], [404, 'not_found'])
    const own = await owner.ask<Webhook>(change, input, { key: 'change-1' })
    assert.deepEqual([own.status, own.body.url], [200, input.url])
  })

  test('neither sees nor changes a webhook, and no replayed key shows it a secret', async () => {
    const { apps: connected } = await apps.newPerson(['owner', 'curious'])
    const [owner, curious] = connected
    const url = receiver.url('/owned')
    const key = 'webhook-1'
    const webhook = await owner.register(url, { key })
    assert.deepEqual(await curious.webhooks(), [])
    assert.deepEqual(await statusesOf(curious, webhook.webhook_id), [404, 404, 404, 404, 404, 404])
    const replayed = await curious.ask('POST /v1/webhooks', { url }, { key })
    assert.deepEqual([replayed.status, replayed.body.code], [404, 'not_found'])
    const rotate = `POST /v1/webhooks/${webhook.webhook_id}/rotate`
    const rotated = await owner.ask<{ secret: string }>(rotate, undefined, { key: 'rotate-1' })
    assert.equal(rotated.status, 200)
    assert.equal((await curious.ask(rotate, undefined, { key: 'rotate-1' })).status, 404)
    assert.equal((await owner.register(url, { key })).secret, rotated.body.secret)
    // The address is no secret to an app that names it, and reports nothing of the other webhook.
    const own = await curious.register(url)
    assert.notEqual(own.webhook_id, webhook.webhook_id)
    assert.deepEqual(
      (await owner.webhooks()).map(({ webhook_id: id }) => id),
      [webhook.webhook_id],
    )
    const notified = JSON.stringify(await curious.events('webhook.created,webhook.updated'))
    assert.match(notified, new RegExp(owner.clientId))
    assert.ok(!notified.includes('/owned'), 'the path of an address may be a secret')
    const [message] = await receiver.until(1, '/owned')
    assert.ok(message && verify(rotated.body.secret, message))
  })

  test('takes a webhook over that is of no app, by another address or another secret', async () => {
    const { apps: connected } = await apps.newPerson(['one', 'two'])
    const [one, two] = connected
    const made = [await one.register(receiver.url('/a')), await one.register(receiver.url('/b'))] as const
    await apps.rows('update webhook set client_id = null where client_id = $1', [one.clientId])
    for (const app of connected) assert.equal((await app.webhooks()).length, 2)
    const [moved, rotated] = made.map(({ webhook_id: id }) => `/v1/webhooks/${id}`)
    assert.equal((await two.ask(`PATCH ${moved}`, { description: 'Seen' })).body.client_id, null)
    const answer = await two.ask(`PATCH ${moved}`, { url: receiver.url('/c') })
    assert.deepEqual([answer.status, answer.body.client_id], [200, two.clientId])
    assert.equal((await two.ask(`POST ${rotated}/rotate`)).status, 200)
    assert.deepEqual(await one.webhooks(), [])
    assert.deepEqual(
      (await two.webhooks()).map(({ client_id: id }) => id),
      [two.clientId, two.clientId],
    )
    const updates = (await one.events('webhook.updated')).map(({ data }) => [data.client_id, data.fields])
    assert.deepEqual(updates, [
      [null, ['description']],
      [two.clientId, ['url']],
      [two.clientId, ['secret']],
    ])
  })
})
