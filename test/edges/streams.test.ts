import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { seal } from '#edges/mcp/sealed-message.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { connectTo, createHttpApp, type HttpApp, sendRequest, tokens } from './http-app.ts'

type Reader = {
  headers: Headers
  until(text: string | RegExp): Promise<string>
  rest(): Promise<string>
  leave(): void
}

/** Reads a stream chunk by chunk, because it may never end. */
async function open(url: string, path: string, headers: Record<string, string> = {}): Promise<Reader> {
  const controller = new AbortController()
  const response = await fetch(url + path, {
    headers: { authorization: tokens.all, ...headers },
    signal: controller.signal,
  })
  assert.equal(response.status, 200)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    headers: response.headers,
    async until(wanted) {
      const found = () => (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text))
      while (!found()) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`ended before ${wanted}: ${text}`)
        text += value
      }
      return text
    },
    async rest() {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return text
        text += value
      }
    },
    leave: () => controller.abort(),
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Yields the given events, then waits until the last listener leaves. */
const openEndedStream = (events: object[], ended: () => void = () => undefined) =>
  async function* (signal: AbortSignal) {
    try {
      yield* events
      await aborted(signal)
    } finally {
      ended()
    }
  }

async function createStreamApp(t: TestContext, deps: Parameters<typeof createHttpApp>[0]) {
  const app = await createHttpApp(deps)
  t.after(() => app.close())
  return app
}

test('events are written as they come, with id, name and data, and the stream ends with its producer', async (t) => {
  const app = await createStreamApp(t, {
    streams: {
      async *short() {
        yield { id: '1', event: 'meta', data: { a: 1 } }
        yield { comment: 'two\nlines' }
        yield { id: 'x\ny', event: 'done', data: { text: 'line\nbreak' } }
      },
    },
  })
  const stream = await open(app.url, '/v1/watch?mode=short', { origin: 'https://app.example' })
  assert.equal(
    await stream.rest(),
    'retry: 3000\n\n' +
      'id: 1\nevent: meta\ndata: {"a":1}\n\n' +
      ': twolines\n\n' +
      'id: xy\nevent: done\ndata: {"text":"line\\nbreak"}\n\n' +
      'id: xy\n\n',
  )
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(stream.headers.get('cache-control'), 'no-cache, no-transform')
  assert.equal(stream.headers.get('x-accel-buffering'), 'no')
  assert.equal(stream.headers.get('content-length'), null)
  assert.equal(stream.headers.get('access-control-allow-origin'), 'https://app.example')
  assert.match(stream.headers.get('x-request-id') ?? '', /^[\w-]{36}$/)
  assert.equal(stream.headers.get('x-content-type-options'), 'nosniff')
})

test('a rejection before the first event is an HTTP error, a later one is an error event', async (t) => {
  const app = await createStreamApp(t, {
    streams: {
      // biome-ignore lint/correctness/useYield: it refuses before it yields
      async *poor() {
        throw new Fault('insufficient_balance', 'No balance', { extras: { required: 1 } })
      },
      async *late() {
        yield { event: 'meta', data: {} }
        throw new Fault('unavailable', 'The model is away')
      },
      async *bug() {
        yield { event: 'meta', data: {} }
        throw new Error('an internal detail')
      },
    },
  })
  const poor = await sendRequest(app.url, 'GET /v1/watch?mode=poor')
  assert.deepEqual([poor.status, poor.body.code, poor.body.required], [409, 'insufficient_balance', 1])
  const absent = await sendRequest(app.url, 'GET /v1/watch?mode=absent')
  assert.equal(absent.status, 404)
  const late = await (await open(app.url, '/v1/watch?mode=late')).rest()
  assert.match(
    late,
    /event: error\ndata: \{"message":"The model is away","code":"unavailable","retryable":true/,
  )
  const bug = await (await open(app.url, '/v1/watch?mode=bug')).rest()
  assert.match(bug, /"code":"internal"/)
  assert.doesNotMatch(bug, /an internal detail/)
  assert.ok(
    app.lines.some(({ facts }) => String((facts.error as Error)?.message).includes('an internal detail')),
  )
})

test('an idle stream opens, is kept alive by comments and ends for the producer when the client leaves', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const app = await createStreamApp(t, {
    streams: { silent: openEndedStream([], resolve) },
    sse: { heartbeatMs: 20, bufferBytesMax: 65_536, stallMs: 1_000 },
  })
  const stream = await open(app.url, '/v1/watch?mode=silent')
  await stream.until(/: ping\n\n[\s\S]*: ping\n\n/)
  assert.match(await (await fetch(`${app.url}/metrics`)).text(), /^portico_event_streams_open 1$/m)
  stream.leave()
  await promise
})

test('Last-Event-ID reaches the function', async (t) => {
  const app = await createStreamApp(t, {
    streams: {
      async *resumed(_signal, lastEventId) {
        yield { data: { from: lastEventId ?? null } }
      },
    },
  })
  assert.match(
    await (await open(app.url, '/v1/watch?mode=resumed', { 'last-event-id': '41' })).rest(),
    /"from":"41"/,
  )
  assert.match(await (await open(app.url, '/v1/watch?mode=resumed')).rest(), /"from":null/)
})

test('a POST can open a stream and carries its key', async (t) => {
  const app = await createStreamApp(t, {
    streams: {
      async *hello() {
        yield { data: 1 }
      },
    },
  })
  const headers = { 'idempotency-key': 'c-1' }
  const answer = await sendRequest(app.url, 'POST /v1/talk', { body: { query: 'hello' }, headers })
  assert.match(answer.text, /data: 1\n\n/)
  assert.equal(app.seen.at(-1)?.options.key, 'c-1')
})

test('a client that does not read makes the producer wait, and is cut in the end', async (t) => {
  let produced = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const bufferBytesMax = 64 * 1024
  const app = await createStreamApp(t, {
    sse: { heartbeatMs: 15_000, bufferBytesMax, stallMs: 300 },
    streams: {
      async *flood(signal) {
        try {
          while (!signal.aborted) yield { id: String(++produced), data: 'x'.repeat(1_000) }
        } finally {
          resolve()
        }
      },
    },
  })
  const socket = connectTo(app.url)
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(`GET /v1/watch?mode=flood HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n\r\n`)
  await promise
  // The kernel's own buffers are beyond our cap; without a cap this would never end.
  assert.ok(produced < 20_000, `${produced} events`)
  socket.destroy()
})

test('a client that reads nothing is cut although the server goes on to write little', async (t) => {
  const ended = Promise.withResolvers<void>()
  let written = 0
  const writtenMax = 8 * 1024 * 1024
  const bufferBytesMax = 64 * 1024 * 1024
  const app = await createStreamApp(t, {
    sse: { heartbeatMs: 10, bufferBytesMax, stallMs: 50 },
    streams: {
      async *trickle(signal) {
        try {
          // More than the buffers of the kernel take.
          yield { data: 'x'.repeat(16 * 1024 * 1024) }
          while (!signal.aborted && written < writtenMax) {
            yield { data: 'x'.repeat(100) }
            written += 100
            await new Promise((resolve) => setImmediate(resolve))
          }
        } finally {
          ended.resolve()
        }
      },
    },
  })
  const socket = connectTo(app.url)
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(`GET /v1/watch?mode=trickle HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n\r\n`)
  await ended.promise
  assert.ok(written < writtenMax, `${written} bytes`)
  socket.destroy()
})

test("a client of MCP's transport of 2024 that does not read is cut, and its mailbox keeps what it has", async (t) => {
  const session = Promise.withResolvers<string>()
  const closed = Promise.withResolvers<void>()
  let taken = 0
  const takenMax = 100
  const app = await createStreamApp(t, {
    sse: { heartbeatMs: 10, bufferBytesMax: 64 * 1024, stallMs: 300 },
    mailboxes: {
      open: async () => ({
        async *messages(signal: AbortSignal) {
          const message = seal(await session.promise, JSON.stringify({ pad: 'x'.repeat(1024 * 1024) }))
          for (; !signal.aborted && taken < takenMax; taken++) yield message
        },
        [Symbol.asyncDispose]: async () => closed.resolve(),
      }),
      isOpen: async () => true,
      send: async () => true,
    },
  })
  const socket = connectTo(app.url)
  socket.on('error', () => undefined)
  socket.once('data', (chunk: Buffer) => {
    socket.pause()
    session.resolve(/session_id=([\w-]{43})/.exec(chunk.toString())?.[1] ?? '')
  })
  socket.write(`GET /mcp/sse HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${tokens.all}\r\n\r\n`)
  await closed.promise
  // The kernel's own buffers are beyond our cap.
  assert.ok(taken < takenMax / 4, `${taken} messages of a MiB`)
  socket.destroy()
})

/** Whether a closing server had to cut connections that did not end by themselves. */
function watchCut({ edge }: Pick<HttpApp, 'edge'>): { wasCut: boolean } {
  const { server } = edge.fastify
  const watched = { wasCut: false }
  const closeAll = server.closeAllConnections.bind(server)
  server.closeAllConnections = () => {
    watched.wasCut = true
    closeAll()
  }
  return watched
}

test('a closing server ends streams with their last id, answers waits with the current task and rejects new requests', async () => {
  const app = await createHttpApp({ streams: { news: openEndedStream([{ id: '7', data: {} }]) } })
  const stream = await open(app.url, '/v1/watch?mode=news')
  await stream.until('id: 7')
  const waiting = sendRequest(app.url, 'POST /v1/pay?wait=true&timeout=90', { body: { amount_usdc: 5 } })
  while (!app.seen.some(({ options }) => options.wait)) await new Promise((resolve) => setImmediate(resolve))
  const watched = watchCut(app)
  const closing = app.close()
  assert.match(await stream.rest(), /id: 7\n\n$/)
  const answer = await waiting
  assert.deepEqual([answer.status, answer.body.status], [200, 'running'])
  await closing
  assert.equal(watched.wasCut, false)
  await assert.rejects(fetch(`${app.url}/health`))
})

/** Resolves with all bytes of a connection that stays silent until `send` is called. */
function silentConnection(url: string) {
  const socket = connectTo(url)
  const { promise: createStreamApp, resolve: isOpen } = Promise.withResolvers<void>()
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  let text = ''
  socket.once('connect', () => isOpen())
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  socket.on('error', () => undefined)
  socket.once('close', () => end(text))
  return { createStreamApp, ended, send: (bytes: string) => socket.write(bytes) }
}

test('a closing server rejects new requests and does not wait for idle connections', async () => {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const app = await createHttpApp({
    health: async () => {
      asked.resolve()
      await gate.promise
      return { body: {}, down: false }
    },
  })
  const late = silentConnection(app.url)
  const silent = silentConnection(app.url)
  await Promise.all([late.createStreamApp, silent.createStreamApp])
  const slow = sendRequest(app.url, 'GET /health')
  await asked.promise
  const watched = watchCut(app)
  const closing = app.close()
  late.send('GET /v1/probe/open HTTP/1.1\r\nhost: x\r\n\r\n')
  assert.match(await late.ended, /^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*"code":"unavailable"/)
  assert.equal(await silent.ended, '')
  gate.resolve()
  assert.equal((await slow).status, 200)
  await closing
  assert.equal(watched.wasCut, false)
})

test('a stream ends when the credential that opened it becomes invalid', async (t) => {
  let fault: Fault | undefined
  let released = false
  let asked = 0
  const app = await createStreamApp(t, {
    quotas: { checkEveryMs: 20 },
    authenticate: async () => {
      asked += 1
      if (fault) throw fault
      return { userId: 'u1', agentId: 'agt_1', scheme: 'keypair', scopes: new Set(['read'] as const) }
    },
    streams: {
      long: openEndedStream([{ id: '7', event: 'note', data: {} }], () => {
        released = true
      }),
    },
  })
  for (const code of ['invalid_token', 'suspended'] as const) {
    released = false
    const stream = await open(app.url, '/v1/watch?mode=long')
    await stream.until('event: note')
    fault = new Fault('unavailable', 'The store is away')
    const before = asked
    while (asked < before + 2) await new Promise((resolve) => setImmediate(resolve))
    fault = new Fault(code, 'It does not count')
    const text = await stream.rest()
    assert.match(text, new RegExp(`event: error\ndata: .*"code":"${code}"`))
    assert.match(text, /id: 7\n\n$/, 'a client with a new token resumes behind the last event')
    assert.equal(released, true)
    fault = undefined
  }
})

test('a user has a share of streams, and a full share of one user rejects no other', async (t) => {
  const app = await createStreamApp(t, {
    quotas: { streamsPerUser: 3 },
    streams: { long: openEndedStream([{ event: 'note', data: {} }]) },
  })
  const path = '/v1/watch?mode=long'
  const mine = [await open(app.url, path), await open(app.url, path), await open(app.url, path)]
  const refused = await sendRequest(app.url, `GET ${path}`)
  assert.deepEqual(
    [refused.status, refused.body.budget, refused.body.owner, refused.headers.get('retry-after')],
    [429, 'open_streams', 'user', '1'],
  )
  const other = await open(app.url, path, { authorization: tokens.reader })
  await other.until('event: note')
  mine[0]!.leave()
  const until = performance.now() + 10_000
  for (;;) {
    const { status, body } = await fetch(app.url + path, { headers: { authorization: tokens.all } })
    await body?.cancel()
    if (status === 200) break
    assert.ok(performance.now() < until, 'the slot of a stream that ended is free again')
  }
})

test('waits over the share of a user are answered at once, and the operation continues', async (t) => {
  const app = await createStreamApp(t, { quotas: { waitsPerUser: 2 } })
  const pay = () => sendRequest(app.url, 'POST /v1/pay?wait=true&timeout=90', { body: { amount_usdc: 5 } })
  const controller = new AbortController()
  const held = [1, 2].map(() =>
    fetch(`${app.url}/v1/pay?wait=true&timeout=90`, {
      method: 'POST',
      headers: { authorization: tokens.all, 'content-type': 'application/json' },
      body: '{"amount_usdc":5}',
      signal: controller.signal,
    }).catch(() => undefined),
  )
  while (app.seen.length < 2) await new Promise((resolve) => setImmediate(resolve))
  const over = await pay()
  assert.deepEqual([over.status, over.body.status], [200, 'running'])
  assert.equal(app.seen.at(-1)?.options.timeoutMs, 0)
  controller.abort()
  await Promise.all(held)
})
