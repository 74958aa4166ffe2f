import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areNoLooser, guardsOf } from './guard-config.ts'

test('equal guards are equal JSON, however they are written', () => {
  const one = guardsOf({ max_loss_usd: '50', max_drawdown_pct: '10' })
  const other = guardsOf({ max_loss_usd: '50.00', max_drawdown_pct: '10.0', on_trip: 'flatten' })
  assert.deepEqual(one, other)
  assert.deepEqual(one, { max_loss_usd: '50', max_drawdown_bps: 1_000, on_trip: 'flatten' })
})

test('guards are no looser if each bound is as tight, and another one may be added', () => {
  const before = guardsOf({ max_loss_usd: '50', max_trades_per_day: 3, cooldown_seconds: 60 })
  const with_ = (change: object) => areNoLooser({ ...before, ...change }, before)
  assert.equal(with_({}), true)
  assert.equal(with_({ max_loss_usd: '9.5', daily_loss_usd: '5' }), true)
  assert.equal(with_({ max_loss_usd: '50.01' }), false)
  assert.equal(with_({ max_loss_usd: undefined }), false)
  assert.equal(with_({ max_trades_per_day: 4 }), false)
  assert.equal(with_({ cooldown_seconds: 59 }), false)
  assert.equal(with_({ cooldown_seconds: 61 }), true)
  assert.equal(with_({ on_trip: 'stop_entries' }), false)
})
