/** The two forms of an error, word for word; an answer in a third one fails here. */
import assert from 'node:assert/strict'
import { type FaultCode, faults } from '#kernel/fault.ts'
import type { Got } from './wire.ts'

type Json = Record<string, unknown>

const stack = /\n\s+at \S|\\n\s+at \S|node_modules|node:internal|\bsrc\/[a-z]|postgres(?:ql)?:\/\//
const parts = new Set(['body', 'query', 'path', 'header'])

export const jsonOf = (got: Got): Json => JSON.parse(got.text) as Json
export const codeOf = (got: Got): unknown =>
  got.status === 422 && !got.text.includes('"code"') ? 'validation' : jsonOf(got).code

/** Asserts that an error has its documented form; `said` tells which request it answered. */
export function inForm(got: Got, said = ''): Json {
  const told = `${said} ${got.status} ${got.text.slice(0, 600)}`
  assert.ok(got.status >= 400, told)
  assert.doesNotMatch(got.text, stack, told)
  assert.equal(got.headers['cache-control'], 'no-store', told)
  assert.equal(got.headers['x-content-type-options'], 'nosniff', told)
  const id = got.headers['x-request-id']
  assert.ok(typeof id === 'string' && id.length >= 8, told)
  const body = jsonOf(got)
  const type = got.headers['content-type'] ?? ''
  if (type.startsWith('application/problem+json')) problem(body, got, told)
  else {
    assert.match(type, /^application\/json/, told)
    if (got.status === 422) validation(body, told)
    else flat(body, got, told)
  }
  return body
}

function validation(body: Json, told: string): void {
  assert.deepEqual(Object.keys(body), ['detail'], told)
  issues(body.detail, told)
}

function issues(detail: unknown, told: string): void {
  assert.ok(Array.isArray(detail) && detail.length > 0, told)
  for (const item of detail as Json[]) {
    const { loc, msg, type, ctx, ...rest } = item
    assert.deepEqual(rest, {}, told)
    assert.ok(Array.isArray(loc) && parts.has(String(loc[0])), told)
    for (const step of loc) assert.ok(typeof step === 'string' || Number.isInteger(step), told)
    assert.ok(typeof msg === 'string' && msg !== '' && typeof type === 'string' && type !== '', told)
    assert.ok(ctx === undefined || (typeof ctx === 'object' && ctx !== null), told)
  }
}

function flat(body: Json, got: Got, told: string): void {
  assert.ok(typeof body.detail === 'string' && body.detail !== '', told)
  ofCatalogue(body, got, told)
}

function problem(body: Json, got: Got, told: string): void {
  assert.match(String(body.type), /\/error-catalog\.json#[a-z_]+$/, told)
  assert.equal(body.status, got.status, told)
  assert.ok(typeof body.title === 'string' && typeof body.detail === 'string', told)
  if (got.status === 422) issues(body.errors, told)
  ofCatalogue(body, got, told)
}

function ofCatalogue(body: Json, got: Got, told: string): void {
  assert.ok(Object.hasOwn(faults, String(body.code)), told)
  const row = faults[body.code as FaultCode]
  assert.equal(got.status, row.status, told)
  assert.equal(body.retryable, row.retryable, told)
  assert.equal(body.request_id, got.headers['x-request-id'], told)
  if (got.status === 429 || got.status === 503) assert.match(got.headers['retry-after'] ?? '', /^[1-9]\d*$/)
  // An answer that does not know the outcome names the key under which it can be asked for.
  if (got.status === 503 && body.outcome === 'unknown') assert.ok(body.idempotency_key, told)
  else if (got.status === 503) assert.equal(body.outcome, 'not_executed', told)
  if (got.status === 405) assert.ok(got.headers.allow, told)
  if (got.status === 401) assert.ok(got.headers['www-authenticate'], told)
}
