import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadShedder, moneySamplesMax } from './load-shedding.ts'

test('a second late interval sheds reads, a lasting overload sheds money operations, and exits are never shed', () => {
  const load = loadShedder(250)
  const shed = () =>
    (['auth', 'read', 'stream', 'money', 'exit'] as const).filter((rate) => load.refusal(rate) !== undefined)
  load.record(250)
  load.record(251)
  assert.deepEqual(shed(), [])
  for (let late = 2; late < moneySamplesMax; late++) {
    load.record(251)
    assert.deepEqual(shed(), ['auth', 'read', 'stream'])
  }
  load.record(251)
  assert.deepEqual(shed(), ['auth', 'read', 'stream', 'money'])
  load.record(3)
  assert.deepEqual(shed(), [])
})
