/** The two documented forms of an error; an answer in a third one fails here. */
import assert from 'node:assert/strict'
import { type FaultCode, faults } from '#kernel/contract/fault.ts'
import type { HttpReply } from './http-client.ts'

type Json = Record<string, unknown>

const stack = /\n\s+at \S|\\n\s+at \S|node_modules|node:internal|\bsrc\/[a-z]|postgres(?:ql)?:\/\//
const parts = new Set(['body', 'query', 'path', 'header'])

export const jsonOf = (got: HttpReply): Json => JSON.parse(got.text) as Json
export const codeOf = (got: HttpReply): unknown => jsonOf(got).code

/** Asserts that an error has its documented form; `said` names its request. */
export function assertErrorForm(got: HttpReply, label = ''): Json {
  const message = `${label} ${got.status} ${got.text.slice(0, 600)}`
  assert.ok(got.status >= 400, message)
  assert.doesNotMatch(got.text, stack, message)
  assert.equal(got.headers['cache-control'], 'no-store', message)
  assert.equal(got.headers['x-content-type-options'], 'nosniff', message)
  const id = got.headers['x-request-id']
  assert.ok(typeof id === 'string' && id.length >= 8, message)
  const body = jsonOf(got)
  const type = got.headers['content-type'] ?? ''
  if (type.startsWith('application/problem+json')) assertProblemForm(body, got, message)
  else {
    assert.match(type, /^application\/json/, message)
    if (got.status === 422) assertValidationForm(body, got, message)
    else assertFlatForm(body, got, message)
  }
  return body
}

function assertValidationForm(body: Json, got: HttpReply, message: string): void {
  assert.deepEqual(Object.keys(body), ['detail', 'code', 'retryable', 'request_id'], message)
  assertIssues(body.detail, message)
  assertCatalogueCode(body, got, message)
}

function assertIssues(detail: unknown, message: string): void {
  assert.ok(Array.isArray(detail) && detail.length > 0, message)
  for (const item of detail as Json[]) {
    const { loc, msg, type, ctx, ...rest } = item
    assert.deepEqual(rest, {}, message)
    assert.ok(Array.isArray(loc) && parts.has(String(loc[0])), message)
    for (const step of loc) assert.ok(typeof step === 'string' || Number.isInteger(step), message)
    assert.ok(typeof msg === 'string' && msg !== '' && typeof type === 'string' && type !== '', message)
    assert.ok(ctx === undefined || (typeof ctx === 'object' && ctx !== null), message)
  }
}

function assertFlatForm(body: Json, got: HttpReply, message: string): void {
  assert.ok(typeof body.detail === 'string' && body.detail !== '', message)
  assertCatalogueCode(body, got, message)
}

function assertProblemForm(body: Json, got: HttpReply, message: string): void {
  assert.match(String(body.type), /\/error-catalog\.json#[a-z_]+$/, message)
  assert.equal(body.status, got.status, message)
  assert.ok(typeof body.title === 'string' && typeof body.detail === 'string', message)
  if (got.status === 422) assertIssues(body.errors, message)
  assertCatalogueCode(body, got, message)
}

function assertCatalogueCode(body: Json, got: HttpReply, message: string): void {
  assert.ok(Object.hasOwn(faults, String(body.code)), message)
  const row = faults[body.code as FaultCode]
  assert.equal(got.status, row.status, message)
  assert.equal(body.retryable, row.retryable, message)
  assert.equal(body.request_id, got.headers['x-request-id'], message)
  if (got.status === 429 || got.status === 503) assert.match(got.headers['retry-after'] ?? '', /^[1-9]\d*$/)
  // An answer with an unknown outcome names the idempotency key for a later request.
  if (got.status === 503 && body.outcome === 'unknown') assert.ok(body.idempotency_key, message)
  else if (got.status === 503) assert.equal(body.outcome, 'not_executed', message)
  if (got.status === 405) assert.ok(got.headers.allow, message)
  if (got.status === 401) assert.ok(got.headers['www-authenticate'], message)
}
