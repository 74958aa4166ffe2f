import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { type Agent, bearer, deadlineMs, eventually, keyPair } from '../../harness/gateway.ts'
import type { DatabaseProxy } from './database-proxy.ts'
import { assertErrorForm, codeOf, jsonOf } from './error-forms.ts'
import type { HttpClient, HttpReply } from './http-client.ts'
import type { IdentityRecords } from './identity-records.ts'

type Context = {
  client: HttpClient
  proxy: DatabaseProxy
  rows: IdentityRecords
  agent: Agent
  userId: string
  open: { task_id: string; position_id: string }
}
type MsMax = {
  /** The bound of each answer while the database is unreachable. */
  answer: number
  degraded: number
  recovered: number
  /** After the recovery. */
  deposited: number
}
/** Bounds that nothing exceeds: only a proof of durations hands in others. */
const unbounded: MsMax = {
  answer: Number.POSITIVE_INFINITY,
  degraded: deadlineMs,
  recovered: deadlineMs,
  deposited: deadlineMs,
}

type Headers = Record<string, string>
const json = { 'content-type': 'application/json' }

/** Operations that need the database fail in the documented form without it, and work again with it. */
export async function assertUnreachableDatabase(context: Context, msMax = unbounded): Promise<void> {
  const { client, proxy, rows, agent, userId, open } = context
  const get = (path: string, headers: Headers = bearer(agent)): Promise<HttpReply> =>
    client.send({ method: 'GET', path, headers })
  const post = (path: string, body: unknown, headers: Headers = bearer(agent)): Promise<HttpReply> =>
    client.send({ method: 'POST', path, headers: { ...json, ...headers }, body: JSON.stringify(body) })

  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  const now = () => Math.floor(Date.now() / 1000)

  const signedIn = (timestamp: number): object => {
    const signature = base64(sign(null, Buffer.from(`${agent.agentId}${timestamp}`), agent.privateKey))
    return { agent_id: agent.agentId, timestamp, signature }
  }
  const fresh = await rows.token(userId)
  const reads = ['/v1/user', '/v1/credits', '/v1/wallets', '/v1/tasks', '/v1/policy', '/v1/notifications']
  const { publicKey } = keyPair()
  const databaseReads: [string, () => Promise<HttpReply>][] = [
    ...reads.map((path): [string, () => Promise<HttpReply>] => [path, () => get(path)]),
    ['a token that is not cached', () => get('/v1/credits/', { authorization: `Bearer ${fresh}` })],
    ['a task', () => get(`/v1/tasks/${open.task_id}`)],
    ['a registration', () => post('/v1/auth/register', { public_key: publicKey }, {})],
    ['a sign-in', () => post('/v1/auth/token', signedIn(now() - 20), {})],
    ['a deposit', () => post('/v1/earn/deposit', { amount_usdc: '1' })],
    ['a withdrawal', () => post('/v1/earn/withdraw', { position_id: open.position_id, amount_usdc: '1' })],
    [
      'a limit',
      () =>
        client.send({
          method: 'PUT',
          path: '/v1/policy',
          headers: { ...json, ...bearer(agent) },
          body: '{}',
        }),
    ],
    ['a kill switch', () => post('/v1/kill', { on: false }, { ...bearer(agent), 'idempotency-key': 'k1' })],
  ]
  await get('/v1/user')
  await proxy.disconnect()
  try {
    for (const [what, send] of databaseReads) {
      const got = await send()
      assert.equal(got.status, 503, `${what}: ${got.text}`)
      assert.equal(codeOf(got), 'unavailable', what)
      assertErrorForm(got, what)
      assert.ok(got.ms < msMax.answer, `${what}: ${got.ms} ms`)
    }
    const assertUnhealthy = async () => ((await get('/health', {})).status === 503 ? true : undefined)
    await eventually(assertUnhealthy, 'degraded health', msMax.degraded)
    const health = await get('/health', {})
    assert.equal(jsonOf(health).status, 'down')
    assert.ok(health.headers['retry-after'])
    assert.equal((await get('/v1/chains', {})).status, 200)
    assert.equal((await get('/capabilities', {})).status, 200)
  } finally {
    await proxy.reconnect()
  }
  const assertHealthy = async () => {
    const all = await Promise.all([...reads.map((path) => get(path)), get('/health', {})])
    return all.every(({ status }) => status === 200) ? true : undefined
  }
  await eventually(assertHealthy, 'the recovery', msMax.recovered)
  const moved = async () => {
    const after = await post('/v1/earn/deposit?wait=true', { amount_usdc: '1' })
    assert.ok(after.status === 200 || after.status === 503, after.text)
    return jsonOf(after).status === 'completed' ? true : undefined
  }
  await eventually(moved, 'a deposit after the recovery', msMax.deposited)
}
