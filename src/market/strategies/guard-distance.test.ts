import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guardUses } from './guard-distance.ts'
import { openGuards } from './guards.ts'

const state = {
  ...openGuards(1_000_000_000n, 0),
  peakMicros: 1_200_000_000n,
  dayStartMicros: 980_000_000n,
  lossesInRow: 3,
}

test('the most used guard comes first, with what is used of its limit', () => {
  const uses = guardUses(
    state,
    { max_loss_usd: '400', daily_loss_usd: '88', max_drawdown_pct: '50', max_consecutive_losses: 4 },
    900_000_000n,
  )
  assert.deepEqual(
    uses.map(({ guard, usedBps, text }) => [guard, usedBps, text]),
    [
      ['daily_loss', 9_090n, '80 of 88 USD'],
      ['max_consecutive_losses', 7_500n, '3 of 4 losses in a row'],
      ['max_drawdown', 5_000n, '25 of 50 %'],
      ['max_loss', 2_500n, '100 of 400 USD'],
    ],
  )
})

test('a gain uses nothing, and a guard that is not set has no use', () => {
  assert.deepEqual(guardUses(state, {}, 900_000_000n), [])
  const [use] = guardUses(state, { max_loss_usd: '10' }, 1_100_000_000n)
  assert.equal(use?.usedBps, 0n)
})
