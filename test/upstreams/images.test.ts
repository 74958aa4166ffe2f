/** The client of an image service: what it repeats, what it takes for an image, and where it goes for one. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { noFailpoints } from '#kernel/failpoint.ts'
import { openGuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createImageService } from '#upstreams/images/images.ts'

type Answer = (incoming: IncomingMessage, answer: ServerResponse) => void
let answers: Answer[] = []
let received: { authorization: string | undefined; body: Record<string, unknown> }[] = []
const server = createServer((incoming, answer) => {
  let text = ''
  incoming.on('data', (chunk) => {
    text += chunk
  })
  incoming.on('end', () => {
    received.push({ authorization: incoming.headers.authorization, body: JSON.parse(text) })
    ;(answers.length > 1 ? answers.shift()! : answers[0]!)(incoming, answer)
  })
})
const net = createHttpClient({ failpoints: noFailpoints })
const guarded = openGuardedFetch()
let url = ''
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  received = []
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await net[Symbol.asyncDispose]()
  await guarded[Symbol.asyncDispose]()
})

const order = { prompt: 'a', size: { width: 512, height: 256 }, count: 1, steps: 4, seed: 9 }
const serviceAt = (at: string, fetchPublic = guarded.fetch, key?: string) =>
  createImageService({
    url: at,
    app: 'fal-ai/flux/schnell',
    key,
    net,
    fetchPublic,
    imageBytesMax: 1_000,
    timeoutMs: 400,
    pauseMs: 5,
  })
const signal = new AbortController().signal
const make = (key?: string) => serviceAt(url, guarded.fetch, key).make(order, signal)
const json =
  (status: number, body: unknown): Answer =>
  (_, answer) =>
    answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const fine = json(200, {
  images: [{ url: 'https://files.example/a.png' }],
  seed: 9,
  timings: { inference: 0.5 },
})
const at = (address: string) => ({ urls: [address], inferenceSeconds: 0, seed: 9, flagged: [false] })

test('a request has the size in pixels, the seed and the key', async () => {
  answers = [fine]
  const made = await make('id:secret')
  assert.deepEqual(made, {
    urls: ['https://files.example/a.png'],
    inferenceSeconds: 0.5,
    seed: 9,
    flagged: [false],
  })
  assert.deepEqual(received, [
    {
      authorization: 'Key id:secret',
      body: {
        prompt: 'a',
        image_size: { width: 512, height: 256 },
        num_images: 1,
        num_inference_steps: 4,
        seed: 9,
        enable_safety_checker: true,
      },
    },
  ])
})

test('429 and 503 are repeated once, and nothing else is', async () => {
  for (const status of [429, 503]) {
    answers = [json(status, {}), fine]
    await make()
    assert.equal(received.length, 2)
    received = []
    answers = [json(status, {})]
    await assert.rejects(make(), { code: 'unavailable' })
    assert.equal(received.length, 2)
    received = []
  }
  for (const [status, code] of [
    [500, 'unavailable'],
    [422, 'upstream_rejected'],
    [401, 'upstream_rejected'],
  ] as const) {
    answers = [json(status, { detail: [{ loc: ['body', 'prompt'], msg: 'secret words' }] })]
    await assert.rejects(
      make(),
      (error: Error & { code: string }) => error.code === code && !error.message.includes('secret'),
    )
    assert.equal(received.length, 1)
    received = []
  }
})

test('a request that was sent and not answered is never repeated', async () => {
  for (const silent of [((incoming) => incoming.socket.destroy()) as Answer, (() => {}) as Answer]) {
    answers = [silent]
    await assert.rejects(make(), { code: 'upstream_timeout' })
    assert.equal(received.length, 1)
    received = []
  }
})

test('a connection that is refused is tried once more, and is then unavailable', async () => {
  await assert.rejects(serviceAt('http://127.0.0.1:1').make(order, signal), { code: 'unavailable' })
})

test('an answer that is none is refused', async () => {
  const wrong = [
    'text',
    {},
    { images: [] },
    { images: [{}] },
    { images: [{ url: 'https://a.b/c' }, { url: 'https://a.b/d' }] },
    { images: [{ url: `https://a.b/${'x'.repeat(3_000)}` }] },
  ]
  for (const body of wrong) {
    answers = [json(200, body)]
    await assert.rejects(make(), { code: 'upstream_rejected' }, JSON.stringify(body).slice(0, 80))
  }
})

test('an address that is not public is not asked, however it is written', async () => {
  const inner = [
    'http://files.example/a.png',
    'https://127.0.0.1/a.png',
    'https://127.1/a.png',
    'https://0x7f.1/a.png',
    'https://2130706433/a.png',
    'https://0177.0.0.1/a.png',
    'https://[::1]/a.png',
    'https://[::ffff:7f00:1]/a.png',
    'https://[fd00::1]/a.png',
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/a.png',
    'https://192.168.1.1/a.png',
    'https://172.16.0.1/a.png',
    'https://100.64.0.1/a.png',
    'https://0.0.0.0/a.png',
    'https://localhost/a.png',
    'https://metadata.internal/a.png',
    'https://files.example:8443/a.png',
    'https://user:pass@files.example/a.png',
    'file:///etc/passwd',
    'gopher://files.example/a',
    'data:image/png;base64,AAAA',
    url,
  ]
  for (const address of inner)
    await assert.rejects(serviceAt(url).load(at(address), signal), { code: 'upstream_rejected' }, address)
  assert.equal(received.length, 0)
})

/** The header of a picture, and so many bytes in all. */
function pngOf(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  bytes.write('IHDR', 12, 'latin1')
  bytes.writeUInt32BE(4, 16)
  bytes.writeUInt32BE(4, 20)
  return bytes
}

test('a redirect, another type, too many bytes and bytes of another kind are no image', async () => {
  const loading = (response: () => Response) =>
    serviceAt(url, (async () => response()) as never).load(at('https://files.example/a.png'), signal)
  const png = { 'content-type': 'image/png' }
  assert.equal((await loading(() => new Response(pngOf(1_000), { headers: png })))[0]!.width, 4)
  for (const response of [
    () => new Response(null, { status: 302, headers: { location: 'https://127.0.0.1/' } }),
    () => new Response(pngOf(33), { status: 404, headers: png }),
    () => new Response('<svg/>', { headers: { 'content-type': 'image/svg+xml' } }),
    () => new Response('<svg/>', { headers: png }),
    () => new Response(pngOf(1_001), { headers: png }),
  ])
    await assert.rejects(loading(response), { code: 'upstream_rejected' })
})
