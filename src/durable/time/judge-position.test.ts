import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FoundPosition, judgePosition, type Position, rememberPosition } from './judge-position.ts'

const seen: Position = { generation: 1, beat: 50, system: '7001', timeline: 3, lsn: 900n }
const found = (changes: Partial<FoundPosition> = {}): FoundPosition => ({
  ...seen,
  storedLsn: 900n,
  isEmpty: false,
  ...changes,
})
const judged = (changes?: Partial<FoundPosition>, memory: Position | undefined = seen) => {
  const judgement = judgePosition(memory, found(changes))
  return judgement.verdict === 'go' ? 'go' : `${judgement.verdict} ${judgement.reason}`
}

test('a database that has all that was seen goes on', () => {
  assert.equal(judged(), 'go')
  // The reply to a heartbeat was lost, and the server wrote on.
  assert.equal(judged({ beat: 51, lsn: 1_000n, storedLsn: 1_000n }), 'go')
})

test('fewer heartbeats, or a lower position on the same timeline, are lost commits', () => {
  assert.equal(judged({ beat: 49 }), 'hold went_back')
  assert.equal(judged({ beat: 0 }), 'hold went_back')
  assert.equal(judged({ lsn: 899n }), 'hold went_back')
  // A dump that was loaded into the same server: its position only rises.
  assert.equal(judged({ beat: 10, lsn: 5_000n }), 'hold went_back')
})

test('a new timeline with every position that a gateway stored is compared, and an older one is held', () => {
  assert.equal(judged({ timeline: 4 }), 'check new_timeline')
  assert.equal(judged({ timeline: 4, storedLsn: 899n }), 'hold went_back')
  assert.equal(judged({ timeline: 4, beat: 49 }), 'hold went_back')
  assert.equal(judged({ timeline: 2 }), 'hold went_back')
})

test('another server is for an operator, whatever its positions are', () => {
  assert.equal(judged({ system: '7002' }), 'hold other_server')
  assert.equal(judged({ system: '7002', timeline: 4, lsn: 9_000n }), 'hold other_server')
})

test('a server that shows nothing of itself is judged by the heartbeats', () => {
  const hidden = { system: null, timeline: null, lsn: null }
  assert.equal(judged(hidden), 'go')
  assert.equal(judged({ ...hidden, beat: 49 }), 'hold went_back')
  assert.equal(judged({}, { ...seen, ...hidden }), 'go')
})

test('a gateway without memory compares, except where nothing was ever signed', () => {
  assert.equal(judgePosition(undefined, found()).verdict, 'check')
  assert.equal(judgePosition(undefined, found({ isEmpty: true })).verdict, 'go')
  // A database that was emptied is not new to who knew it.
  assert.equal(judged({ isEmpty: true, beat: 0 }), 'hold went_back')
})

test('what an operator accepted counts from then on, and is lost with a database that went back before it', () => {
  assert.equal(judged({ generation: 2, beat: 3, timeline: 1, system: '7002', lsn: 1n }), 'go')
  assert.equal(judged({ generation: 0 }), 'hold went_back')
})

test('the highest position that any gateway stored is remembered', () => {
  assert.equal(rememberPosition(seen, found({ lsn: 950n, storedLsn: 980n })).lsn, 980n)
  assert.equal(rememberPosition(seen, found({ lsn: 990n, storedLsn: 980n })).lsn, 990n)
  // That of the former timeline says nothing about the new one.
  assert.equal(rememberPosition(seen, found({ timeline: 4, lsn: 950n, storedLsn: 980n })).lsn, 950n)
})
