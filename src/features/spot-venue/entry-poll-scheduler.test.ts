import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createPollScheduler, othersMax, pausePolls, reachedMax } from './entry-poll-scheduler.ts'
import type { PendingEntry } from './trigger-store.ts'

const entry = (n: number, price: string | null = '20'): PendingEntry => ({
  market: 'hl:spot:HYPE',
  user_id: `user${n}`,
  entry_cloid: `order${n}`,
  price,
  since: new Date(0),
})
const at = (price: string) => () => price

describe('the poll scheduler', () => {
  test('polls every entry in turn, and never more than the limit per round', () => {
    const rows = Array.from({ length: 200 }, (_, n) => entry(n))
    const { choose } = createPollScheduler()
    const seen = new Set<string>()
    for (let round = 0; round < rows.length / othersMax; round++) {
      const chosen = choose(rows, at('40'))
      assert.equal(chosen.length, othersMax)
      for (const { entry_cloid } of chosen) seen.add(entry_cloid)
    }
    assert.equal(seen.size, rows.length)
  })

  test('polls entries whose price was reached first, and starves no other entry', () => {
    const near = Array.from({ length: 7 }, (_, n) => entry(n, '41'))
    const far = [entry(100), entry(101)]
    const { choose } = createPollScheduler()
    const rounds = [0, 1, 2].map(() => choose([...far, ...near], at('40')))
    assert.ok(rounds.every((chosen) => chosen.length <= reachedMax + othersMax))
    const seen = new Set(rounds.flat().map(({ entry_cloid }) => entry_cloid))
    assert.equal(seen.size, near.length + far.length)
  })

  test('polls a single entry far from the price once per pause', () => {
    const { choose } = createPollScheduler()
    const counts = Array.from({ length: pausePolls * 3 }, () => choose([entry(1)], at('40')).length)
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      3,
    )
  })

  test('polls an entry in turn where the market price or its own price is unknown', () => {
    const { choose } = createPollScheduler()
    assert.equal(choose([entry(1, null)], at('1')).length, othersMax)
    assert.equal(choose([entry(2)], () => undefined).length, othersMax)
  })

  test('removes entries that are no longer pending', () => {
    const { choose } = createPollScheduler()
    assert.equal(choose([entry(1)], at('40')).length, 1)
    assert.equal(choose([entry(1)], at('40')).length, 0)
    assert.equal(choose([], at('40')).length, 0)
    assert.equal(choose([entry(1)], at('40')).length, 1)
  })
})
