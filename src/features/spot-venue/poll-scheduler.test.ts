import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createPollScheduler, othersMax, pausePolls, reachedMax } from './poll-scheduler.ts'
import type { PendingEntry } from './triggers.ts'

const entry = (n: number, price: string | null = '20'): PendingEntry => ({
  market: 'hl:spot:HYPE',
  user_id: `user${n}`,
  entry_cloid: `order${n}`,
  price,
  since: new Date(0),
})
const at = (price: string) => () => price

describe('whose turn it is to be asked about', () => {
  test('everybody has a turn, however many wait, and no look asks more than its share', () => {
    const rows = Array.from({ length: 200 }, (_, n) => entry(n))
    const { choose } = createPollScheduler()
    const seen = new Set<string>()
    for (let look = 0; look < rows.length / othersMax; look++) {
      const chosen = choose(rows, at('40'))
      assert.equal(chosen.length, othersMax)
      for (const { entry_cloid } of chosen) seen.add(entry_cloid)
    }
    assert.equal(seen.size, rows.length)
  })

  test('orders that the price has reached go first, and neither keep each other nor the others out', () => {
    const near = Array.from({ length: 7 }, (_, n) => entry(n, '41'))
    const far = [entry(100), entry(101)]
    const { choose } = createPollScheduler()
    const looks = [0, 1, 2].map(() => choose([...far, ...near], at('40')))
    assert.ok(looks.every((chosen) => chosen.length <= reachedMax + othersMax))
    const seen = new Set(looks.flat().map(({ entry_cloid }) => entry_cloid))
    assert.equal(seen.size, near.length + far.length)
  })

  test('a lonely order far from the price is asked about once in a while', () => {
    const { choose } = createPollScheduler()
    const counts = Array.from({ length: pausePolls * 3 }, () => choose([entry(1)], at('40')).length)
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      3,
    )
  })

  test('without a price, or without knowing where an order rests, it takes its turn with the others', () => {
    const { choose } = createPollScheduler()
    assert.equal(choose([entry(1, null)], at('1')).length, othersMax)
    assert.equal(choose([entry(2)], () => undefined).length, othersMax)
  })

  test('what waits no more is forgotten', () => {
    const { choose } = createPollScheduler()
    assert.equal(choose([entry(1)], at('40')).length, 1)
    assert.equal(choose([entry(1)], at('40')).length, 0)
    assert.equal(choose([], at('40')).length, 0)
    assert.equal(choose([entry(1)], at('40')).length, 1)
  })
})
