import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guardTrippedEvent, type TrippedGuard } from './guard-event.ts'

const tripped: TrippedGuard = {
  strategyId: 'schedule',
  title: 'ETH on Mondays',
  mode: 'live',
  guard: 'max_drawdown',
  atMs: 0,
  onTrip: 'flatten',
  equityUsd: '890',
}
const messageOf = (fields: Partial<TrippedGuard>) => guardTrippedEvent({ ...tripped, ...fields }).data.message

test('the event says what is stopped, and what goes on', () => {
  assert.equal(
    messageOf({}),
    'It has fallen from its highest worth by as much as its guard allows: it enters nothing any more, and every position is closed',
  )
  assert.equal(
    messageOf({ mode: 'paper', guard: 'daily_loss', onTrip: 'stop_entries' }),
    'On paper it has lost as much today as its guard allows: it enters nothing before the local day ends, and what is open keeps its stop and its target',
  )
})
