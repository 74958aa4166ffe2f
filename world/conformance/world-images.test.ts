/** The local image service, judged by fal's own client. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { ApiError, createFalClient, type FalClient, ValidationError } from '@fal-ai/client'
import { readImageHeader } from '#upstreams/images/image-header.ts'
import { eventually, http } from '../../test/harness/gateway.ts'
import { ownWorld } from '../../test/harness/own-world.ts'

type Output = {
  images: { url: string; width: number; height: number; content_type: string }[]
  timings: { inference: number }
  seed: number
  has_nsfw_concepts: boolean[]
  prompt: string
}
const app = 'fal-ai/flux/schnell'
let world: Awaited<ReturnType<typeof ownWorld>>
let client: FalClient
const control = async (method: string, path: string, body?: unknown) => {
  const reply = await http(world.urls.control + path, { method, ...(body !== undefined && { body }) })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
}
/** The host is fixed in the client, and its middleware sends each request to another one. */
const clientWith = (credentials: string) =>
  createFalClient({
    credentials,
    retry: { maxRetries: 0 },
    requestMiddleware: async (request) => ({
      ...request,
      url: request.url
        .replace('https://queue.fal.run', `${world.urls.images}/queue`)
        .replace('https://fal.run', world.urls.images),
    }),
  })
before(async () => {
  world = await ownWorld([])
  client = clientWith('id:secret')
})
afterEach(async () => {
  await control('DELETE', '/images/settings')
  await control('DELETE', '/faults')
})
after(() => world?.[Symbol.asyncDispose]())

const input = { prompt: 'a whale at dawn', image_size: { width: 320, height: 256 }, seed: 5 }
const run = async (more: object = {}) => {
  const { data, requestId } = await client.run(app, { input: { ...input, ...more } as never })
  assert.match(requestId, /^[0-9a-f-]{36}$/)
  return data as Output
}
const bytesOf = async (output: Output, index = 0) =>
  Buffer.from(await (await fetch(output.images[index]!.url)).arrayBuffer())

test('a request is answered with its images, whose files have the size that it says', async () => {
  const output = await run({ num_images: 2 })
  assert.deepEqual(Object.keys(output).sort(), ['has_nsfw_concepts', 'images', 'prompt', 'seed', 'timings'])
  assert.deepEqual([output.seed, output.prompt, output.has_nsfw_concepts], [5, input.prompt, [false, false]])
  for (const [index, image] of output.images.entries()) {
    const { width, height, contentType } = readImageHeader(await bytesOf(output, index))!
    assert.deepEqual([width, height, contentType], [320, 256, image.content_type])
    assert.deepEqual([image.width, image.height], [320, 256])
  }
})

test('prompt, seed, number, size and steps decide the bytes', async () => {
  const bytes = async (more: object, index = 0) => (await bytesOf(await run(more), index)).toString('base64')
  const first = await bytes({})
  assert.equal(await bytes({}), first)
  const others = await Promise.all([
    bytes({ seed: 6 }),
    bytes({ prompt: 'a bear at dawn' }),
    bytes({ num_images: 2 }, 1),
    bytes({ image_size: { width: 256, height: 320 } }),
    bytes({ num_inference_steps: 40 }),
  ])
  assert.equal(new Set([first, ...others]).size, 6)
})

test('every named size of the service', async () => {
  for (const [name, width, height] of [
    ['square', 512, 512],
    ['portrait_4_3', 768, 1_024],
    ['landscape_16_9', 1_024, 576],
  ] as const) {
    const { images } = await run({ image_size: name })
    assert.deepEqual([images[0]!.width, images[0]!.height], [width, height])
  }
})

test('flagged prompts are not shown, unless the check is off', async () => {
  const prompt = 'nude portrait'
  const [checked, unchecked] = [await run({ prompt }), await run({ prompt, enable_safety_checker: false })]
  assert.deepEqual([checked.has_nsfw_concepts, unchecked.has_nsfw_concepts], [[true], [false]])
  assert.notDeepEqual(await bytesOf(checked), await bytesOf(unchecked))
})

test('a wrong input is a validation error that names its fields', async () => {
  const error = await run({ num_images: 9, image_size: 'huge' }).then(
    () => assert.fail('answered'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ValidationError)
  assert.equal(error.status, 422)
  assert.deepEqual(error.fieldErrors.map(({ loc }) => loc.at(-1)).sort(), ['image_size', 'num_images'])
})

test('keys are checked once some are set, and failures have their status', async () => {
  await control('PUT', '/images/settings', { keys: ['id:other'] })
  await assert.rejects(run(), (error: unknown) => error instanceof ApiError && error.status === 401)
  await clientWith('id:other').run(app, { input: input as never })
  await control('DELETE', '/images/settings')
  await control('PUT', '/faults', { target: 'images', status: 500 })
  await assert.rejects(run(), (error: unknown) => error instanceof ApiError && error.status === 500)
})

test('the queue takes a request, reports its status and has its result', async () => {
  const states: string[] = []
  const { data } = await client.subscribe(app, {
    input: input as never,
    pollInterval: 50,
    onQueueUpdate: ({ status }) => void states.push(status),
  })
  assert.equal((data as Output).images.length, 1)
  assert.equal(states.at(-1), 'COMPLETED')
  const queued = await client.queue.submit(app, { input: input as never })
  assert.deepEqual([queued.status, typeof queued.queue_position], ['IN_QUEUE', 'number'])
  await eventually(
    async () =>
      (await client.queue.status(app, { requestId: queued.request_id })).status === 'COMPLETED'
        ? true
        : undefined,
    'the end of the request',
  )
  const result = await client.queue.result(app, { requestId: queued.request_id })
  assert.deepEqual(await bytesOf(result.data as Output), await bytesOf(data as Output))
})

test('a request of the queue can be cancelled, and an unknown one is not found', async () => {
  await control('PUT', '/images/settings', { latency_ms: 400 })
  const { request_id: requestId } = await client.queue.submit(app, { input: input as never })
  await client.queue.cancel(app, { requestId })
  await assert.rejects(client.queue.result(app, { requestId }))
  await assert.rejects(
    client.queue.status(app, { requestId: crypto.randomUUID() }),
    (error: unknown) => error instanceof ApiError && error.status === 404,
  )
})
