import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { bearer, dataFolder, freshGateway, freshToken, type Gateway, launch } from '../harness/gateway.ts'
import { eventsUntil, type SentEvent, sentEvents } from '../harness/stream.ts'
import { openIdentityRecords } from '../proof/support/identity-records.ts'
import { killInstanceOfTask } from './killed-instance.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

type Envelope = { id: string; type: string; task_id: string | null; data: TaskBody; created_at: string }
type Page = { events: Envelope[]; total_count: number; next_after: string }

const heartbeatMsMax = 17_000
const path = '/v1/notifications/stream'
const endOf = (count: number) => (_: SentEvent, all: SentEvent[]) => all.filter(hasEnded).length === count
const hasEnded = ({ event }: SentEvent) => event === 'task.completed'
/** The URL of a task is that of the requested instance. */
const withoutAddress = ({ data: { poll_url: _, ...data }, ...event }: Envelope) => ({ ...event, data })
const seqs = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(from + index))

describe('every event is streamed, on every instance', () => {
  let one: Awaited<ReturnType<typeof freshGateway>>
  let two: Gateway
  let world: World
  const folder = dataFolder()
  before(async () => {
    one = await freshGateway()
    world = await worldOf(one.world)
    const env = { ...world.env, DATA_DIR: folder.path, DATABASE_URL: one.databaseUrl }
    two = await launch({ env })
  })
  afterEach(() => world.heal())
  after(async () => {
    await two?.stop()
    await one?.[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  const logOf = async (person: Person, query = '') =>
    (await person.call<Page>(`GET /v1/notifications?limit=100${query}`)).body
  const stream = (person: Person, at: { url: string }, more: { lastId?: string; query?: string } = {}) =>
    [
      `${at.url}${path}${more.query ?? ''}`,
      { ...bearer(person), ...(more.lastId !== undefined && { 'last-event-id': more.lastId }) },
    ] as const

  test('the events of a task come live, in order and without a gap, and agree with the task', async () => {
    const person = await createFundedPerson(one.url)
    const { next_after } = await logOf(person)
    const live = eventsUntil(...stream(person, one, { lastId: next_after }), endOf(1))
    const { body: task } = await person.deposit('10')
    const events = await live
    assert.deepEqual(
      events.map(({ id }) => id),
      seqs(Number(next_after) + 1, events.length),
    )
    const envelopes = events.map(({ data }) => data as Envelope)
    for (const [index, { id, type, task_id }] of envelopes.entries())
      assert.deepEqual([id, type, task_id], [events[index]?.id, events[index]?.event, task.task_id])
    assert.equal(envelopes[0]?.type, 'task.created')
    assert.equal(envelopes.at(-1)?.type, 'task.completed')
    assert.deepEqual(envelopes.at(-1)?.data, task)
    assert.deepEqual((await logOf(person, `&after=${next_after}`)).events, envelopes)
  })

  test('a new listener gets the last 50 events first, and with Last-Event-ID exactly the later ones', async () => {
    const person = await createFundedPerson(one.url)
    await person.deposit('10')
    const { events } = await logOf(person)
    const last = events.length
    const enough = (from: number) => (_: SentEvent, all: SentEvent[]) => all.length === last - from
    const idsOf = (sent: SentEvent[]) => sent.map(({ id }) => id)
    assert.deepEqual(idsOf(await eventsUntil(...stream(person, one), enough(0))), seqs(1, last))
    for (const from of [0, 1, last - 1]) {
      const resumed = await eventsUntil(...stream(person, one, { lastId: String(from) }), enough(from))
      assert.deepEqual(idsOf(resumed), seqs(from + 1, last - from))
      const after = await eventsUntil(...stream(person, one, { query: `?after=${from}` }), enough(from))
      assert.deepEqual(after, resumed)
    }
  })

  test('types filters the stream and the log alike', async () => {
    const person = await createFundedPerson(one.url)
    const query = '?after=0&types=task.created,task.completed'
    const live = eventsUntil(...stream(person, one, { query }), endOf(2))
    await person.deposit('10')
    const events = await live
    assert.deepEqual(
      events.map(({ event }) => event),
      ['task.created', 'task.completed', 'task.created', 'task.completed'],
    )
    const listed = await logOf(person, `&${query.slice(1)}`)
    assert.deepEqual(
      listed.events.map(({ id }) => id),
      events.map(({ id }) => id),
    )
    assert.equal(listed.total_count, 4)
  })

  test('the other instance streams the events of one instance, and no user gets those of another', async () => {
    const [person, stranger] = await Promise.all([createFundedPerson(one.url), createFundedPerson(one.url)])
    const { next_after } = await logOf(person)
    const live = eventsUntil(...stream(person, two, { lastId: next_after }), endOf(1))
    const received = eventsUntil(
      ...stream(stranger, two, { query: `?after=${(await logOf(stranger)).next_after}` }),
      endOf(1),
    )
    const mine = (await person.deposit('10')).body
    const yours = (await stranger.deposit('20')).body
    for (const { data } of await live) {
      const { task_id, data: shown } = data as Envelope
      assert.equal(task_id, mine.task_id)
      assert.equal(shown.poll_url, `${two.url}/v1/tasks/${task_id}`, 'the URL of the requested instance')
    }
    for (const { data } of await received) assert.equal((data as Envelope).task_id, yours.task_id)
  })

  test('wait=true on the instance that did not accept joins the task, and a token of one is valid on the other', async () => {
    const person = await createFundedPerson(one.url)
    await world.fault(`evm:${base}`, { latency_ms: 700, methods: ['eth_sendRawTransaction'] })
    const accepted = await person.deposit('10', { key: 'joined', query: '' })
    assert.equal(accepted.body.status, 'running')
    const joined = await person.deposit('10', { key: 'joined', at: two.url })
    assert.equal(joined.headers.get('idempotent-replayed'), 'true')
    assert.equal(joined.body.task_id, accepted.body.task_id)
    assert.deepEqual([joined.body.status, joined.body.outcome], ['completed', 'executed'])
    assert.equal((await world.effects(person.evm)).length, 1)
    await freshToken(two.url, person.agentId, person.privateKey)
  })

  test('over disconnects at any moment and on either instance the union of the received events is the log', async () => {
    const person = await createFundedPerson(one.url)
    const deposits = 12
    const received: Envelope[] = []
    let turn = 0
    const reader = (async () => {
      for (let ended = 0; ended < deposits + 1; ) {
        const at = turn++ % 2 === 0 ? one : two
        // How many events each connection lasts for: the digits of a fixed number, so that a failure is reproducible.
        const eventsMax = 1 + (Math.trunc(1e9 * Math.abs(Math.sin(turn))) % 5)
        const got = await eventsUntil(
          ...stream(person, at, { lastId: received.at(-1)?.id ?? '0' }),
          (sent, all) =>
            all.length === eventsMax || (hasEnded(sent) && ended + all.filter(hasEnded).length > deposits),
        )
        ended += got.filter(hasEnded).length
        received.push(...got.map(({ data }) => data as Envelope))
      }
    })()
    const keys = Array.from({ length: deposits }, (_, index) => `union-${index}`)
    const all = await Promise.all(
      keys.map((key, index) => person.deposit('5', { key, at: index % 2 === 0 ? one.url : two.url })),
    )
    for (const { body } of all) assert.equal(body.outcome, 'executed', JSON.stringify(body))
    await reader
    const { events } = await logOf(person)
    assert.deepEqual(received.map(withoutAddress), events.map(withoutAddress))
    assert.deepEqual(
      received.map(({ id }) => id),
      seqs(1, events.length),
    )
    assert.equal((await world.effects(person.evm)).length, deposits)
    await using rows = await openIdentityRecords(one.databaseUrl)
    const { rows: addressed } = await rows.db.query(
      `select type from user_event where body::text like '%poll_url%' or body::text like '%' || $1 || '%'`,
      [one.url],
    )
    assert.deepEqual(addressed, [], 'an event is stored without the URL of any instance')
    const { rows: found } = await rows.db.query(
      'select deadlocks::integer as n from pg_stat_database where datname = current_database()',
    )
    assert.deepEqual(found, [{ n: 0 }], 'transactions waited for each other')
  })

  test('when an instance is killed in the middle of a task, the other one completes it, and the stream continues there', async () => {
    await killInstanceOfTask(one, world)
  })

  test('an idle stream is kept alive by comments, and without a token there is none', async () => {
    const person = await createFundedPerson(one.url)
    const leave = new AbortController()
    const timer = setTimeout(() => leave.abort(new Error('no heartbeat came')), heartbeatMsMax)
    try {
      const [url, headers] = stream(person, one, { query: '?after=999' })
      const reply = await fetch(url, { headers, signal: leave.signal })
      assert.match(reply.headers.get('content-type') ?? '', /^text\/event-stream/)
      let text = ''
      for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        if (/^: \w+$/m.test(text)) break
      }
      assert.match(text, /^retry: 3000\n\n/)
      assert.match(text, /^: \w+$/m)
    } finally {
      clearTimeout(timer)
      leave.abort()
    }
    const nobody = sentEvents(`${one.url}${path}`, {}, AbortSignal.timeout(5_000))
    await assert.rejects(nobody.next(), /401/)
  })
})
