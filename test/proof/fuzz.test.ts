/** Five hundred generated requests on each route, and none of them does damage. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { addBackend } from '../harness/backend.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { assertErrorForm, jsonOf } from './support/error-forms.ts'
import { type GeneratedRequest, generateRequests, type KnownValues } from './support/generated-requests.ts'
import {
  createHttpClient,
  type HttpClient,
  type HttpReply,
  type HttpRequest,
  runConcurrently,
} from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { createMoneyAudit, type MoneyAudit } from './support/money-audit.ts'
import { type Document, type OperationCase, operationCases } from './support/openapi-requests.ts'
import { isProcessorTimeKnown, threadCpuMs } from './support/processor-time.ts'
import { bySize, proofSeed } from './support/seed.ts'
import { unlimitedRates } from './support/unlimited.ts'

const perRoute = bySize({ short: 200, full: 500, nightly: 10_000 })
const concurrencyMax = 8
const slowMs = 1_000
const seed = proofSeed('fuzz')

let backendKey: string
let gateway: Awaited<ReturnType<typeof freshGateway>>
let client: HttpClient
let document: Document
let cases: OperationCase[]
/**
 * Users with funds. As many as concurrent requests, because concurrent spends of one account run one after the other.
 */
let spenders: Agent[]
let spender: Agent
/** Lowers its limits and stops itself. */
let careful: Agent
/** Revokes its tokens. */
let leaver: Agent
let moneyAudits: MoneyAudit[]
let rows: IdentityRecords

before(async () => {
  gateway = await freshGateway({ ...unlimitedRates, TRUST_PROXY: '127.0.0.1' })
  client = createHttpClient(gateway.url, { sockets: concurrencyMax })
  spenders = await Promise.all(Array.from({ length: concurrencyMax }, () => newAgent(gateway.url)))
  spender = spenders[0]!
  careful = await newAgent(gateway.url)
  leaver = await newAgent(gateway.url)
  document = (await http<Document>(`${gateway.url}/openapi.json`)).body
  // It takes the token of a person, and refuses those of key pairs; test/oauth/signup-bodies.test.ts fuzzes it.
  cases = operationCases(document).filter(({ name }) => name !== 'auth_signup')
  rows = await openIdentityRecords(gateway.databaseUrl)
  backendKey = await addBackend(rows.db)
  moneyAudits = await Promise.all(spenders.map((each) => createMoneyAudit(gateway, each)))
})
after(async () => {
  client[Symbol.dispose]()
  await rows[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
const compiled = new Map<string, ValidateFunction>()

/** Validates an answer against its schema in the document. */
function assertSchema(found: OperationCase, got: HttpReply, message: string): void {
  const name = `${found.name} ${got.status}`
  let check = compiled.get(name)
  if (!check) {
    const schema = found.answer(got.status)
    assert.ok(schema, `${message}: the document has no schema for ${got.status}`)
    if (compiled.size === 0) ajv.addSchema({ $id: 'doc', ...document })
    check = ajv.compile(
      JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"doc#/')) as object,
    )
    compiled.set(name, check)
  }
  assert.ok(check(jsonOf(got)), `${message}: ${JSON.stringify(check.errors)}`)
}

const brief = ({ request: { method, path, headers, body } }: GeneratedRequest): string =>
  `${method} ${path.slice(0, 300)} ${JSON.stringify(headers)} ${body === undefined ? '' : Buffer.from(body).toString('latin1').slice(0, 400)}`

/** Of an operation that takes a signature of the agent's key beside the token: the token is good, the signature is not. */
const signatureFaults = ['invalid_signature', 'stale_timestamp', 'signature_replayed']
const isSignatureRefused = ({ body }: OperationCase, got: HttpReply): boolean =>
  got.status === 401 &&
  Object.hasOwn((body?.properties ?? {}) as object, 'signature') &&
  signatureFaults.includes((jsonOf(got) as { code: string }).code)

function assertReply(generated: GeneratedRequest, got: HttpReply): void {
  const { found, wrongAt, isBrokenUrl } = generated
  const message = `PROOF_SEED=${seed} ${found.name}: ${brief(generated)} -> ${got.status} ${got.text.slice(0, 500)}`
  assert.ok(got.status < 500, message)
  if (isBrokenUrl) {
    assert.equal(got.status, 400, message)
    assertErrorForm(got, message)
    return
  }
  assert.ok(found.statuses.includes(got.status), `not documented: ${message}`)
  if (!found.isPublic && !isSignatureRefused(found, got)) assert.notEqual(got.status, 401, message)
  const isStreamed = got.headers['content-type']?.startsWith('text/event-stream') ?? false
  if (got.status >= 400) assertErrorForm(got, message)
  else if (isStreamed || !found.answer(got.status)) assert.ok(isStreamed && found.isStream, message)
  else assertSchema(found, got, message)
  if (got.status >= 400 && got.headers['content-type']?.startsWith('application/json'))
    assertSchema(found, got, message)
  if (!wrongAt) return
  assert.equal(got.status, 422, message)
  const { detail } = jsonOf(got) as { detail: { loc: unknown }[] }
  assert.ok(
    detail.some(({ loc }) => JSON.stringify(loc) === JSON.stringify(wrongAt)),
    `no item for ${wrongAt.join('.')}: ${message}`,
  )
}

type SentRequest = GeneratedRequest & { agent: Agent | undefined }

let serial = 0
/** Each from an address of its own: ten wrong signatures from one would end in 429 for the rest. */
function from(
  { agent, found }: Pick<SentRequest, 'agent' | 'found'>,
  { headers, ...request }: HttpRequest,
): HttpRequest {
  serial++
  const address = `10.${(serial >> 16) & 255}.${(serial >> 8) & 255}.${serial & 255}`
  // Both credentials: each operation reads its own.
  const credential = agent && !found.isPublic ? { ...bearer(agent), 'x-backend-key': backendKey } : {}
  return { ...request, headers: { ...credential, 'x-forwarded-for': address, ...headers } }
}

/** Users alternate often, so that no account has all of the parallel requests. */
function mixed(all: readonly SentRequest[]): SentRequest[] {
  const size = Math.ceil(all.length / spenders.length)
  return Array.from({ length: size }, (_, row) =>
    spenders.flatMap((_, column) => all[column * size + row] ?? []),
  ).flat()
}

const userIdOf = async ({ agentId }: Agent): Promise<string> =>
  (await rows.db.query<{ id: string }>('select id from app_user where agent_id = $1', [agentId])).rows[0]!.id

const asks = new Set(['policy_tighten', 'policy_kill'])

test('generated requests meet no 5xx, no hang and no undocumented answer on any route', async (t) => {
  const publicKeys = Array.from({ length: 5 }, () =>
    generateKeyPairSync('ed25519')
      .publicKey.export({ format: 'der', type: 'spki' })
      .subarray(-32)
      .toString('base64'),
  )
  const begun = await Promise.all(moneyAudits.map((each) => each.start()))
  const knownValues = begun.map(
    ({ task_id, position_id }): KnownValues => ({
      amount_usdc: ['1', 1, '1.000001', '9999999', '12000', 1e-7, '0.999999', 9901],
      position_id: [position_id, position_id.toUpperCase()],
      task_id: [task_id],
      public_key: publicKeys,
      agent_id: [spender.agentId],
      nonce: ['01890000-0000-4000-8000-000000000000'],
      timestamp: [Math.floor(Date.now() / 1000)],
      signature: [Buffer.alloc(64, 1).toString('base64')],
      per_transaction_usd: ['20000', '25000', '25000.01'],
      on: [true, false],
    }),
  )
  const leaverId = await userIdOf(leaver)
  const startedMs = performance.now()
  let sent = 0
  let slowestMs = 0
  const slow: SentRequest[] = []
  const wrong: string[] = []
  for (const found of cases) {
    const routeMs = performance.now()
    const all = knownValues.flatMap((seasoning, index) =>
      generateRequests(found, Math.ceil(perRoute / knownValues.length), seed + index, seasoning).map(
        (each) => ({
          ...each,
          agent: asks.has(found.name) ? careful : spenders[index],
        }),
      ),
    )
    assert.ok(all.length >= perRoute, `${found.name}: ${all.length}`)
    sent += all.length
    // Each of its requests may revoke every token of its sender, so they run one after the other, each with a new one.
    const ends = found.name === 'auth_revoke'
    await runConcurrently(mixed(all), ends ? 1 : concurrencyMax, async (generated) => {
      const agent = ends ? { ...leaver, token: await rows.token(leaverId) } : generated.agent
      const got = await client.send(from({ ...generated, agent }, generated.request))
      slowestMs = Math.max(slowestMs, got.ms)
      if (got.ms > slowMs) slow.push(generated)
      try {
        assertReply(generated, got)
      } catch (error) {
        wrong.push((error as Error).message)
      }
    })
    if (process.env.PROOF_TIMES) t.diagnostic(`${found.name} ${Math.round(performance.now() - routeMs)} ms`)
    if (wrong.length >= 20) break
  }
  assert.equal(wrong.length, 0, wrong.slice(0, 20).join('\n\n'))
  const seconds = Math.round((performance.now() - startedMs) / 100) / 10
  t.diagnostic(
    `${sent} requests on ${cases.length} routes in ${seconds} s, slowest ${Math.round(slowestMs)} ms`,
  )
  // A slow request is slow each time when it runs alone; the load of the machine is not.
  for (const generated of slow) {
    const alone: number[] = []
    while (alone.length < 4 && alone.every((ms) => ms >= slowMs))
      alone.push((await client.send(from(generated, generated.request))).ms)
    assert.ok(Math.min(...alone) < slowMs, `PROOF_SEED=${seed} ${alone} ms alone: ${brief(generated)}`)
  }
})

test('the moved funds equal those of the accepted tasks', async (t) => {
  for (const money of moneyAudits) {
    const ended = async () => ((await money.open()) === 0 ? true : undefined)
    await eventually(ended, 'the end of all tasks', 60_000)
    const { reported, recorded } = await money.account()
    assert.deepEqual(recorded, reported)
    t.diagnostic(`${(await money.tasks()).length} tasks, ${recorded.cash} units left`)
  }
})

test('a wait is bounded, and its error is distinct from others', async () => {
  const outside = [
    '4',
    '91',
    '-5',
    '0',
    '5.5',
    '1e1',
    '0x10',
    '',
    ' 5',
    '٥',
    '60s',
    '99999999999999999999',
    'null',
  ]
  const inside = ['5', '90', '060', '%2B5']
  const waits = ['true', 'false', '1', '0', 'yes', 'no', 'on', 'off', 'TRUE']
  const noWaits = ['2', '', 'wahr', 'null', '-1', 'true%20']
  // An operation without a body would be accepted.
  for (const found of cases.filter(({ query, body }) => body && query.includes('wait'))) {
    const locsOf = async (query: string): Promise<string[]> => {
      // With such a body nothing is ever accepted, so no wait begins.
      const none = { headers: { 'content-type': 'application/json' }, body: '[]' }
      const request = { method: found.method, path: `${found.path}?${query}`, ...none }
      const got = await client.send(from({ agent: spender, found }, request))
      assert.equal(got.status, 422, got.text)
      const { detail } = assertErrorForm(got) as { detail: { loc: unknown[] }[] }
      return detail.map(({ loc }) => loc.join('.'))
    }
    for (const text of outside)
      assert.ok((await locsOf(`timeout=${encodeURIComponent(text)}`)).includes('query.timeout'), text)
    for (const text of inside) assert.deepEqual(await locsOf(`timeout=${text}`), ['body'], text)
    for (const text of waits) assert.deepEqual(await locsOf(`wait=${text}`), ['body'], text)
    for (const text of noWaits) assert.ok((await locsOf(`wait=${text}`)).includes('query.wait'), text)
    assert.ok((await locsOf('timeout=5&timeout=6')).includes('query.timeout'))
  }
})

test('a too large request costs nothing, and is rejected as such, or answered by an empty page', async (t) => {
  const many = Array.from({ length: 10_000 }, (_, index) => `k${index}=1`).join('&')
  const body = { 'content-type': 'application/json' }
  const field = (value: string) => `{"amount_usdc":${value}}`
  const path = '/v1/earn/deposit'
  const tokenStep = (timestamp: string): HttpRequest => ({
    method: 'POST',
    path: '/v1/auth/token',
    headers: body,
    body: `{"agent_id":"x","signature":"x","timestamp":${timestamp}}`,
  })
  const tries: [string, number, HttpRequest][] = [
    [
      'a body over the limit',
      413,
      { method: 'POST', path, headers: body, body: field(`"${'9'.repeat(300_000)}"`) },
    ],
    ['depth 33', 422, { method: 'POST', path, headers: body, body: field('['.repeat(32) + ']'.repeat(32)) }],
    ['depth 100,000', 422, { method: 'POST', path, headers: body, body: '['.repeat(100_000) }],
    [
      '10,000 keys',
      422,
      {
        method: 'POST',
        path,
        headers: body,
        body: `{${Array.from({ length: 10_000 }, (_, i) => `"k${i}":1`)}}`,
      },
    ],
    ['a long number', 422, { method: 'POST', path, headers: body, body: field('9'.repeat(250_000)) }],
    [
      'a long fraction',
      422,
      { method: 'POST', path, headers: body, body: field(`1.${'0'.repeat(250_000)}1`) },
    ],
    [
      'a long exponent',
      422,
      { method: 'POST', path, headers: body, body: field(`1e${'9'.repeat(200_000)}`) },
    ],
    ['a body over the limit of requests without a credential', 413, tokenStep(`1.${'0'.repeat(8_192)}`)],
    ['a long whole number', 422, tokenStep(`1.${'0'.repeat(8_000)}`)],
    ['a long way to zero', 422, tokenStep(`1e-${'9'.repeat(8_000)}`)],
    [
      'a compressed body',
      415,
      { method: 'POST', path, headers: { ...body, 'content-encoding': 'gzip' }, body: 'x' },
    ],
    [
      '64 KB of headers',
      431,
      { method: 'GET', path: '/v1/tasks', headers: { 'x-large': 'x'.repeat(64_000) } },
    ],
    ['a URL of 60 KB', 431, { method: 'GET', path: `/v1/tasks?${many.slice(0, 60_000)}` }],
    ['1,000 parameters', 422, { method: 'GET', path: `/v1/tasks?${many.slice(0, 8_000)}` }],
    ['skip=1e9', 200, { method: 'GET', path: '/v1/tasks?skip=1000000000' }],
    ['a page of a million', 422, { method: 'GET', path: '/v1/tasks?limit=1000000' }],
    ['a long id', 404, { method: 'GET', path: `/v1/tasks/${'x'.repeat(4_000)}` }],
  ]
  const memoryOf = async () => {
    const { text } = await client.send({ method: 'GET', path: '/metrics' })
    return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1])
  }
  const bytesBefore = await memoryOf()
  const slow: string[] = []
  for (const [what, status, request] of tries) {
    const beforeMs = isProcessorTimeKnown ? threadCpuMs(gateway) : 0
    const got = await client.send({ ...request, headers: { ...bearer(spender), ...request.headers } })
    const ms = isProcessorTimeKnown ? threadCpuMs(gateway) - beforeMs : 0
    assert.equal(got.status, status, `${what}: ${got.status} ${got.text.slice(0, 300)}`)
    if (status >= 400) assertErrorForm(got, what)
    else assert.deepEqual((jsonOf(got) as { items: unknown[] }).items, [], what)
    assert.ok(got.ms < slowMs, `${what}: ${got.ms} ms`)
    if (ms >= slowMs) slow.push(`${what}: ${ms} ms of processor time`)
  }
  const grownMiB = ((await memoryOf()) - bytesBefore) / 2 ** 20
  assert.ok(grownMiB < 40, `${grownMiB} MiB`)
  await t.test(
    'none of them costs a second of processor time',
    {
      skip: !isProcessorTimeKnown && 'the processor time of one thread is read from /proc',
    },
    () => assert.deepEqual(slow, []),
  )
})
