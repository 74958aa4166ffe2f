/**
 * Every operation by every kind of credential, over HTTP and as a tool of MCP. The operations come from the contracts, so
 * a new one joins by itself; the expectations are the written tables of support/access-verdicts.ts.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { scopes } from '#kernel/contract/caller.ts'
import { hasTask, type Operation } from '#kernel/contract/operation.ts'
import { http } from '../harness/gateway.ts'
import { noUpstreams } from '../harness/instance.ts'
import { processWorld } from '../harness/process-world.ts'
import { createOAuthApp, type OAuthApp } from '../oauth/oauth-app.ts'
import {
  allowedAccesses,
  type Credential,
  mcpVerdictOf,
  statusOf,
  type Verdict,
  verdictOf,
} from './support/access-verdicts.ts'
import { cliDoor, sdkDoor } from './support/client-doors.ts'
import { operations as contractOperations, type KnownOperation } from './support/contracts.ts'
import { createHttpClient, type HttpClient, runConcurrently } from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { minimalInput } from './support/input-mistakes.ts'
import { createMatrixUsers, type MatrixUsers } from './support/matrix-credentials.ts'
import { minimalRequest } from './support/minimal-request.ts'
import { requestOf } from './support/operation-request.ts'

type Json = Record<string, unknown>
type Reply = { status: number; body: Json; challenge: string | undefined }
type Ask = (known: KnownOperation, authorization: string | undefined, input?: Json) => Promise<Reply>

let app: OAuthApp
let client: HttpClient
let rows: IdentityRecords
let users: MatrixUsers
let all: readonly KnownOperation[]
let cells = 0

before(async () => {
  const { control: _control, ...urls } = await processWorld()
  // No task runs: an admitted call is accepted, and nothing moves.
  const evm = { ...noUpstreams.evm, ...urls.evm }
  app = await createOAuthApp({
    urls: { ...noUpstreams, ...urls, evm, coinbase: urls.prices, relay: urls.solver },
  })
  client = createHttpClient(app.base, { sockets: 16 })
  rows = await openIdentityRecords(app.databaseUrl)
  users = await createMatrixUsers(app, rows)
  all = app.composed.features.operations.map(({ name, entry }: Operation) => ({ name, entry }))
})
after(async () => {
  console.log(`authorization matrix: ${cells} cells over ${all?.length} operations`)
  client?.[Symbol.dispose]()
  await rows?.[Symbol.asyncDispose]()
  await app?.[Symbol.asyncDispose]()
})

const overHttp: Ask = async (known, authorization, input) => {
  const parts = minimalRequest(known.entry)
  // Without tasks that run, the opening of the stream is the answer.
  const asked = hasTask(known.entry) ? { stream: true, ...input } : input
  const given = asked ? { ...parts, body: { ...parts.body, ...asked } } : parts
  const { status, text, headers } = await client.send(requestOf(known, given, authorization))
  const isJson = headers['content-type']?.includes('json') ?? false
  return { status, body: isJson ? (JSON.parse(text) as Json) : {}, challenge: headers['www-authenticate'] }
}

const asTool: Ask = async ({ name, entry }, authorization, input = {}) => {
  const reply = await fetch(`${app.base}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(authorization !== undefined && { authorization }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: {
          ...minimalInput(entry),
          ...(entry.kind === 'stream' && !hasTask(entry) && { max_items: 1, seconds: 1 }),
          // A tool waits for the answer, which no task writes here: an absent thread ends an admitted call.
          ...(hasTask(entry) && { thread_id: '01890000-0000-7000-8000-000000000000' }),
          ...input,
        },
      },
    }),
  })
  const { status } = reply
  const text = await reply.text()
  const challenge = reply.headers.get('www-authenticate') ?? undefined
  if (status !== 200) return { status, body: JSON.parse(text) as Json, challenge }
  const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text
  const { result } = JSON.parse(data) as { result: { isError?: boolean; content: { text: string }[] } }
  if (!result.isError) return { status: 200, body: {}, challenge }
  const { error } = JSON.parse(result.content[0]!.text) as {
    error: Json & { status: number; details?: Json }
  }
  return { status: error.status, body: { ...error, ...error.details }, challenge }
}

const refusals = new Set<unknown>(Object.keys(statusOf))
const isFresh = ({ kind }: Credential) => kind === 'person who has just signed in'
/** The function itself asks for a person, in some or all cases; tested one by one below. */
const isActOfPeople = ({ entry }: KnownOperation) => entry.faults?.includes('step_up_required') ?? false

function assertVerdict(known: KnownOperation, credential: Credential, verdict: Verdict, got: Reply): void {
  const { status, body, challenge } = got
  const label = `${known.name} with ${credential.what}: ${status} ${JSON.stringify(body).slice(0, 300)}`
  if (verdict === 'admitted') {
    const mayAskForPerson = isActOfPeople(known) && !isFresh(credential) && body.code === 'step_up_required'
    assert.ok(!refusals.has(body.code) || mayAskForPerson, `${label}; it should be admitted`)
    assert.ok(status < 500 || status === 503, label)
    assert.equal(challenge, undefined, label)
    return
  }
  assert.deepEqual([status, body.code], [statusOf[verdict], verdict], label)
  const expected = `Bearer resource_metadata="${app.base}/.well-known/oauth-protected-resource"`
  // A tool answers within MCP, whose envelope has no header; the transport itself refuses nobody's credentials.
  if (status === 401 && challenge !== undefined) assert.equal(challenge, expected, label)
  if (verdict === 'insufficient_scope') assert.equal(body.scope, known.entry.access, label)
  if (verdict === 'signup_required') assert.equal(body.signup_path, '/signup', label)
}

/** `auth_revoke` ends the credential, and `auth_signup` makes an account: they come last. */
const ordered = ({ kind }: Credential, ask: Ask): KnownOperation[] => {
  // A backend has no other door than HTTP: elsewhere its operations do not exist.
  const offered = ask === asTool ? all.filter(({ entry }) => entry.access !== 'backend') : all
  const last =
    kind === 'person before the sign-up' ? ['auth_revoke', 'auth_signup'] : ['auth_signup', 'auth_revoke']
  return offered.toSorted((a, b) => last.indexOf(a.name) - last.indexOf(b.name))
}

async function compare(
  credentials: readonly Credential[],
  ask: Ask,
  expect: typeof verdictOf,
  needsChallenge: (verdict: Verdict, credential: Credential) => boolean,
): Promise<Map<Verdict, number>> {
  const counts = new Map<Verdict, number>()
  await runConcurrently(credentials, 6, async (credential) => {
    for (const known of ordered(credential, ask)) {
      const verdict = expect(known.entry.access, credential)
      const got = await ask(known, credential.authorization)
      cells++
      counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
      assertVerdict(known, credential, verdict, got)
      if (needsChallenge(verdict, credential)) assert.ok(got.challenge, `${known.name} ${credential.what}`)
    }
  })
  return counts
}

const is401 = (verdict: Verdict) => verdict !== 'admitted' && statusOf[verdict] === 401
const doors = [
  ['HTTP', overHttp, verdictOf, (verdict: Verdict) => is401(verdict)],
  // The transport answers 401 to nobody; a tool answers the wrong scheme in its result.
  [
    'MCP',
    asTool,
    mcpVerdictOf,
    (verdict: Verdict, { kind }: Credential) => is401(verdict) && kind !== 'key pair',
  ],
] as const

test('every operation declares an access that its kind and section may have', async () => {
  const known = await contractOperations()
  assert.deepEqual(known.map(({ name }) => name).sort(), all.map(({ name }) => name).sort())
  for (const { name, entry } of known)
    assert.ok(allowedAccesses(name, entry).includes(entry.access), `${name} declares ${entry.access}`)
})

for (const [door, ask, expect, needsChallenge] of doors) {
  test(`over ${door} each credential of nobody and of key pairs gets its verdict at every operation`, async () => {
    const counts = await compare(await users.ofKeyPairs(), ask, expect, needsChallenge)
    for (const verdict of [
      'admitted',
      'unauthorized',
      'invalid_token',
      'suspended',
      'insufficient_scope',
    ] as const)
      assert.ok((counts.get(verdict) ?? 0) >= all.length, `${verdict}: ${counts.get(verdict)}`)
  })

  test(`over ${door} each app of a person gets its verdict at every operation, just after the sign-in`, async () => {
    const counts = await compare(
      await users.ofPeople('person who has just signed in'),
      ask,
      expect,
      needsChallenge,
    )
    for (const verdict of ['admitted', 'insufficient_scope', 'signup_required'] as const)
      assert.ok((counts.get(verdict) ?? 0) >= all.length / 2, `${verdict}: ${counts.get(verdict)}`)
  })

  test(`over ${door} each app of a person gets its verdict at every operation, a while after the sign-in`, async () => {
    const credentials = await users.ofPeople('person who signed in a while ago')
    app.time.offsetMs = 301_000
    try {
      await compare(credentials, ask, expect, needsChallenge)
    } finally {
      app.time.offsetMs = 0
    }
  })

  test(`over ${door} an access token of a person ends after ten minutes and the tolerance`, async () => {
    const credentials = await users.ofPeople('person who has just signed in')
    app.time.offsetMs = 631_000
    try {
      const expired = credentials.map((each) => ({ ...each, kind: 'no token' as const, scopes: [] }))
      await compare(expired, ask, expect, needsChallenge)
    } finally {
      app.time.offsetMs = 0
    }
  })
}

test('a tool of MCP is no operation for backends', async () => {
  const { authorization } = await users.person()
  for (const known of all.filter(({ entry }) => entry.access === 'backend'))
    await assert.rejects(asTool(known, authorization), /undefined/, known.name)
})

test('the SDK and the command line meet the same verdicts', async () => {
  const chosen = [
    ...(await users.ofKeyPairs()),
    ...(await users.ofPeople('person who has just signed in')),
  ].filter(({ authorization }) => authorization === undefined || authorization.startsWith('Bearer '))
  // One of each column: a read, an act of each scope, and the one for people.
  const names = ['user_show', 'policy_tighten', 'tasks_cancel', 'earn_deposit', 'auth_signup']
  for (const [label, door] of Object.entries({ SDK: sdkDoor(app.base), CLI: cliDoor(app.base) }))
    for (const credential of chosen)
      for (const name of names) {
        if (name === 'auth_signup' && credential.kind === 'person before the sign-up') continue
        const known = all.find((each) => each.name === name)!
        const verdict = verdictOf(known.entry.access, credential)
        const reply = await door(name, minimalInput(known.entry), { authorization: credential.authorization })
        const fault = 'fault' in reply ? reply.fault : undefined
        const got = {
          status: reply.status,
          body: { ...fault?.extras, code: fault?.code },
          challenge: undefined,
        }
        cells++
        assertVerdict(known, credential, verdict, { ...got })
        assert.ok(label)
      }
})

type Act = {
  /** Brings the account into the state in which only a person goes on. */
  prepare?: (authorization: string) => Promise<void>
  input: Json
  /** Key pairs may not even ask for it. */
  keyPairsNever?: true
}
const call = (authorization: string, method: string, path: string, body?: object) =>
  http(`${app.base}${path}`, { method, headers: { authorization }, ...(body && { body }) })
/** What only a person does, by its operation; an operation that declares `step_up_required` has to be here. */
const actsOfPeople: Readonly<Record<string, Act>> = {
  policy_tighten: {
    prepare: async (authorization) =>
      void (await call(authorization, 'PUT', '/v1/policy', { per_day_usd: '10' })),
    input: { per_day_usd: '20' },
  },
  policy_kill: {
    prepare: async (authorization) => void (await call(authorization, 'POST', '/v1/kill', { on: true })),
    input: { on: false },
  },
  recipients_add: {
    input: { chain_id: '8453', address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', label: 'Cold wallet' },
  },
  agents_link: { input: { code: '7K3M-Q0WD-2XNB' }, keyPairsNever: true },
}
/** Their tests: they need an object of the caller, and a person is asked for after the object was found. */
const testedElsewhere: Readonly<Record<string, string>> = {
  agents_unlink: 'test/oauth/agent-links.test.ts',
  approvals_approve: 'test/journeys/approvals.test.ts',
  // Only an activation that waives the run on paper.
  schedules_activate: 'test/journeys/strategy-terms.test.ts',
  // Only a change of the plan.
  subscriptions_checkout: 'test/journeys/subscription-periods.test.ts',
}

test('what only people do waits for their page, for every asker, over each door', async () => {
  const declared = all.filter(isActOfPeople).map(({ name }) => name)
  assert.deepEqual(declared.sort(), [...Object.keys(actsOfPeople), ...Object.keys(testedElsewhere)].sort())
  const person = await users.person()
  const keyPairs = await users.ofKeyPairs()
  const keyPair = (wanted: string) => keyPairs.find(({ what }) => what === wanted)!.authorization!
  const alone = keyPair(`a key pair with ${scopes.join(' ')}`)
  const linked = keyPair('a linked agent')
  const page = `Bearer ${await person.pageToken()}`
  const approve = all.find(({ name }) => name === 'approvals_approve')!
  const approveOverHttp = (authorization: string, id: string) =>
    call(authorization, 'POST', `/v1/approvals/${id}/approve`)
  const doors = {
    HTTP: { ask: overHttp, approve: approveOverHttp },
    MCP: {
      ask: asTool,
      approve: (authorization: string, approval_id: string) =>
        asTool(approve, authorization, { approval_id }),
    },
  }
  for (const [name, { prepare, input, keyPairsNever }] of Object.entries(actsOfPeople)) {
    const known = all.find((each) => each.name === name)!
    let asked = ''
    for (const [label, door] of Object.entries(doors)) {
      for (const authorization of keyPairsNever ? [alone, linked] : [alone]) {
        await prepare?.(authorization)
        const { status, body } = await door.ask(known, authorization, input)
        assert.deepEqual(
          [status, body.code, body.requires],
          [403, 'step_up_required', 'person'],
          `${name} ${label}`,
        )
        cells++
      }
      for (const authorization of keyPairsNever ? [] : [linked, person.authorization]) {
        await prepare?.(authorization)
        const reply = await door.ask(known, authorization, input)
        assert.equal(reply.status, 200, `${name} over ${label}: ${JSON.stringify(reply.body)}`)
        const { body: waiting } = await call(authorization, 'GET', '/v1/approvals')
        const [approval] = waiting.approvals as { approval_id: string; intent: Json }[]
        assert.equal(approval?.intent.kind, name, JSON.stringify(waiting))
        asked = approval!.approval_id
        const { status, body } = await door.approve(authorization, asked)
        assert.deepEqual([status, body.code, body.requires], [403, 'step_up_required', 'person'], name)
        cells++
      }
    }
    if (!asked) continue
    app.time.offsetMs = 301_000
    const old = await approveOverHttp(page, asked)
    app.time.offsetMs = 0
    assert.deepEqual(
      [old.status, old.body.code, old.body.requires],
      [403, 'step_up_required', 'fresh_sign_in'],
    )
    // The control: the page of a person who has just signed in.
    assert.equal((await approveOverHttp(page, asked)).status, 200, name)
    cells += 2
  }
})
