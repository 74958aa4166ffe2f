import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDatabaseUnavailable } from './unavailable.ts'

const coded = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more })

test('errors of an unreachable database', () => {
  for (const code of [
    '57P01',
    '57P03',
    '08006',
    '08P01',
    '53300',
    '53100',
    '25P03',
    '25006',
    'ECONNREFUSED',
    'EPIPE',
  ]) {
    assert.equal(isDatabaseUnavailable(coded(code)), true, code)
  }
  assert.equal(isDatabaseUnavailable(coded('ENOENT', { syscall: 'connect' })), true)
  assert.equal(isDatabaseUnavailable(new Error('Connection terminated unexpectedly')), true)
  assert.equal(isDatabaseUnavailable(new Error('wrapped', { cause: coded('ECONNRESET') })), true)
})

test('errors of a reachable database, and errors of other causes', () => {
  for (const code of ['23505', '40001', '57014', '42P01', '28P01']) {
    assert.equal(isDatabaseUnavailable(coded(code)), false, code)
  }
  assert.equal(isDatabaseUnavailable(coded('ENOENT', { syscall: 'open' })), false)
  assert.equal(isDatabaseUnavailable(new Error('Connection is a word')), false)
  assert.equal(isDatabaseUnavailable('Connection terminated'), false)
  assert.equal(isDatabaseUnavailable(undefined), false)
})
