/** The SDK against a running gateway: sign-in, renewal, repeats, lists, streams and waiting. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  type Agent,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  createKeyPair,
  importKeyPair,
  NotFoundError,
  type PorticoOptions,
  portico,
  registerAgent,
  ServerError,
  ValidationError,
} from '#sdk/sdk.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'

type Fetch = typeof globalThis.fetch
type Sent = { path: string; method: string; headers: Headers }

let gateway: Awaited<ReturnType<typeof freshGateway>>
let agent: Agent

before(async () => {
  gateway = await freshGateway()
  agent = await registerAgent({ baseUrl: gateway.url, agentName: 'sdk' })
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
})

const clientOf = (options: PorticoOptions = {}) => portico({ baseUrl: gateway.url, auth: agent, ...options })

/** Sends for real, and lets a test see or replace what comes back. */
function watched(reply: (response: Response, sent: Sent, count: number) => Response | Promise<Response>) {
  const sent: Sent[] = []
  const fetch: Fetch = async (url, init) => {
    const request = {
      path: new URL(String(url)).pathname,
      method: init?.method ?? 'GET',
      headers: new Headers(init?.headers),
    }
    sent.push(request)
    return reply(await globalThis.fetch(url, init), request, sent.length)
  }
  return { fetch, sent }
}

const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ detail: 'planted', code, retryable: true, request_id: 'r-1' }), {
    status,
    headers,
  })

/** Until the first task, the grant of the faucet, has ended. */
const funded = () =>
  eventually(
    async () => ((await clientOf().tasks.list()).items[0]?.status === 'completed' ? true : undefined),
    'the grant',
    60_000,
  )

test('a key pair signs in, and its text form is the same pair', async () => {
  const { agent_id } = await clientOf().user.show()
  assert.equal(agent_id, agent.agentId)
  const keyPair = await importKeyPair(agent.secretKey)
  assert.deepEqual(await registerAgent({ baseUrl: gateway.url, keyPair }), agent)
  const both = Buffer.concat([
    Buffer.from(keyPair.secretKey, 'base64'),
    Buffer.from(keyPair.publicKey, 'base64'),
  ]).toString('base64')
  assert.equal((await importKeyPair(both)).publicKey, keyPair.publicKey)
  await assert.rejects(importKeyPair('c2hvcnQ='), /32 bytes/)
  const other = await createKeyPair()
  await assert.rejects(
    portico({ baseUrl: gateway.url, auth: { ...agent, secretKey: other.secretKey } })
      .user.show()
      .withResponse(),
    (error) => error instanceof AuthenticationError && error.code === 'invalid_signature',
  )
})

test('one token serves many calls, and a revoked one is replaced once', async () => {
  const { fetch, sent } = watched((response) => response)
  const client = clientOf({ fetch })
  await Promise.all(Array.from({ length: 5 }, () => client.user.show()))
  const signIns = () => sent.filter(({ path }) => path === '/v1/auth/token').length
  assert.equal(signIns(), 1)
  assert.equal((await client.auth.revoke()).revoked, 1)
  assert.equal((await client.user.show()).agent_id, agent.agentId)
  assert.equal(sent.filter(({ path, method }) => path === '/v1/auth/token' && method === 'POST').length, 2)
  await assert.rejects(
    portico({ baseUrl: gateway.url, auth: { token: 'agt_none' } }).user.show(),
    (error) => error instanceof AuthenticationError && error.status === 401,
  )
})

test('a token is renewed before its end', async () => {
  const { fetch, sent } = watched(async (response, { path }) => {
    if (path !== '/v1/auth/token') return response
    const { token } = (await response.json()) as { token: string }
    return Response.json({ token, expires_in: 30 })
  })
  const client = clientOf({ fetch })
  await client.user.show()
  await client.user.show()
  assert.equal(sent.filter(({ path }) => path === '/v1/auth/token').length, 2)
})

test('a clock that is an hour late signs with the time of the gateway', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 })
  assert.equal((await clientOf().user.show()).agent_id, agent.agentId)
})

test('a provider of tokens is asked before each call, and with the refused token after a 401', async () => {
  const { token } = await tokenOf()
  const asked: (string | undefined)[] = []
  const client = clientOf({
    auth: async ({ refused }) => {
      asked.push(refused)
      return refused === undefined ? 'agt_stale' : token
    },
  })
  assert.equal((await client.user.show()).agent_id, agent.agentId)
  assert.deepEqual(asked, [undefined, 'agt_stale'])
})

async function tokenOf(): Promise<{ token: string }> {
  const keys = await importKeyPair(agent.secretKey)
  const timestamp = Date.now()
  const signature = await keys.sign(`${agent.agentId}${timestamp}`)
  return portico({ baseUrl: gateway.url }).auth.token({ agent_id: agent.agentId, timestamp, signature })
}

test('a deposit whose answers are lost is repeated under one key and moves money once', async () => {
  await funded()
  const deposits = (path: string) => path === '/v1/earn/deposit'
  const { fetch, sent } = watched((response, { path }) => {
    if (!deposits(path)) return response
    const tries = sent.filter((each) => deposits(each.path)).length
    if (tries === 1) throw new TypeError('fetch failed')
    return tries === 2 ? refusal(500, 'internal') : response
  })
  const call = clientOf({ fetch }).earn.deposit({ amount_usdc: '5', wait: true })
  const { data, replayed, idempotency_key } = await call.withResponse()
  const tries = sent.filter(({ path }) => deposits(path))
  assert.deepEqual([data.status, data.outcome, replayed], ['completed', 'executed', true])
  assert.equal(data.result?.amount_usdc_decimal, '5')
  assert.deepEqual(
    new Set(tries.map(({ headers }) => headers.get('idempotency-key'))),
    new Set([idempotency_key]),
  )
  assert.deepEqual(
    tries.map(({ headers }) => headers.get('x-retry-count')),
    [null, '1', '2'],
  )
  const { positions } = await clientOf().earn.positions()
  assert.deepEqual(
    positions.map(({ amount_deposited_usdc }) => amount_deposited_usdc),
    ['5'],
  )
})

test('a repeat waits as long as Retry-After says, and gives up after the last one', async () => {
  const startedMs = performance.now()
  const late = watched((response, _, count) =>
    count === 1 ? refusal(429, 'rate_limited', { 'retry-after': '1' }) : response,
  )
  await clientOf({ auth: undefined, fetch: late.fetch }).chains.list()
  assert.ok(performance.now() - startedMs >= 1_000)
  const away = watched(() => refusal(503, 'unavailable', { 'retry-after': '0' }))
  await assert.rejects(
    clientOf({ auth: undefined, fetch: away.fetch, maxRetries: 3 }).chains.list(),
    (error) => error instanceof ServerError && error.request_id === 'r-1' && error.detail === 'planted',
  )
  assert.equal(away.sent.length, 4)
  const cut = watched(() => {
    throw new TypeError('fetch failed')
  })
  await assert.rejects(
    clientOf({ auth: undefined, fetch: cut.fetch, maxRetries: 1 }).chains.list(),
    ConnectionError,
  )
  assert.equal(cut.sent.length, 2)
})

test('a request without a key is not repeated after a lost answer', async () => {
  const { fetch, sent } = watched(() => {
    throw new TypeError('fetch failed')
  })
  const { publicKey } = await createKeyPair()
  await assert.rejects(clientOf({ fetch }).auth.register({ public_key: publicKey }), ConnectionError)
  assert.equal(sent.length, 1)
})

test('errors have the class of their status, the code and the wrong fields', async () => {
  const client = clientOf()
  await assert.rejects(client.earn.deposit({ amount_usdc: '0' }), (error) => {
    assert.ok(error instanceof ValidationError)
    assert.deepEqual([error.status, error.code, error.retryable], [422, 'validation', false])
    assert.deepEqual(
      error.errors.map(({ loc }) => loc),
      [['body', 'amount_usdc']],
    )
    return typeof error.request_id === 'string'
  })
  await assert.rejects(client.tasks.get({ task_id: 'none' }), NotFoundError)
  await assert.rejects(
    client.earn.deposit({ amount_usdc: '20000' }),
    (error) => error instanceof ConflictError && error.code === 'insufficient_balance',
  )
})

test('a call ends by its signal and by its time limit', async () => {
  const leaving = new AbortController()
  leaving.abort(new Error('left'))
  await assert.rejects(clientOf().chains.list({}, { signal: leaving.signal }), /left/)
  const stalled: Fetch = (_, init) =>
    new Promise((_resolve, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
    })
  await assert.rejects(
    portico({ baseUrl: gateway.url, fetch: stalled, timeoutMs: 50, maxRetries: 0 }).chains.list(),
    (error) => error instanceof ConnectionError && error.code === 'timeout',
  )
})

test('a list is read over all its pages, by number and by cursor', async () => {
  await funded()
  const client = clientOf()
  const made = new Set<string>()
  for (let n = 0; n < 3; n++) made.add((await client.earn.deposit({ amount_usdc: '1', wait: true })).task_id)
  const listed: string[] = []
  for await (const { task_id } of client.tasks.list({ limit: 2, kind: 'earn_deposit' })) listed.push(task_id)
  assert.equal(new Set(listed).size, listed.length)
  for (const task_id of made) assert.ok(listed.includes(task_id))
  const positions: string[] = []
  for await (const { id } of client.earn.positions({ limit: 1 })) positions.push(id)
  assert.ok(positions.length >= 3 && new Set(positions).size === positions.length)
  const events: number[] = []
  for await (const { id } of client.notifications.list({ after: '0', limit: 3 })) events.push(Number(id))
  assert.deepEqual(
    events,
    events.map((_, index) => index + 1),
  )
  assert.ok(events.length > 6)
})

test('a stream whose connection breaks resumes without a gap', async () => {
  await funded()
  let opened = 0
  const asked: (string | null)[] = []
  const { fetch } = watched((response, { path, headers }) => {
    if (path !== '/v1/notifications/stream') return response
    opened++
    asked.push(headers.get('last-event-id'))
    return opened < 3 ? brokenAfterBlocks(response, 3) : response
  })
  const seen: string[] = []
  for await (const { id, data } of clientOf({ fetch }).notifications.stream({ after: '0' })) {
    assert.equal(data.id, id)
    seen.push(data.id)
    if (seen.length === 6) break
  }
  assert.deepEqual(seen, ['1', '2', '3', '4', '5', '6'])
  assert.ok(opened >= 3)
  assert.equal(asked[0], null)
  assert.ok(asked.slice(1).every((id) => id !== null))
})

/** The body of a connection that is cut after some events. */
function brokenAfterBlocks(response: Response, blocksMax: number): Response {
  let blocks = 0
  const body = response.body!.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        for (const block of Buffer.from(chunk)
          .toString()
          .split(/(?<=\n\n)/)) {
          if (blocks++ < blocksMax) controller.enqueue(Buffer.from(block))
          else {
            controller.enqueue(Buffer.from(block.slice(0, 12)))
            return controller.terminate()
          }
        }
      },
    }),
  )
  return new Response(body, { status: 200, headers: response.headers })
}

test('waiting for a task reports each change and returns the ended task', async () => {
  await funded()
  const client = clientOf()
  const { task_id } = await client.earn.deposit({ amount_usdc: '1' })
  const states: string[] = []
  const task = await client.tasks.waitFor(task_id, { onUpdate: ({ status }) => states.push(status) })
  assert.deepEqual([task.status, task.outcome], ['completed', 'executed'])
  assert.equal(states.at(-1), 'completed')
  const brief = await client.tasks.waitFor(task_id, { timeoutMs: 0 })
  assert.equal(brief.status, 'completed')
})
