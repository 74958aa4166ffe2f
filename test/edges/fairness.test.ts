import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { Fault } from '#kernel/contract/fault.ts'
import { createHttpApp, noLimits, rawExchange, sendRequest, tokens } from './http-app.ts'

const limit = (points: number) => ({ points, windowSeconds: 60 })
const guess = (url: string) =>
  sendRequest(url, 'GET /v1/probe', { headers: { authorization: 'Bearer agt_guess' } })

test('a valid token is admitted however many bad ones came from its address', async (t) => {
  const app = await createHttpApp({ limits: { ...noLimits, refused: limit(3) } })
  t.after(() => app.close())
  const statuses: number[] = []
  for (let turn = 0; turn < 5; turn++) statuses.push((await guess(app.url)).status)
  assert.deepEqual(statuses, [401, 401, 401, 429, 429])
  assert.equal((await sendRequest(app.url, 'GET /v1/probe')).status, 200)
  assert.equal((await sendRequest(app.url, 'POST /v1/pay/t1/cancel')).status, 200)
  const { body, headers } = await guess(app.url)
  assert.deepEqual([body.budget, body.owner], ['refused', 'address'])
  assert.ok(Number(body.retry_after) >= 1 && Number(body.retry_after) <= 60)
  assert.equal(headers.get('retry-after'), String(body.retry_after))
})

test('an operation that counts only failures rejects no caller who succeeds', async (t) => {
  const app = await createHttpApp({ limits: { ...noLimits, auth: limit(2) } })
  t.after(() => app.close())
  const prove = (agent_id: string) =>
    sendRequest(app.url, 'POST /v1/prove', { body: { agent_id }, headers: { authorization: undefined } })
  const wrong: number[] = []
  for (let turn = 0; turn < 4; turn++) wrong.push((await prove('wrong')).status)
  assert.deepEqual(wrong, [401, 401, 429, 429])
  assert.equal((await prove('right')).status, 200)
})

test('each rejection names the budget, its owner, and when it is full again', async (t) => {
  const app = await createHttpApp({ limits: { ...noLimits, read: limit(1), auth: limit(1) } })
  const busy = await createHttpApp({ load: { delayMsMax: 250, everyMs: 5, sample: () => 900 } })
  t.after(() => Promise.all([app.close(), busy.close()]))
  await sendRequest(app.url, 'GET /v1/probe')
  const read = await sendRequest(app.url, 'GET /v1/probe')
  assert.deepEqual([read.status, read.body.budget, read.body.owner], [429, 'read', 'user'])
  assert.match(String(read.body.detail), /read.*user.*full again in \d+ s/)
  const sign = () =>
    sendRequest(app.url, 'POST /v1/sign', { body: { agent_id: 'a' }, headers: { authorization: undefined } })
  await sign()
  const signed = await sign()
  assert.deepEqual([signed.status, signed.body.budget, signed.body.owner], [429, 'auth', 'address'])
  let shed = await sendRequest(busy.url, 'GET /v1/probe')
  while (shed.status === 200) shed = await sendRequest(busy.url, 'GET /v1/probe')
  assert.deepEqual(
    [shed.status, shed.body.budget, shed.body.owner, shed.body.retry_after],
    [503, 'event_loop', 'instance', 1],
  )
})

test('each request is paced once, whatever it asks for and by which door', async (t) => {
  const paced: string[] = []
  const pacing = {
    pause(principal: string, rate: string) {
      paced.push(`${rate} of ${principal}`)
      return undefined
    },
    isHeavy: () => false,
    close() {},
  }
  const app = await createHttpApp({ pacing })
  t.after(() => app.close())
  const pacedBy = async (work: Promise<{ status: number }>) => {
    const { status } = await work
    return [status, ...paced.splice(0)]
  }
  const message = (method: string, params?: object) =>
    sendRequest(app.url, 'POST /mcp', {
      body: { jsonrpc: '2.0', id: 1, method, params },
      headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
    })
  const ofAddress = 'read of address:127.0.0.1'
  const anybody = { headers: { authorization: undefined } }
  assert.deepEqual(await pacedBy(sendRequest(app.url, 'GET /v1/probe')), [200, 'read of user:u1'])
  assert.deepEqual(await pacedBy(sendRequest(app.url, 'GET /v1/probe/open', anybody)), [200, ofAddress])
  assert.deepEqual(await pacedBy(sendRequest(app.url, 'GET /v1/nothing')), [404, ofAddress])
  assert.deepEqual(await pacedBy(sendRequest(app.url, 'GET /llms.txt', anybody)), [200, ofAddress])
  assert.deepEqual(await pacedBy(guess(app.url)), [401, 'refused of address:127.0.0.1'])
  assert.deepEqual(await pacedBy(message('tools/list')), [200, 'read of user:u1'])
  const call = message('tools/call', { name: 'probe_list', arguments: {} })
  assert.deepEqual(await pacedBy(call), [200, 'read of user:u1'])
})

test('an unlisted proxy is logged once', async (t) => {
  const app = await createHttpApp()
  t.after(() => app.close())
  const warnings = () => app.lines.filter(({ sentence }) => sentence.includes('TRUST_PROXY'))
  await sendRequest(app.url, 'GET /v1/probe')
  assert.equal(warnings().length, 0)
  for (let turn = 0; turn < 3; turn++)
    await sendRequest(app.url, 'GET /v1/probe', { headers: { 'x-forwarded-for': '192.0.2.7' } })
  assert.equal(warnings().length, 1)
})

/** The connections of a process under an operator's limit of open files. */
async function connectionsUnder(files: number, env: Record<string, string> = {}) {
  const program = `import { connectionLimits } from '#compose/settings.ts'
    import { readConfig } from '#config.ts'
    console.log(JSON.stringify(connectionLimits(readConfig(${JSON.stringify(env)}))))`
  const shell = `ulimit -n ${files} && exec "$0" --input-type=module -e "$1"`
  const root = join(import.meta.dirname, '..', '..')
  const { stdout } = await promisify(execFile)('sh', ['-c', shell, process.execPath, program], { cwd: root })
  return JSON.parse(stdout) as { max: number; perAddress: number }
}

test('all but 256 of the files that a process may open become connections', async () => {
  assert.deepEqual(await connectionsUnder(856), { max: 600, perAddress: 150 })
  assert.deepEqual(await connectionsUnder(300), { max: 64, perAddress: 16 })
  assert.deepEqual(await connectionsUnder(856, { CONNECTIONS_MAX: '100' }), { max: 100, perAddress: 25 })
})

const open = new Set<Socket>()
after(() => {
  for (const socket of open) socket.destroy()
})

/** An idle connection from an address of the loopback network. */
async function idle(url: string, from: string): Promise<Socket> {
  const { port } = new URL(url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from })
  open.add(socket)
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  return socket
}

async function askOver(socket: Socket, path: string): Promise<string> {
  const chunks: Buffer[] = []
  const answered = new Promise<string>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (Buffer.concat(chunks).includes('\r\n\r\n')) resolve(Buffer.concat(chunks).toString())
    })
    socket.once('close', () => resolve('closed'))
  })
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n\r\n`)
  return answered
}

test('idle connections of one address are closed for others, the oldest first', async (t) => {
  const app = await createHttpApp({ connections: { max: 100, perAddress: 20 } })
  t.after(() => app.close())
  const reused = await idle(app.url, '127.0.0.3')
  const sockets: Socket[] = []
  for (let turn = 0; turn < 150; turn++) sockets.push(await idle(app.url, '127.0.0.2'))
  const alive = () => sockets.filter((socket) => !socket.closed && !socket.destroyed).length
  const until = performance.now() + 10_000
  while (alive() > 20 && performance.now() < until) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(alive() <= 20, `${alive()} are open`)
  assert.match(await askOver(reused, '/v1/probe'), /^HTTP\/1\.1 200/)
  assert.match(await askOver(sockets.at(-1)!, '/v1/probe'), /^HTTP\/1\.1 200/)
  const [line, ...others] = app.lines.filter(({ sentence }) => sentence.includes('connections'))
  assert.deepEqual([line?.facts.address, line?.facts.limit], ['address:127.0.0.2', 20])
  assert.equal(others.length, 0, 'one log line for all of them')
})

test('many addresses together leave a connection free for one more', async (t) => {
  const app = await createHttpApp({ connections: { max: 30, perAddress: 20 } })
  t.after(() => app.close())
  for (let turn = 0; turn < 20; turn++) {
    await idle(app.url, '127.0.0.4')
    await idle(app.url, '127.0.0.5')
  }
  const late = await idle(app.url, '127.0.0.6')
  assert.match(await askOver(late, '/v1/probe'), /^HTTP\/1\.1 200/)
})

test('a connection that sends requests without reading answers is closed, a short pipeline is answered', async (t) => {
  const app = await createHttpApp()
  t.after(() => app.close())
  const one = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n\r\n`
  const short = await idle(app.url, '127.0.0.1')
  let answers = 0
  short.on('data', (chunk: Buffer) => {
    answers += chunk.toString().split('HTTP/1.1 200').length - 1
  })
  short.write(one('/v1/probe').repeat(20))
  while (answers < 20) await new Promise((resolve) => setImmediate(resolve))
  const long = await idle(app.url, '127.0.0.1')
  const closed = new Promise((resolve) => long.once('close', resolve))
  const wait =
    `POST /v1/pay?wait=true&timeout=90 HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n` +
    'content-type: application/json\r\ncontent-length: 17\r\n\r\n{"amount_usdc":5}'
  long.write(wait.repeat(200))
  await closed
  assert.match(await askOver(await idle(app.url, '127.0.0.1'), '/v1/probe'), /^HTTP\/1\.1 200/)
})

test('an aborted upload is not logged as a bug', async (t) => {
  const app = await createHttpApp()
  t.after(() => app.close())
  const socket = await idle(app.url, '127.0.0.1')
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  app.edge.fastify.server.once('request', () => resolve())
  socket.write(
    `POST /v1/pay HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\ncontent-type: application/json\r\n` +
      'content-length: 1000\r\n\r\n{"amount',
  )
  await begun
  socket.destroy()
  const until = performance.now() + 10_000
  const line = () =>
    app.lines.find(({ sentence, facts }) => sentence === 'request' && facts.route === '/v1/pay')
  while (!line() && performance.now() < until) await new Promise((done) => setImmediate(done))
  assert.deepEqual([line()?.facts.left, line()?.facts.status], [true, 499])
  assert.deepEqual(
    app.lines.filter(({ sentence }) => sentence === 'request failed'),
    [],
  )
})

test('two Host headers are rejected, and metrics are for a local name only', async (t) => {
  const app = await createHttpApp()
  t.after(() => app.close())
  const two = await rawExchange(
    app.url,
    'GET /health HTTP/1.1\r\nhost: a.example\r\nHost: b.example\r\nconnection: close\r\n\r\n',
  )
  assert.match(two, /^HTTP\/1\.1 400[\s\S]*"bad_request"/)
  const metrics = (host: string) =>
    rawExchange(app.url, `GET /metrics HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
  for (const host of ['127.0.0.1:9', 'localhost', '[::1]:80', '127.0.0.1'])
    assert.match(await metrics(host), /^HTTP\/1\.1 200/, host)
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io:80'])
    assert.match(await metrics(host), /^HTTP\/1\.1 404/, host)
})

test('an unreachable store does not count as a failure of the credential', async (t) => {
  const app = await createHttpApp({
    limits: { ...noLimits, refused: limit(1) },
    authenticate: async () => {
      throw new Fault('unavailable', 'The store is away')
    },
  })
  t.after(() => app.close())
  for (let turn = 0; turn < 3; turn++) assert.equal((await guess(app.url)).status, 503)
})

/** Requests the largest document and does not read the answer. */
async function unread(url: string, from: string): Promise<Socket> {
  const socket = await idle(url, from)
  socket.pause()
  socket.write('GET /docs/js/scalar.js HTTP/1.1\r\nhost: x\r\n\r\n')
  return socket
}

test('answers that no client reads do not block other addresses', async (t) => {
  const app = await createHttpApp({ connections: { max: 30, perAddress: 20 } })
  t.after(() => app.close())
  const begun = { count: 0 }
  app.edge.fastify.server.on('request', () => {
    begun.count += 1
  })
  for (const from of ['127.0.0.7', '127.0.0.8'])
    for (let turn = 0; turn < 15; turn++) await unread(app.url, from)
  const until = performance.now() + 10_000
  while (begun.count < 30 && performance.now() < until) await new Promise((done) => setImmediate(done))
  const late = await idle(app.url, '127.0.0.9')
  assert.match(await askOver(late, '/v1/probe'), /^HTTP\/1\.1 200/)
})

test('a connection whose answer is not read for a while is closed', async (t) => {
  const app = await createHttpApp({ connections: { max: 30, perAddress: 20, stallMs: 200 } })
  t.after(() => app.close())
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  app.edge.fastify.server.once('request', (_request, response) => response.once('close', () => resolve()))
  const socket = await unread(app.url, '127.0.0.7')
  const wait = await idle(app.url, '127.0.0.7')
  const { promise: answered, resolve: seen } = Promise.withResolvers<string>()
  wait.once('data', (chunk: Buffer) => seen(chunk.toString()))
  wait.write(
    `POST /v1/pay?wait=true&timeout=5 HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\n` +
      'content-type: application/json\r\ncontent-length: 19\r\n\r\n{"amount_usdc":"5"}',
  )
  await ended
  assert.match(await answered, /^HTTP\/1\.1 20/, 'a client that waits for its answer is not disconnected')
  socket.destroy()
})
