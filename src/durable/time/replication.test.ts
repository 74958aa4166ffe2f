import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type { Admission } from '#kernel/task/task.ts'
import { createReplicationState } from './replication.ts'

const standby = { standbys: 1, synchronousCommit: 'on', isHeld: false }
const none = { standbys: 0, synchronousCommit: 'on', isHeld: false }

const admissionOf = ({ exit }: { exit: boolean }): Pick<Admission, 'spend'> => {
  const action = {
    userId: 'u',
    operation: 'o',
    chainId: '1',
    tokens: [],
    recipients: [],
    usdMicros: 0n,
    exit,
  }
  return { spend: { action, check: async () => exitGrant('1') } }
}

function replication() {
  let ms = 0
  const state = createReplicationState({ log: silentLog, nowMs: () => ms })
  return { ...state, after: (seconds: number) => (ms += seconds * 1_000) }
}

test('a missing standby shows at once, and refuses new money after half a minute', () => {
  const { observe, isReplicated, assertFor, after } = replication()
  const assertForNewMoney = () => assertFor(admissionOf({ exit: false }))
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
  assertFor(admissionOf({ exit: true }))
  assertFor({})
  observe(standby)
  assertForNewMoney()
  assert.equal(isReplicated(), true)
})

test('a standby that commits do not wait for is none', () => {
  for (const synchronousCommit of ['off', 'local', 'remote_write']) {
    const { observe, isReplicated } = replication()
    observe({ standbys: 2, synchronousCommit, isHeld: false })
    assert.equal(isReplicated(), false, synchronousCommit)
  }
})

test('a standby that streams while commits wait is none', () => {
  const { observe, isReplicated, isOverdue, after } = replication()
  observe(standby)
  observe({ ...standby, isHeld: true })
  assert.equal(isReplicated(), false)
  after(31)
  assert.equal(isOverdue(), true)
})
