/** One credit a call, taken only with a 200: shortages, failures of the service, and calls at the same time. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { dataFolder, eventually, launch, upstreamsOf } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { processWorld } from '../harness/process-world.ts'
import { type Account, createImageApp, type ImageApp, made } from './image-app.ts'

let app: ImageApp
let account: Account
before(async () => {
  app = await createImageApp()
  account = await app.account()
})
afterEach(() => app.reset())
after(() => app?.[Symbol.asyncDispose]())

const request = (userId = account.userId) => ({
  user: userId,
  query: 'a coin, poster',
  image_size: '256x256',
})

test('without a credit the answer says what is missing, and nothing is asked of the service', async () => {
  const poor = await app.account()
  await app.leave(poor.userId, 0)
  const { status, body } = await app.ask(request(poor.userId))
  const { code, required, available, missing } = body as unknown as Record<string, unknown>
  assert.deepEqual(
    { status, code, required, available, missing },
    {
      status: 402,
      code: 'insufficient_credits',
      required: 1,
      available: 0,
      missing: 1,
    },
  )
  assert.equal((await app.requests()).length, 0)
})

test('64 calls at once spend the credits that there are and no more', async () => {
  const poor = await app.account()
  await app.leave(poor.userId, 3)
  const answers = await Promise.all(Array.from({ length: 64 }, () => app.ask(request(poor.userId))))
  const counts = Map.groupBy(answers, ({ status }) => status)
  assert.deepEqual([counts.get(200)?.length, counts.get(402)?.length], [3, 61])
  assert.equal(await poor.credits(), 0)
  assert.equal((await app.requests()).length, 3)
  assert.equal(await ledgerDrift(app.admin), 0)
})

const failures: [string, object | undefined, object | undefined, number, string, number][] = [
  ['the service rejects the request', undefined, { rejects: true }, 502, 'upstream_rejected', 1],
  ['the service limits requests', { status: 429 }, undefined, 503, 'unavailable', 0],
  ['the service does not work', { status: 500 }, undefined, 503, 'unavailable', 0],
  ['the service answers with a page', undefined, { mistake: 'not_json' }, 502, 'upstream_rejected', 1],
  [
    'the reply of the service is lost',
    { drop_reply: true, methods: ['generate'] },
    undefined,
    504,
    'upstream_timeout',
    0,
  ],
  ['an image has another type', undefined, { mistake: 'content_type' }, 502, 'upstream_rejected', 1],
  ['an image is too large', undefined, { mistake: 'oversized' }, 502, 'upstream_rejected', 1],
  ['an image is gone', undefined, { mistake: 'dead_url' }, 502, 'upstream_rejected', 1],
  ['an image is none', undefined, { mistake: 'wrong_bytes' }, 502, 'upstream_rejected', 1],
  ['an image is missing', undefined, { mistake: 'missing_image' }, 502, 'upstream_rejected', 1],
  ['an image is at an inner address', undefined, { mistake: 'foreign_url' }, 502, 'upstream_rejected', 1],
]
for (const [what, fault, settings, status, code, painted] of failures)
  test(`where ${what}, the credit comes back`, async () => {
    const before = await account.credits()
    if (fault) await app.world('PUT', '/faults', { target: 'images', ...fault })
    if (settings) await app.world('PUT', '/images/settings', settings)
    const answer = await app.ask(request(), { key: `fails-${what.replaceAll(' ', '-')}` })
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(answer.body))
    assert.match(String(answer.body.detail), /No credit was taken/)
    assert.equal((await app.requests()).length, painted)
    // One request, and one more only where the service has said that it did nothing.
    if (fault) assert.equal(await app.refused(), 'status' in fault && fault.status === 429 ? 2 : 1)
    assert.equal(await account.credits(), before)
    // The repetition is answered alike, and asks nobody.
    await app.reset()
    const again = await app.ask(request(), { key: `fails-${what.replaceAll(' ', '-')}` })
    assert.deepEqual([again.status, again.body.code], [status, code])
    assert.equal((await app.requests()).length, 0)
    made(await app.ask(request()))
    assert.equal(await account.credits(), before - 1)
  })

/** A call whose client may leave. */
const keyed = (key: string, signal: AbortSignal): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-backend-key': app.backendKey, 'idempotency-key': key },
  body: JSON.stringify(request()),
  signal,
})

test('one refusal of the service is repeated once', async () => {
  await app.world('PUT', '/faults', { target: 'images', status: 503, count: 1 })
  made(await app.ask(request()))
  assert.equal((await app.requests()).length, 1)
})

test('a client that leaves loses nothing: the same key has the images', async () => {
  const before = await account.credits()
  await app.world('PUT', '/images/settings', { latency_ms: 700 })
  const left = fetch(`${app.gateway.url}/chat/image/`, keyed('left', AbortSignal.timeout(300)))
  await assert.rejects(left)
  const { images } = made(await app.ask(request(), { key: 'left' }))
  assert.equal(images.length, 1)
  assert.equal(await account.credits(), before - 1)
  assert.equal((await app.requests()).length, 1)
})

test('the credit is held while the images are made', async () => {
  const before = await account.credits()
  await app.world('PUT', '/images/settings', { latency_ms: 600 })
  const asked = app.ask(request())
  await eventually(async () => ((await account.credits()) < before ? true : undefined), 'the credit is held')
  made(await asked)
  assert.equal(await account.credits(), before - 1)
})

test('an instance that stops waits for its images, so that the service is asked and paid once', async () => {
  using folder = dataFolder()
  const leaving = await launch({
    env: {
      ...upstreamsOf(await processWorld()),
      HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
      RATE_IMAGE: '0',
      DATA_DIR: folder.path,
      DATABASE_URL: app.gateway.databaseUrl,
    },
  })
  await app.world('PUT', '/images/settings', { latency_ms: 1_500 })
  const left = new AbortController()
  const asked = fetch(`${leaving.url}/chat/image/`, keyed('stopped', left.signal))
  await eventually(async () => (await app.requests()).length === 1 || undefined, 'the service is asked')
  // The instance waits for requests too; this one has gone.
  left.abort()
  await assert.rejects(asked)
  await leaving.stop()
  made(await app.ask(request(), { key: 'stopped' }))
  assert.equal((await app.requests()).length, 1)
})
