/** A number arrives exactly or is rejected, and no body changes the identity of its sender. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { hasTask } from '#kernel/contract/operation.ts'
import { addBackend } from '../harness/backend.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { type KnownOperation, operationsOf } from './support/contracts.ts'
import { assertErrorForm, jsonOf } from './support/error-forms.ts'
import { createHttpClient, type HttpClient, type HttpReply, type HttpRequest } from './support/http-client.ts'
import { openIdentityRecords } from './support/identity-records.ts'
import { minimalRequest, pathOf } from './support/minimal-request.ts'
import { createMoneyAudit, type MoneyAudit } from './support/money-audit.ts'
import { compareNumbers, type Exact, exactOf, isSameNumber, withRawNumber } from './support/raw-number.ts'
import { unlimitedRates } from './support/unlimited.ts'

type Schema = { readonly [keyword: string]: unknown }
type Field = {
  known: KnownOperation
  part: 'query' | 'body'
  name: string
  schema: Schema
  isNullable: boolean
}

let gateway: Awaited<ReturnType<typeof freshGateway>>
let client: HttpClient
let all: KnownOperation[]
let agent: Agent
let victim: Agent
let money: MoneyAudit
let position: string
let backendKey: string

before(async () => {
  gateway = await freshGateway({ ...unlimitedRates, TRUST_PROXY: '127.0.0.1' })
  client = createHttpClient(gateway.url)
  all = await operationsOf(gateway.url)
  agent = await newAgent(gateway.url)
  victim = await newAgent(gateway.url)
  money = await createMoneyAudit(gateway, agent)
  position = (await money.start()).position_id
  await using rows = await openIdentityRecords(gateway.databaseUrl)
  backendKey = await addBackend(rows.db)
})
after(async () => {
  client[Symbol.dispose]()
  await gateway[Symbol.asyncDispose]()
})

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema of the number, where there is one: itself or the arm beside null. */
function numeric(schema: Schema): { schema: Schema; isNullable: boolean } | undefined {
  const types = [schema.type].flat()
  if (schema['x-decimal'] !== undefined || types.includes('integer') || types.includes('number'))
    return { schema, isNullable: false }
  const arms = Array.isArray(schema.anyOf) ? schema.anyOf.filter(isRecord) : []
  const arm = arms.map(numeric).find((found) => found !== undefined)
  return arm && { schema: arm.schema, isNullable: arms.some(({ type }) => type === 'null') }
}

function fields(): Field[] {
  return all.flatMap((known) =>
    (['query', 'body'] as const).flatMap((part) => {
      const properties = (known.entry[part] as unknown as Schema | undefined)?.properties
      const waits = known.entry.kind === 'task' && !known.entry.isAnswered && part === 'query'
      const own = isRecord(properties) ? Object.entries(properties) : []
      const named = waits ? [...own, ['timeout', { type: 'integer', minimum: 5, maximum: 90 }] as const] : own
      return named.flatMap(([name, schema]) => {
        const found = numeric(schema as Schema)
        return found ? [{ known, part, name, ...found }] : []
      })
    }),
  )
}

/** As they are written in JSON; invalid literals are invalid everywhere. */
const literals = [
  '1e-18',
  '1e-19',
  '1E-18',
  '1e30',
  '1e38',
  '1e39',
  '1e400',
  '-1e400',
  '1e-400',
  '1e3',
  '1.5e1',
  '1e+2',
  '-0',
  '0',
  '-1',
  '0.1',
  '0.30000000000000004',
  '0.123456',
  '0.1234567',
  '1.000000',
  '1.00000000000000000001',
  '9007199254740991',
  '9007199254740993',
  '-9007199254740993',
  '9007199254740992.5',
  '12345678901234567890',
  '9'.repeat(39),
  '9'.repeat(40),
  '9'.repeat(78),
  `0.${'0'.repeat(77)}1`,
  '2.50',
  '100',
  '5',
  '5.0',
  '20',
  '1e1',
  'NaN',
  'Infinity',
  '-Infinity',
  '01',
  '+1',
  '.5',
  '5.',
  '0x10',
  '1_000',
  '1e',
  '1e999999',
  '0e5',
  '--1',
  '"1e3"',
  '"0x10"',
  '" 1"',
  '"1 "',
  '"1_000"',
  '"1,5"',
  '"1,000.5"',
  '"１２"',
  '"١٢"',
  '"+1"',
  '"-0"',
  '"01"',
  '"1."',
  '".5"',
  '"NaN"',
  '"Infinity"',
  '"1\\u0000"',
  '"1\\n"',
  '"1"',
  '"1.5"',
  '"0.1"',
  '"1.000001"',
  '"∞"',
  '"½"',
  '"0.0000001"',
  '"20.000000"',
  `"${'9'.repeat(39)}"`,
  `"${'9'.repeat(40)}"`,
  '"0.1234567890123456789"',
  '"2.5e0"',
  'true',
  'false',
  '[]',
  '[1]',
  '{}',
  '{"a":1}',
  '""',
  'null',
  '"null"',
  '"true"',
]

const plainText = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/
const jsonNumber = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/

/** The expected value of a field for a literal: its exact value, null, or a rejection. */
function expected({ schema, isNullable }: Field, literal: string): Exact | null | undefined {
  if (literal === 'null') return isNullable ? null : undefined
  const isDecimal = schema['x-decimal'] !== undefined
  const quoted = /^"(.*)"$/.exec(literal)
  // An id or an amount in units may be text, which is checked by its pattern and not as a number.
  if (quoted && !isDecimal && [schema.type].flat().includes('string')) {
    const text = JSON.parse(literal) as string
    const { pattern = '', minLength = 0 } = schema as { pattern?: string; minLength?: number }
    const isStorable = !text.includes('\u0000') && text.length >= minLength
    return isStorable && new RegExp(pattern).test(text) ? null : undefined
  }
  if (quoted && (!isDecimal || !plainText.test(quoted[1]!))) return undefined
  if (!quoted && !jsonNumber.test(literal)) return undefined
  const value = exactOf(quoted ? quoted[1]! : literal)
  if (!value) return undefined
  return within(value, schema, isDecimal) ? value : undefined
}

function within(value: Exact, schema: Schema, isDecimal: boolean): boolean {
  const size = value.digits < 0n ? -value.digits : value.digits
  if (isDecimal) {
    const { places = 18 } = schema['x-decimal'] as { places?: number }
    if (value.places > places || size >= 10n ** BigInt(39 + value.places)) return false
  } else if (value.places > 0 || size > BigInt(Number.MAX_SAFE_INTEGER)) return false
  const bound = (keyword: string, holds: (sign: number) => boolean) => {
    const limit = schema[keyword]
    return limit === undefined || holds(compareNumbers(value, exactOf(String(limit))!))
  }
  return (
    bound('minimum', (sign) => sign >= 0) &&
    bound('exclusiveMinimum', (sign) => sign > 0) &&
    bound('maximum', (sign) => sign <= 0) &&
    bound('exclusiveMaximum', (sign) => sign < 0)
  )
}

let serial = 0
const ask = ({ headers, ...request }: HttpRequest): Promise<HttpReply> => {
  serial++
  const address = `10.9.${(serial >> 8) & 255}.${serial & 255}`
  // Both credentials: each operation reads its own.
  const own = { ...bearer(agent), 'x-backend-key': backendKey, 'x-forwarded-for': address }
  return client.send({ ...request, headers: { ...own, ...headers } })
}

const json = { 'content-type': 'application/json' }

/** Rejected at this very field by the grammar, not by a rule about its meaning. */
const grammar =
  /^(json_invalid|missing|\w+_type|\w+_parsing|finite_number|string_\w+|decimal_\w+|(greater|less)_than\w*)$/
function refusedAt(got: HttpReply, part: string, name: string): boolean {
  if (got.status !== 422) return false
  const { detail } = assertErrorForm(got) as { detail: { loc: unknown[]; type: string }[] }
  return detail.some(
    ({ loc, type }) => loc[0] === part && (loc.length === 1 || loc[1] === name) && grammar.test(type),
  )
}

/** The limits that the operator sets are a rule about the meaning of a number. */
const isAboveLimit = (got: HttpReply, { known, name }: Field): boolean =>
  known.name === 'policy_tighten' &&
  got.status === 422 &&
  got.text.includes('"ctx":{"le":') &&
  got.text.includes(name)

function requestWith({ known, name, part }: Field, literal: string): HttpRequest {
  const { entry } = known
  const minimal = minimalRequest(entry)
  if (entry.body && entry.kind === 'task' && 'position_id' in (minimal.body ?? {}))
    minimal.body!.position_id = position
  if (part === 'body') {
    const body = withRawNumber(minimal.body ?? {}, name, literal)
    return { method: entry.method, path: pathOf(entry, minimal), headers: json, body }
  }
  // In a query everything is text; a task is never accepted, because its body is none.
  const text = encodeURIComponent(literal.replace(/^"(.*)"$/, '$1'))
  const path = `${pathOf(entry, { ...minimal, query: {} })}?${name}=${text}`
  return { method: entry.method, path, ...(entry.kind === 'task' && { headers: json, body: '[]' }) }
}

/** Where an answer repeats its input, it repeats it exactly. */
function echoOf(got: HttpReply, { known, name }: Field): string | undefined {
  const body = jsonOf(got)
  const shown = body[name]
  if (typeof shown === 'string' || typeof shown === 'number') return String(shown)
  if (known.name.startsWith('earn_') && body.code === 'insufficient_balance') return String(body.required)
  return undefined
}

test('every number is accepted exactly as it is written, or rejected at its location', async (t) => {
  const found = fields()
  assert.ok(found.length >= 12, String(found.map(({ known, name }) => `${known.name}.${name}`)))
  let taken = 0
  let echoed = 0
  for (const field of found) {
    for (const literal of literals) {
      const request = requestWith(field, literal)
      const got = await ask(request)
      const message = `${field.known.name}.${field.name} ${literal.slice(0, 90)} -> ${got.status} ${got.text.slice(0, 300)}`
      assert.ok(got.status < 500, message)
      if (got.status >= 400) assertErrorForm(got, message)
      // A query is read by its text: there is no quoting, and no null.
      const isQuery = field.part === 'query'
      const written = isQuery ? literal.replace(/^"(.*)"$/, '$1') : literal
      const value = isQuery ? inQuery(field, written) : expected(field, written)
      if (value === undefined) {
        assert.ok(refusedAt(got, field.part, field.name), `accepted: ${message}`)
        continue
      }
      taken++
      if (isAboveLimit(got, field)) continue
      assert.ok(!refusedAt(got, field.part, field.name), `refused: ${message}`)
      const echo = echoOf(got, field)
      if (echo === undefined || value === null) continue
      echoed++
      assert.ok(
        isSameNumber(exactOf(echo)!, value) || isCut(field, echo, value),
        `answered ${echo}: ${message}`,
      )
    }
  }
  t.diagnostic(
    `${found.length} fields, ${found.length * literals.length} literals, ${taken} taken, ${echoed} repeated`,
  )
  assert.ok(taken > 100 && echoed > 30, `${taken} taken, ${echoed} repeated`)
})

/** The interface gives pages of schedules no upper bound, so that a larger one is cut, and the answer says to what. */
const isCut = ({ known, name }: Field, echo: string, value: Exact): boolean =>
  known.name.startsWith('schedules_') &&
  name === 'limit' &&
  echo === '100' &&
  compareNumbers(value, exactOf(echo)!) > 0

function inQuery({ schema }: Field, text: string): Exact | undefined {
  const whole = /^[+-]?[0-9]{1,16}$/.test(text) ? exactOf(text.replace(/^\+/, '')) : undefined
  return whole && within(whole, schema, false) ? whole : undefined
}

/** Fields that a body may not set; each is dropped, replaced by the caller, or rejected. */
const claims = (them: { userId: string; agentId: string }): [string, string][] => [
  ['user_id', JSON.stringify(them.userId)],
  ['agent_id', JSON.stringify(them.agentId)],
  ['application_id', '"another"'],
  ['credits', '1000000'],
  ['credits_available', '1000000'],
  ['status', '"completed"'],
  ['role', '"admin"'],
  ['is_admin', 'true'],
  ['scopes', '["withdraw"]'],
  ['owner', JSON.stringify(them.userId)],
  ['__proto__', '{"is_admin":true,"scopes":["withdraw"]}'],
  ['constructor', '{"prototype":{"is_admin":true}}'],
  ['toString', '"x"'],
]
const identity = new Set(['user_id', 'agent_id', 'application_id'])

type Self = {
  user_id: string
  agent_id: string
  credits_available: number
  scopes: string[]
  policy_summary: Record<string, unknown>
  disclaimer_acknowledged_at: string | null
}
/** Without the part of the day's cap that the sender's own deposits have used. */
const selfOf = async (person: Agent): Promise<Self> => {
  const { body } = await http<Self>(`${gateway.url}/v1/user`, { headers: bearer(person) })
  const { remaining_24h_usd: _, ...policy_summary } = body.policy_summary
  // One of the operations acknowledges the disclaimer, which moves nothing.
  return { ...body, policy_summary, disclaimer_acknowledged_at: null }
}
const creditsAfter = ({ credits_available: before }: Self, used: number) => ({
  credits_available: before - used,
  credits_available_decimal: String(before - used),
})
const countOf = async (person: Agent): Promise<number> =>
  (await http<{ total: number }>(`${gateway.url}/v1/tasks`, { headers: bearer(person) })).body.total

test('no body changes the identity or the funds of its sender', async () => {
  const welcomed = async () => ((await countOf(victim)) > 0 ? true : undefined)
  await eventually(welcomed, 'the faucet grant of the other user')
  const before = [await selfOf(agent), await selfOf(victim), await countOf(victim)] as const
  const them = { userId: before[1].user_id, agentId: before[1].agent_id }
  // A sign-up takes the token of a person, and refuses that of a key pair before it reads the body.
  const bodied = all.filter(({ name, entry }) => entry.method !== 'GET' && name !== 'auth_signup')
  await using rows = await openIdentityRecords(gateway.databaseUrl)
  /** A request that revokes its token gets one of its own. */
  const credential = async (name: string) =>
    name === 'auth_revoke' ? bearer({ ...agent, token: await rows.token(before[0].user_id) }) : bearer(agent)
  let creditsUsed = 0
  for (const { name, entry } of bodied) {
    const minimal = minimalRequest(entry)
    const costOf = (reply: HttpReply) =>
      hasTask(entry) && reply.status === 200 ? Number(jsonOf(reply).credits_used) : 0
    // An amount that the vault accepts, and a position of the sender's own.
    if (minimal.body && 'position_id' in minimal.body)
      Object.assign(minimal.body, { position_id: position, amount_usdc: '1' })
    const declared = Object.keys(((entry.body as unknown as Schema | undefined)?.properties ?? {}) as object)
    const sealed =
      (entry.kind === 'task' && entry.body !== undefined) ||
      (entry.body as Schema | undefined)?.additionalProperties === false
    const plain = await ask({
      method: entry.method,
      path: pathOf(entry, minimal),
      headers: { ...json, ...(await credential(name)) },
      body: JSON.stringify(minimal.body ?? {}),
    })
    creditsUsed += costOf(plain)
    for (const [claim, literal] of claims(them)) {
      if (declared.includes(claim)) continue
      const label = `${name} with ${claim}`
      const body = withRawNumber(minimal.body ?? {}, claim, literal)
      const headers = { ...json, ...(await credential(name)) }
      const got = await ask({ method: entry.method, path: pathOf(entry, minimal), headers, body })
      creditsUsed += costOf(got)
      if (got.status >= 400) assertErrorForm(got, label)
      assert.ok(got.status < 500, `${label}: ${got.text}`)
      const refused = got.status === 422 && got.text.includes(claim === '__proto__' ? 'json_invalid' : claim)
      if (claim === '__proto__' || claim === 'constructor')
        assert.equal(got.status, 422, `${label}: ${got.text}`)
      else if (sealed && !identity.has(claim)) assert.ok(refused, `${label}: ${got.status} ${got.text}`)
      else assert.equal(got.status, plain.status, `${label}: ${got.text}`)
    }
  }
  const asThem = await ask({
    method: 'GET',
    path: `/v1/user?user_id=${them.userId}&agent_id=${them.agentId}`,
  })
  assert.equal(jsonOf(asThem).user_id, before[0].user_id, asThem.text)
  const strays = await client.send({
    method: 'GET',
    path: '/v1/user',
    headers: { ...bearer(agent), 'x-user-id': them.userId, 'x-agent-id': them.agentId, 'x-role': 'admin' },
  })
  assert.equal(jsonOf(strays).user_id, before[0].user_id, strays.text)
  const ended = async () => ((await money.open()) === 0 ? true : undefined)
  await eventually(ended, 'the end of all tasks', 60_000)
  // The sender pays for the answers that it asked for, and for nothing else.
  const paid = { ...before[0], ...creditsAfter(before[0], creditsUsed) }
  assert.deepEqual(
    [await selfOf(agent), await selfOf(victim), await countOf(victim)],
    [paid, before[1], before[2]],
  )
  const { reported, recorded } = await money.account()
  assert.deepEqual(recorded, reported)
})
