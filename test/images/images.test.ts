/** Images of a description: what a call answers, what it costs, and what its repetition gives. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { readImageHeader } from '#upstreams/images/image-header.ts'
import { type Account, bytesOf, createImageApp, type ImageApp, made } from './image-app.ts'

let app: ImageApp
let account: Account
before(async () => {
  app = await createImageApp()
  account = await app.account()
})
afterEach(() => app.reset())
after(() => app?.[Symbol.asyncDispose]())

const small = '256x256'
const request = (more: object = {}) => ({
  user: account.userId,
  query: 'a rocket over the sea',
  image_size: small,
  ...more,
})

test('a call answers with the images, and costs one credit however many they are', async () => {
  const before = await account.credits()
  const body = made(await app.ask(request({ num_images: 3, seed: 7 })))
  assert.deepEqual(Object.keys(body).sort(), [
    'credits_available',
    'has_nsfw_concepts',
    'images',
    'prompt',
    'seed',
    'timings',
  ])
  assert.equal(body.images.length, 3)
  assert.deepEqual(body.has_nsfw_concepts, [false, false, false])
  assert.deepEqual([body.seed, body.prompt], [7, 'a rocket over the sea'])
  assert.ok(body.timings.inference > 0)
  assert.equal(body.credits_available, before - 1)
  assert.equal(await account.credits(), before - 1)
  const files = await Promise.all(body.images.map(bytesOf))
  assert.equal(new Set(files.map((bytes) => bytes.toString('base64'))).size, 3)
  for (const [index, bytes] of files.entries()) {
    const { url, ...shown } = body.images[index]!
    assert.ok(url.startsWith(`${app.gateway.url}/files/`), url)
    const { contentType, width, height } = readImageHeader(bytes)!
    assert.deepEqual(shown, { width, height, content_type: contentType })
  }
})

test('every size has its pixels, and a custom one has its height first', async () => {
  const sizes: [string | null | undefined, number, number][] = [
    [undefined, 1_024, 1_024],
    [null, 1_024, 1_024],
    ['default', 1_024, 1_024],
    ['square', 512, 512],
    ['portrait_4_3', 768, 1_024],
    ['portrait_16_9', 576, 1_024],
    ['lanscape_4_3', 1_024, 768],
    ['landscape_4_3', 1_024, 768],
    ['landscape_16_9', 1_024, 576],
    ['square_hd', 1_024, 1_024],
    ['portrait_hd', 1_024, 1_536],
    ['landscape_hd', 1_536, 1_024],
    ['256x512', 512, 256],
  ]
  for (const [size, width, height] of sizes) {
    const { images } = made(
      await app.ask({
        user: account.userId,
        query: 'sea poster',
        ...(size !== undefined && { image_size: size }),
      }),
    )
    const header = readImageHeader(await bytesOf(images[0]!))!
    assert.deepEqual([header.width, header.height], [width, height], String(size))
    assert.deepEqual([images[0]!.width, images[0]!.height], [width, height], String(size))
  }
})

test('the same seed and query give the same bytes; without a seed one is drawn each time', async () => {
  const bytes = async (more: object) => {
    const body = made(await app.ask(request(more)))
    return { seed: body.seed, bytes: (await bytesOf(body.images[0]!)).toString('base64') }
  }
  const first = await bytes({ seed: 2 ** 53 - 1 })
  assert.deepEqual(await bytes({ seed: 2 ** 53 - 1 }), first)
  assert.notEqual((await bytes({ seed: 1 })).bytes, first.bytes)
  assert.notEqual((await bytes({ seed: 2 ** 53 - 1, query: 'a bear' })).bytes, first.bytes)
  const [one, other] = [await bytes({}), await bytes({ seed: null })]
  assert.notEqual(one.seed, other.seed)
  assert.deepEqual(await bytes({ seed: one.seed }), one)
})

test('a repetition under its key costs nothing and has the same images', async () => {
  const before = await account.credits()
  const first = await app.ask(request(), { key: 'lost-reply' })
  const again = await app.ask(request(), { key: 'lost-reply' })
  const [one, two] = [made(first), made(again)]
  assert.equal(first.headers.get('idempotent-replayed'), null)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.headers.get('idempotency-key'), 'lost-reply')
  assert.equal(two.seed, one.seed)
  assert.deepEqual(await bytesOf(two.images[0]!), await bytesOf(one.images[0]!))
  assert.equal(await account.credits(), before - 1)
  assert.equal((await app.requests()).length, 1)
})

test('calls under one key that arrive together make one image', async () => {
  const before = await account.credits()
  const answers = await Promise.all(Array.from({ length: 8 }, () => app.ask(request(), { key: 'together' })))
  assert.equal(new Set(answers.map((each) => made(each).seed)).size, 1)
  assert.equal(await account.credits(), before - 1)
})

test('a key of another body, or of another user, is a conflict', async () => {
  const other = await app.account()
  made(await app.ask(request(), { key: 'taken' }))
  for (const body of [request({ query: 'a whale' }), request({ user: other.userId })]) {
    const { status, body: refused } = await app.ask(body, { key: 'taken' })
    assert.deepEqual([status, refused.code], [409, 'idempotency_conflict'])
  }
  assert.equal(await other.credits(), 200)
})

test('the spelling without the last slash is the same operation', async () => {
  made(await app.ask(request(), { path: '/chat/image' }))
  const { body } = (await (
    await fetch(`${app.gateway.url}/openapi.json`)
  )
    .json()
    .then((body) => ({ body }))) as { body: { paths: object } }
  assert.deepEqual(
    Object.keys(body.paths).filter((path) => path.startsWith('/chat/image')),
    ['/chat/image/'],
  )
})

test('flagged images say so, and are still charged', async () => {
  const before = await account.credits()
  const body = made(await app.ask(request({ query: 'nsfw portrait', num_images: 2 })))
  assert.deepEqual(body.has_nsfw_concepts, [true, true])
  assert.equal(await account.credits(), before - 1)
})

test('what is no request is refused by its field, and costs nothing', async () => {
  const before = await account.credits()
  const wrong: [object, string][] = [
    [{ user: 'ada' }, 'user'],
    [{ query: '' }, 'query'],
    [{ query: 'x'.repeat(4_001) }, 'query'],
    [{ image_size: 'huge' }, 'image_size'],
    [{ image_size: '99999x99999' }, 'image_size'],
    [{ image_size: '128x512' }, 'image_size'],
    [{ image_size: '512x2049' }, 'image_size'],
    [{ image_size: '0512x512' }, 'image_size'],
    [{ num_images: 0 }, 'num_images'],
    [{ num_images: 5 }, 'num_images'],
    [{ num_images: 1_000_000 }, 'num_images'],
    [{ num_inference_steps: 51 }, 'num_inference_steps'],
    [{ seed: -1 }, 'seed'],
    [{ seed: 1.5 }, 'seed'],
  ]
  for (const [more, field] of wrong) {
    const { status, body } = await app.ask(request(more))
    assert.equal(status, 422, JSON.stringify(more))
    const detail = body.detail as { loc: string[] }[]
    assert.ok(
      detail.every(({ loc }) => loc[0] === 'body' && loc[1] === field),
      JSON.stringify(body),
    )
  }
  assert.equal(await account.credits(), before)
  assert.equal((await app.requests()).length, 0)
})

test('the user sees the call as a task, without an address that anyone could use', async () => {
  const { status, body } = await fetch(`${app.gateway.url}/v1/tasks?kind=image_create`, {
    headers: { authorization: `Bearer ${account.agent.token}` },
  }).then(async (reply) => ({
    status: reply.status,
    body: (await reply.json()) as { items: { kind: string; status: string }[] },
  }))
  assert.equal(status, 200)
  assert.ok(body.items.length > 3)
  assert.ok(!JSON.stringify(body).includes('sig='))
})
