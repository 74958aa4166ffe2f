import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { priceUnitsOf } from '#market/strategies/account.ts'
import { executeInBook, nothingTaken, type ShownBook } from '#market/strategies/book-execution.ts'
import type { CandleColumns } from '#market/strategies/candle-columns.ts'
import type { Execute } from '#market/strategies/matching.ts'
import {
  type Advanced,
  advancePaper,
  nextMinute,
  type PaperAccount,
  type PaperMarket,
  type PaperReading,
} from '#market/strategies/paper-run.ts'
import { fromStoredRun, toStoredRun } from '#market/strategies/stored-run.ts'
import type { OrderIntent } from '#market/strategies/strategy.ts'
import { openRun, type RunConfig } from '#market/strategies/strategy-run.ts'
import { bitcoin, columnWalk, dayMs, farming, minuteMs, partOf, walkStartMs } from './strategy-walk.ts'

const config: RunConfig = {
  decision: { strategy: farming, markets: { BTC: bitcoin } },
  guards: { on_trip: 'flatten' },
  budgetMicros: null,
}
const dayEnds = [walkStartMs + dayMs, walkStartMs + 2 * dayMs]
const nobody = { ...columnWalk({ seed: 1, count: 1 }) }
const bookAt = (price: number, sizeUnits = 1_000_000n): ShownBook => ({
  timeMs: 1,
  asks: [{ priceUnits: priceUnitsOf(price + 1), sizeUnits }],
  bids: [{ priceUnits: priceUnitsOf(price - 1), sizeUnits }],
})
const marketOf = (execute: Execute | undefined): PaperMarket => ({
  config,
  hasArrived: true,
  executeAt: () => execute,
})
const bookMarket = (price: number, sizeUnits?: bigint): PaperMarket =>
  marketOf(executeInBook(bookAt(price, sizeUnits), nothingTaken(1), { slippageBps: 500n }))

const entry = (fields: Partial<OrderIntent> = {}): OrderIntent => ({
  asset: 'BTC',
  side: 'buy',
  order_type: 'market',
  size: '0.01',
  reduce_only: false,
  leverage: 5,
  is_cross: true,
  stop_loss: { price: '99000', is_market: true },
  take_profit: { price: '101000', is_market: true },
  ...fields,
})
const openAt = (atMs: number, pending: OrderIntent[] = [], resting: OrderIntent[] = []): PaperAccount => ({
  run: { ...openRun(1_000_000_000n, dayEnds[0]!), pending, resting },
  cursor: {
    atMs,
    minutesFromMs: resting.length > 0 ? { BTC: nextMinute(atMs) } : {},
    fundingToMs: atMs,
  },
})
const readingAt = (atMs: number, fields: Partial<PaperReading> = {}): PaperReading => ({
  atMs,
  minutes: {},
  funding: {},
  fundingToMs: atMs,
  marks: {},
  dayEnds,
  ...fields,
})
const marked = (atMs: number, price: number, fields: Partial<PaperReading> = {}) =>
  readingAt(atMs, { marks: { BTC: priceUnitsOf(price) }, ...fields })
/** Minutes that all have this range. */
const minutesOf = (firstMs: number, count: number, [low, high]: [number, number]): CandleColumns => ({
  spanMs: minuteMs,
  startMs: Float64Array.from({ length: count }, (_, at) => firstMs + at * minuteMs),
  open: new Float64Array(count).fill((low + high) / 2),
  high: new Float64Array(count).fill(high),
  low: new Float64Array(count).fill(low),
  close: new Float64Array(count).fill((low + high) / 2),
  volume: new Float64Array(count).fill(1),
})
const accountOf = ({ run, cursor }: Advanced): PaperAccount => ({ run, cursor })
const afterRestart = ({ run, cursor }: Advanced): PaperAccount => ({
  run: fromStoredRun(JSON.parse(JSON.stringify(toStoredRun(run)))),
  cursor: JSON.parse(JSON.stringify(cursor)),
})

describe('an account on paper', () => {
  const enteredMs = walkStartMs + 20_000
  const enter = (orders = [entry()]) =>
    advancePaper(openAt(walkStartMs, orders), marked(enteredMs, 100_000), bookMarket(100_000))

  test('enters at the book, once its orders have arrived there', () => {
    const waiting = advancePaper(openAt(walkStartMs, [entry()]), marked(enteredMs, 100_000), {
      ...bookMarket(100_000),
      hasArrived: false,
    })
    assert.deepEqual([waiting.fills.length, waiting.run.pending.length], [0, 1])
    const withoutBook = advancePaper(accountOf(waiting), marked(enteredMs, 100_000), marketOf(undefined))
    assert.deepEqual([withoutBook.fills.length, withoutBook.run.pending.length], [0, 1])
    const entered = enter()
    assert.equal(entered.run.pending.length, 0)
    assert.deepEqual(
      entered.fills.map(({ valueMicros, netMicros, reason }) => [valueMicros, netMicros, reason]),
      [[1_000_010_000n, null, 'entry']],
    )
    assert.equal(entered.cursor.minutesFromMs.BTC, walkStartMs + minuteMs)
  })

  test('is stopped by no price that is older than its entry', () => {
    const entered = enter()
    const older = minutesOf(walkStartMs - minuteMs, 2, [98_000, 100_500])
    const toMs = walkStartMs + minuteMs
    const reading = { minutes: { BTC: { columns: older, toMs } } }
    const held = advancePaper(accountOf(entered), marked(toMs + 5_000, 100_000, reading), bookMarket(100_000))
    assert.deepEqual(held.fills, [])
    const later = minutesOf(toMs, 1, [98_900, 100_500])
    const next = marked(toMs + minuteMs, 100_000, {
      minutes: { BTC: { columns: later, toMs: toMs + minuteMs } },
    })
    const stopped = advancePaper(accountOf(held), next, bookMarket(100_000))
    assert.deepEqual(
      stopped.fills.map(({ reason, atMs, isBuy }) => [reason, atMs, isBuy]),
      [['stop', toMs, false]],
    )
    assert.equal(stopped.run.account.positions.size, 0)
    assert.deepEqual(stopped.cursor.minutesFromMs, {})
  })

  test('is filled as far as the book goes, and no further', () => {
    const part = advancePaper(
      openAt(walkStartMs, [entry()]),
      marked(enteredMs, 100_000),
      bookMarket(100_000, 400n),
    )
    assert.deepEqual(
      part.ends.map(({ filledUnits }) => filledUnits),
      [400n],
    )
    assert.equal(part.run.account.positions.get('BTC')?.sizeUnits, 400n)
    assert.equal(part.run.pending.length, 0)
  })

  test('is refused what its margin does not cover, and what is below the least order', () => {
    for (const [size, rejection] of [
      ['1', 'insufficient_balance'],
      ['0.00005', 'below_minimum'],
    ] as const) {
      const refused = enter([entry({ size })])
      assert.deepEqual(
        refused.ends.map((end) => end.rejection),
        [rejection],
      )
      assert.deepEqual([refused.fills.length, refused.run.pending.length], [0, 0])
    }
  })

  test('pays the funding of each hour once, and none of an hour before it was open', () => {
    const entered = enter()
    const hourMs = walkStartMs + 3_600_000
    const rates = [
      { atMs: walkStartMs, rate: 0.01 },
      { atMs: hourMs, rate: 0.001 },
    ]
    const reading = marked(hourMs + minuteMs, 100_000, {
      funding: { BTC: rates },
      fundingToMs: hourMs + 30_000,
    })
    const paid = advancePaper(accountOf(entered), reading, bookMarket(100_000))
    assert.equal(paid.run.account.fundingMicros, 1_000_000n)
    const again = advancePaper(accountOf(paid), { ...reading, atMs: reading.atMs + 1 }, bookMarket(100_000))
    assert.equal(again.run.account.fundingMicros, 1_000_000n)
  })

  test('goes on from its cursor: whenever it stops and starts, every minute counts once', () => {
    const walk = columnWalk({ seed: 7, count: 240 })
    const firstMs = walk.startMs[0]!
    const price = walk.close[0]!
    const resting = [
      entry({
        order_type: 'limit',
        price: String(price - 30),
        stop_loss: { price: String(price - 400), is_market: true },
        take_profit: { price: String(price + 200), is_market: true },
      }),
    ]
    const read = (account: PaperAccount, minute: number): PaperReading => {
      const toMs = firstMs + minute * minuteMs
      const columns = minute === 0 ? nobody : partOf(walk, 0, minute)
      return readingAt(Math.max(toMs, account.cursor.atMs), { minutes: { BTC: { columns, toMs } } })
    }
    const start = openAt(firstMs, [], resting)
    const whole = advancePaper(start, read(start, walk.startMs.length), marketOf(undefined))
    assert.ok(whole.fills.length > 0)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 240 }), { maxLength: 12 }), (stops) => {
        let account = start
        const fills = []
        for (const minute of [...stops.toSorted((a, b) => a - b), 240]) {
          const reading = read(account, minute)
          const advanced = advancePaper(account, reading, marketOf(undefined))
          fills.push(...advanced.fills)
          account = afterRestart(advanced)
          const repeated = advancePaper(account, reading, marketOf(undefined))
          assert.deepEqual([repeated.fills, repeated.run.account], [[], account.run.account])
        }
        assert.deepEqual(fills, whole.fills)
        assert.deepEqual(account.run.account, whole.run.account)
      }),
      { numRuns: 50 },
    )
  })

  test('is left as it is by a reading that another one has overtaken', () => {
    const entered = enter()
    const late = advancePaper(accountOf(entered), marked(enteredMs - 1, 90_000), bookMarket(90_000))
    assert.deepEqual([late.run, late.cursor, late.fills], [entered.run, entered.cursor, []])
  })
})
