import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadShedder, samplesMax } from './load-shedding.ts'

test('a second late interval sheds reads of heavy callers, a lasting overload all but exits', () => {
  const load = loadShedder(250)
  const shed = (caller: { isHeavy: boolean }) =>
    (['auth', 'read', 'stream', 'money', 'exit'] as const).filter(
      (rate) => load.refusal(rate, caller) !== undefined,
    )
  load.record(250)
  load.record(251)
  assert.deepEqual(shed({ isHeavy: true }), [])
  for (let late = 2; late < samplesMax; late++) {
    load.record(251)
    assert.deepEqual(shed({ isHeavy: true }), ['auth', 'read', 'stream'])
    assert.deepEqual(shed({ isHeavy: false }), [])
  }
  load.record(251)
  assert.deepEqual(shed({ isHeavy: true }), ['auth', 'read', 'stream', 'money'])
  assert.deepEqual(shed({ isHeavy: false }), ['auth', 'read', 'stream', 'money'])
  load.record(3)
  assert.deepEqual(shed({ isHeavy: true }), [])
})
