import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import { createReplication } from './replication.ts'

const standby = { standbys: 1, synchronousCommit: 'on' }
const none = { standbys: 0, synchronousCommit: 'on' }

function replication() {
  let ms = 0
  const state = createReplication({ log: silentLog, nowMs: () => ms })
  return { ...state, after: (seconds: number) => (ms += seconds * 1_000) }
}

test('a missing standby shows at once, and refuses new money after half a minute', () => {
  const { observe, isReplicated, assertForNewMoney, after } = replication()
  assert.equal(isReplicated(), null)
  observe(standby)
  assert.equal(isReplicated(), true)
  observe(none)
  assert.equal(isReplicated(), false)
  after(29)
  observe(none)
  assertForNewMoney()
  after(2)
  assert.throws(assertForNewMoney, {
    code: 'unavailable',
    extras: { reason: 'not_replicated', retry_after: 10 },
  })
  observe(standby)
  assertForNewMoney()
  assert.equal(isReplicated(), true)
})

test('a standby that commits do not wait for is none', () => {
  for (const synchronousCommit of ['off', 'local', 'remote_write']) {
    const { observe, isReplicated } = replication()
    observe({ standbys: 2, synchronousCommit })
    assert.equal(isReplicated(), false, synchronousCommit)
  }
})

test('an installation that demands none is not judged', () => {
  const { observe, isReplicated, assertForNewMoney, after } = replication()
  observe({ standbys: null, synchronousCommit: null })
  after(60)
  assertForNewMoney()
  assert.equal(isReplicated(), null)
})
