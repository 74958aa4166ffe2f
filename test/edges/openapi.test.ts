import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Documented, openapiOf } from '#edges/http/openapi.ts'
import { faults } from '#kernel/contract/fault.ts'
import { type Entry, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { resolverOf } from '../proof/support/openapi-requests.ts'
import { operations } from './http-app.ts'

type Json = Record<string, unknown>
type Method = Json & { operationId: string; parameters?: Json[]; responses: Record<string, Json> }

const document = openapiOf(operations) as Json & { paths: Record<string, Record<string, Method>> }
const at = (route: string): Method => {
  const [method = '', path = ''] = route.split(' ')
  return document.paths[path]![method.toLowerCase()]!
}
const parameter = (route: string, name: string) => at(route).parameters?.find((found) => found.name === name)
const schemaOf = (route: string, name: string): Json => ({ ...(parameter(route, name)?.schema as object) })

test('every operation is in the document once, under its own name and section', () => {
  const methods = Object.values(document.paths).flatMap((path) => Object.values(path))
  const names = methods.map(({ operationId }) => operationId)
  assert.deepEqual(names.sort(), operations.map(({ name }) => name).sort())
  for (const { tags, summary, security } of methods) {
    assert.deepEqual(tags, ['probe'])
    assert.equal(typeof summary, 'string')
    assert.ok(Array.isArray(security))
  }
  assert.match(String(document.openapi), /^3\.1/)
  assert.deepEqual((document.info as Json).version, '1.0.0')
})

test('every reference resolves', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref ?? '')
  assert.ok(refs.length > 20)
  for (const ref of refs) resolverOf(document)(ref)
})

test('named schemas are components, wherever they are used', () => {
  const { schemas } = document.components as { schemas: Record<string, Json> }
  for (const name of ['PayRequest', 'Leg', 'Probe', 'HTTPValidationError', 'ValidationError', 'Problem']) {
    assert.ok(schemas[name], name)
  }
  const body = (at('POST /v1/pay').requestBody as Json).content as Record<string, Json>
  assert.deepEqual(body['application/json'], { schema: { $ref: '#/components/schemas/PayRequest' } })
  assert.doesNotMatch(JSON.stringify(document), /"\$id"|"~/)
})

test('a field with a default is optional', () => {
  const { schemas } = document.components as { schemas: Record<string, Json> }
  assert.deepEqual(schemas.ProbeCheckRequest?.required, ['name'])
})

test('public and scoped operations state their security', () => {
  assert.deepEqual(at('GET /v1/probe/open').security, [])
  assert.deepEqual(at('POST /v1/pay').security, [{ bearerAuth: [] }])
  assert.equal(at('POST /v1/pay')['x-scope'], 'trade')
})

test('a task has the parameters for waiting and for its idempotency key', () => {
  assert.equal(schemaOf('POST /v1/pay', 'wait').default, false)
  const { default: seconds, minimum, maximum } = schemaOf('POST /v1/pay', 'timeout')
  assert.deepEqual([seconds, minimum, maximum], [60, 5, 90])
  assert.equal(parameter('POST /v1/pay', 'Idempotency-Key')?.in, 'header')
  assert.match(String(parameter('POST /v1/pay', 'Idempotency-Key')?.description), /REUSE/)
  assert.equal(parameter('POST /v1/sign', 'Idempotency-Key'), undefined)
  assert.equal(parameter('GET /v1/probe', 'Idempotency-Key'), undefined)
})

test('streams are event streams, and optional bodies are optional', () => {
  const content = at('GET /v1/watch').responses['200']?.content as Json
  assert.deepEqual(Object.keys(content), ['text/event-stream'])
  assert.equal((at('PUT /v1/probe').requestBody as Json).required, false)
  assert.equal((at('POST /v1/pay').requestBody as Json).required, true)
})

test('each possible status is documented, with its codes', () => {
  const statuses = (route: string) => Object.keys(at(route).responses).map(Number)
  assert.deepEqual(statuses('GET /v1/probe/open'), [200, 422, 429, 500, 503])
  assert.deepEqual(statuses('GET /v1/probe/{probe_id}'), [200, 401, 403, 404, 422, 429, 500, 503])
  assert.deepEqual(statuses('POST /v1/pay'), [200, 401, 403, 409, 413, 415, 422, 429, 500, 503])
  const { responses } = document.components as { responses: Record<string, { description: string }> }
  const descriptions = Object.values(responses)
    .map(({ description }) => description)
    .join()
  // Answered outside of operations, or by no operation of this suite.
  const elsewhere = [
    'method_not_allowed',
    'headers_too_large',
    'upstream_rejected',
    'upstream_timeout',
    'insufficient_credits',
  ]
  for (const code of Object.keys(faults).filter((name) => !elsewhere.includes(name))) {
    assert.ok(descriptions.includes(`\`${code}\``), code)
  }
})

test('two different schemas under one name are rejected', () => {
  const entry = (schema: T.TSchema) => read('GET /x', { summary: 'x', access: 'public', output: schema })
  const both = [T.Object({ a: T.String() }, { $id: 'Same' }), T.Object({ b: T.String() }, { $id: 'Same' })]
  const made = both.map(
    (schema, i): Documented => ({ name: `n${i}`, group: 's', about: '', entry: entry(schema) as Entry }),
  )
  assert.throws(() => openapiOf(made), /two different schemas are named Same/)
})
