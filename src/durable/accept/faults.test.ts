import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { throwAsFault } from './faults.ts'

const coded = (code: string) => Object.assign(new Error(code), { code })

test('a retryable database error becomes unavailable, and a bug stays a bug', () => {
  for (const code of ['40P01', '40001', '57P01', '25P03', '57014'])
    assert.throws(() => throwAsFault(coded(code)), { code: 'unavailable', extras: { retry_after: 1 } }, code)
  const mistake = coded('42P01')
  assert.throws(
    () => throwAsFault(mistake),
    (error) => error === mistake,
  )
  const fault = new Fault('not_found', 'No such task')
  assert.throws(
    () => throwAsFault(fault),
    (error) => error === fault,
  )
})
