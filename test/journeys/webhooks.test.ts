/** Webhooks over HTTP: the events of a real deposit arrive signed, and the user rotates, replays and removes. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { innerUrls } from '../proof/support/inner-urls.ts'
import { idsOf, openReceiver, type Received, type Receiver, verify } from '../webhooks/receiver.ts'
import { createFundedPerson, type Person } from './users.ts'

type Webhook = {
  webhook_id: string
  url: string
  secret: string
  status: string
  types: string[] | null
  delivered_through: string
}
type Refusal = { code: string; detail: { loc: string[]; type: string; msg: string }[] }
type LoggedEvent = { type: string; subject: { id: string }; data: Record<string, unknown> }
type Events = { events: { id: string; type: string }[] }
type Deliveries = { deliveries: Record<string, unknown>[]; total_count: number }

const create = <B = Webhook>(person: Person, body: object, key?: string) =>
  person.call<B>('POST /v1/webhooks', { body, ...(key && { key }) })
const listed = async (person: Person) =>
  (await person.call<{ webhooks: Webhook[] }>('GET /v1/webhooks')).body.webhooks

describe('webhooks', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let receiver: Receiver
  let person: Person
  before(async () => {
    gateway = await freshGateway()
    receiver = await openReceiver()
    person = await createFundedPerson(gateway.url)
  })
  after(async () => {
    await receiver?.[Symbol.asyncDispose]()
    await gateway?.[Symbol.asyncDispose]()
  })

  test('every event of a deposit arrives once, in order and signed, as the list shows it', async () => {
    const { status, body: webhook } = await create(person, { url: receiver.url('/deposit') })
    assert.deepEqual([status, webhook.status, webhook.types], [200, 'enabled', null])
    assert.match(webhook.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    const done = await person.deposit('25')
    assert.equal(done.body.status, 'completed', JSON.stringify(done.body))
    const list = `GET /v1/notifications?after=${webhook.delivered_through}`
    const { events } = (await person.call<Events>(list)).body
    assert.ok(events.length >= 2, JSON.stringify(events))
    const messages = await receiver.until(events.length, '/deposit')
    assert.deepEqual(
      messages.map((message) => verify(webhook.secret, message)),
      events,
    )
    assert.equal(new Set(messages.map(({ headers }) => headers['webhook-id'])).size, events.length)
    const path = `/v1/webhooks/${webhook.webhook_id}`
    const { deliveries, total_count: total } = (
      await person.call<Deliveries>(`GET ${path}/deliveries?limit=1`)
    ).body
    const [last] = deliveries
    assert.deepEqual(
      [total, deliveries.length, last?.event_id, last?.status, last?.attempts, last?.response_status],
      [events.length, 1, events.at(-1)?.id, 'delivered', 1, 200],
    )
    assert.equal((await listed(person))[0]?.delivered_through, events.at(-1)?.id)
    assert.ok(!JSON.stringify(await listed(person)).includes('whsec'), 'no other answer has a secret')
    assert.equal((await person.call(`DELETE ${path}`)).status, 200)
  })

  test('a repetition under its key answers the same secret, and none is stored', async () => {
    const body = { url: receiver.url('/keyed'), types: ['policy.changed'] }
    const first = await create(person, body, 'webhook-1')
    const again = await create(person, body, 'webhook-1')
    assert.deepEqual(again.body, first.body)
    const other = await create<Refusal>(person, body)
    assert.deepEqual([other.status, other.body.code], [409, 'conflict'])
    await person.call(`DELETE /v1/webhooks/${first.body.webhook_id}`)
    assert.equal((await create<Refusal>(person, body, 'webhook-1')).status, 404)
  })

  test('a test message is sent at once, and while a secret is replaced both sign', async () => {
    const { body: webhook } = await create(person, { url: receiver.url('/test') })
    const path = `/v1/webhooks/${webhook.webhook_id}`
    receiver.answer(() => 503)
    const refused = await person.call(`POST ${path}/test`)
    assert.deepEqual(
      [refused.body.status, refused.body.response_status, refused.body.error],
      ['failed', 503, 'the address answered 503'],
    )
    receiver.answer(() => 200)
    const rotated = await person.call<{ secret: string }>(`POST ${path}/rotate`, { key: 'rotate-1' })
    const repeated = await person.call<{ secret: string }>(`POST ${path}/rotate`, { key: 'rotate-1' })
    assert.deepEqual(repeated.body, rotated.body)
    assert.notEqual(rotated.body.secret, webhook.secret)
    const sent = await person.call(`POST ${path}/test`)
    assert.deepEqual([sent.body.status, sent.body.response_status], ['delivered', 200])
    // The event of the new secret may arrive at the same time.
    const isSent = ({ headers }: Received) => headers['webhook-id'] === sent.body.message_id
    const message = receiver.at('/test').find(isSent)!
    assert.ok(message, 'the message was not received')
    for (const secret of [webhook.secret, rotated.body.secret])
      assert.deepEqual(verify(secret, message), message.event)
    assert.deepEqual([message.event.type, message.event.id], ['webhook.test', '0'])
    await person.call(`DELETE ${path}`)
  })

  test('only the wanted types are sent, and a replay sends stored events again under their ids', async () => {
    const { body: webhook } = await create(person, { url: receiver.url('/kill'), types: ['policy.changed'] })
    const path = `/v1/webhooks/${webhook.webhook_id}`
    await person.deposit('2')
    for (const per_day_usd of ['900', '800'])
      assert.equal((await person.call('PUT /v1/policy', { body: { per_day_usd } })).status, 200)
    const first = await receiver.until(2, '/kill')
    assert.deepEqual(
      first.map(({ event }) => event.type),
      ['policy.changed', 'policy.changed'],
    )
    const replayed = await person.call(`POST ${path}/replay`, { body: { after: webhook.delivered_through } })
    assert.equal(replayed.status, 200, JSON.stringify(replayed.body))
    const all = await receiver.until(4, '/kill')
    assert.deepEqual(idsOf(all.slice(2)), idsOf(first))
    assert.deepEqual(
      all.slice(2).map(({ headers }) => headers['webhook-id']),
      first.map(({ headers }) => headers['webhook-id']),
    )
    const beyond = await person.call<Refusal>(`POST ${path}/replay`, { body: { after: '999999' } })
    assert.deepEqual([beyond.status, beyond.body.detail[0]?.loc], [422, ['body', 'after']])
    await person.call(`DELETE ${path}`)
  })

  test('no form of an inner address becomes a webhook, also where this machine may be one', async () => {
    const before = (await listed(person)).length
    for (const url of innerUrls) {
      const { status, body } = await create<Refusal>(person, { url })
      assert.deepEqual([status, body.detail?.[0]?.loc], [422, ['body', 'url']], url)
    }
    assert.equal((await listed(person)).length, before)
  })

  test('an address is measured as it is sent', async () => {
    const { status, body } = await create<Refusal>(person, { url: receiver.url(`/${'ä'.repeat(1_000)}`) })
    assert.deepEqual(
      [status, body.detail[0]?.loc, body.detail[0]?.type],
      [422, ['body', 'url'], 'string_too_long'],
    )
  })

  test('the log has what is done with webhooks, without the path of the address', async () => {
    const { body: webhook } = await create(person, { url: receiver.url('/logged') })
    const path = `/v1/webhooks/${webhook.webhook_id}`
    const body = { types: ['policy.changed'], enabled: false }
    assert.equal((await person.call(`PATCH ${path}`, { body })).status, 200)
    assert.equal((await person.call(`PATCH ${path}`, { body })).status, 200)
    assert.equal((await person.call(`POST ${path}/rotate`)).status, 200)
    assert.equal((await person.call(`DELETE ${path}`)).status, 200)
    const list = `GET /v1/notifications?after=${BigInt(webhook.delivered_through) - 1n}`
    const { events } = (await person.call<{ events: LoggedEvent[] }>(list)).body
    const common = { webhook_id: webhook.webhook_id, origin: new URL(receiver.url()).origin, client_id: null }
    assert.deepEqual(
      events.map(({ type, subject, data }) => [type, subject.id, data]),
      [
        ['webhook.created', webhook.webhook_id, { ...common, types: null }],
        ['webhook.updated', webhook.webhook_id, { ...common, fields: ['types', 'enabled'] }],
        ['webhook.updated', webhook.webhook_id, { ...common, fields: ['secret'] }],
        ['webhook.deleted', webhook.webhook_id, { ...common, reason: 'deleted' }],
      ],
    )
    assert.deepEqual(receiver.at('/logged'), [])
  })

  test('a user has at most ten, and sees none of others', async () => {
    const stranger = await createFundedPerson(gateway.url)
    const made: Webhook[] = []
    for (let n = 0; n < 10; n++) made.push((await create(stranger, { url: receiver.url(`/n${n}`) })).body)
    const more = await Promise.all(
      [10, 11].map((n) => create<Refusal>(stranger, { url: receiver.url(`/n${n}`) })),
    )
    assert.deepEqual(
      more.map(({ status, body }) => [status, body.code]),
      [
        [409, 'conflict'],
        [409, 'conflict'],
      ],
    )
    assert.equal((await listed(stranger)).length, 10)
    assert.ok(
      (await listed(person)).every(({ webhook_id: id }) => made.every((each) => each.webhook_id !== id)),
    )
    const foreign = `/v1/webhooks/${made[0]!.webhook_id}`
    const routes = [
      `DELETE ${foreign}`,
      `POST ${foreign}/rotate`,
      `POST ${foreign}/test`,
      `GET ${foreign}/deliveries`,
    ]
    for (const route of routes) assert.equal((await person.call(route)).status, 404, route)
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    assert.match(metrics, /portico_webhooks\{state="enabled"\} \d+/)
  })
})
