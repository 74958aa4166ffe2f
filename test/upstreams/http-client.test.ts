import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { createHttpClient } from '#upstreams/http-client.ts'

async function server(answer: RequestListener) {
  const http = createServer(answer)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

const get = (url: string, more: object = {}) => ({
  url,
  method: 'GET',
  headers: {},
  timeoutMs: 2_000,
  maxBytes: 1_000,
  ...more,
})
const codeOf = async (promise: Promise<unknown>) => {
  const thrown = await promise.then(
    () => assert.fail('no fault'),
    (error: unknown) => error,
  )
  assert.ok(thrown instanceof Fault, String(thrown))
  return thrown.code
}

test('an answer has its status, whatever it is', async () => {
  await using there = await server((_, reply) => reply.writeHead(503).end('no'))
  await using client = createHttpClient({ failpoints: noFailpoints })
  assert.deepEqual(await client.fetch(get(there.url)), { status: 503, body: 'no' })
})

test('an unreachable server certainly received nothing', async () => {
  const { url } = await server(() => {}).then(async (there) => {
    await there[Symbol.asyncDispose]()
    return there
  })
  await using client = createHttpClient({ failpoints: noFailpoints })
  assert.equal(await codeOf(client.fetch(get(url))), 'unavailable')
})

test('after silence or a broken connection it is unknown whether anything arrived', async () => {
  await using silent = await server(() => {})
  await using torn = await server((request) => request.socket.destroy())
  await using client = createHttpClient({ failpoints: noFailpoints })
  const ended: number[] = []
  const timeOut = async (timeoutMs: number) => {
    assert.equal(await codeOf(client.fetch(get(silent.url, { timeoutMs }))), 'upstream_timeout')
    ended.push(timeoutMs)
  }
  await Promise.all([timeOut(1_200), timeOut(200)])
  assert.deepEqual(ended, [200, 1_200], 'each ends at its own limit')
  assert.equal(await codeOf(client.fetch(get(torn.url))), 'upstream_timeout')
})

test('a slow body ends at the deadline, and an endless one at the limit of bytes', async () => {
  await using slow = await server((_, reply) => {
    reply.write('x')
    const timer = setInterval(() => reply.write('x'), 20)
    reply.on('close', () => clearInterval(timer))
  })
  await using large = await server((_, reply) => reply.end('x'.repeat(5_000)))
  await using client = createHttpClient({ failpoints: noFailpoints })
  assert.equal(await codeOf(client.fetch(get(slow.url, { timeoutMs: 300 }))), 'upstream_timeout')
  assert.equal(await codeOf(client.fetch(get(large.url))), 'upstream_rejected')
})

test('a server that keeps failing is skipped for a moment, and then tried again', async () => {
  let hits = 0
  let broken = true
  await using there = await server((request, reply) => {
    hits += 1
    if (broken) request.socket.destroy()
    else reply.end('fine')
  })
  await using client = createHttpClient({ failpoints: noFailpoints })
  for (let turn = 0; turn < 12; turn++) await codeOf(client.fetch(get(there.url)))
  assert.ok(hits < 12, `${hits} requests reached it`)
  broken = false
  const end = performance.now() + 30_000
  while (true) {
    const reply = await client.fetch(get(there.url)).catch((): undefined => undefined)
    if (reply) break
    assert.ok(performance.now() < end, 'it was never tried again')
  }
})

test('both sides of a request can fail by name', async () => {
  await using there = await server((_, reply) => reply.end('fine'))
  const passed: string[] = []
  const label = new URL(there.url).origin
  await using client = createHttpClient({
    failpoints: { pass: (name) => void passed.push(name) },
    labels: { [label]: 'base' },
  })
  await client.fetch(get(there.url))
  assert.deepEqual(passed, ['net:base:before', 'net:base:after'])
})

test('a body is read while it arrives, within its limits of bytes and time', async () => {
  await using there = await server((_, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream', 'retry-after': '3' })
    reply.write('one')
    const timer = setTimeout(() => reply.end('two'), 200)
    reply.on('close', () => clearTimeout(timer))
  })
  await using client = createHttpClient({ failpoints: noFailpoints })
  const read = async (more: object = {}) => {
    const { chunks, ...head } = await client.open(get(there.url, more))
    const texts: string[] = []
    for await (const chunk of chunks) texts.push(Buffer.from(chunk).toString())
    return { head, texts }
  }
  assert.deepEqual(await read(), {
    head: { status: 200, contentType: 'text/event-stream', retryAfterMs: 3_000 },
    texts: ['one', 'two'],
  })
  assert.equal(await codeOf(read({ maxBytes: 4 })), 'upstream_rejected')
  assert.equal(await codeOf(read({ timeoutMs: 100 })), 'upstream_timeout')
})

test('a body that breaks off is a fault for its reader, and a signal frees the connection', async () => {
  const left = Promise.withResolvers<void>()
  await using torn = await server((request, reply) => {
    reply.writeHead(200)
    reply.write('one', () => request.socket.destroy())
  })
  await using endless = await server((request, reply) => {
    reply.writeHead(200)
    reply.write('one')
    request.socket.once('close', () => left.resolve())
  })
  await using client = createHttpClient({ failpoints: noFailpoints })
  const readAll = async (url: string) => {
    for await (const _ of (await client.open(get(url))).chunks);
  }
  assert.equal(await codeOf(readAll(torn.url)), 'upstream_timeout')
  const caller = new AbortController()
  const { chunks } = await client.open(get(endless.url, { signal: caller.signal }))
  const reason = new Error('the caller left')
  await assert.rejects(async () => {
    for await (const _ of chunks) caller.abort(reason)
  }, reason)
  await left.promise
})
