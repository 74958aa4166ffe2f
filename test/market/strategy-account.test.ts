import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  type Account,
  applyEntry,
  applyExit,
  applyFunding,
  type ClosedTrade,
  equityMicros,
  feeOf,
  liquidationPriceUnits,
  openAccount,
  priceUnitsOf,
  worthMicros,
} from '#market/strategies/account.ts'
import {
  countEntry,
  countTrade,
  entryGuard,
  type GuardConfig,
  mustFlatten,
  openGuards,
  readGuards,
} from '#market/strategies/guards.ts'
import { movePrice } from '#market/strategies/matching.ts'
import { executeWithSlippage } from '#market/strategies/simulation.ts'
import type { OrderIntent } from '#market/strategies/strategy.ts'
import { bitcoin, dayMs, walkStartMs } from './strategy-walk.ts'

const markets = { BTC: bitcoin }
const usd = (dollars: number) => BigInt(Math.round(dollars * 1e6))
const price = priceUnitsOf

const entry = (fields: Partial<OrderIntent> = {}): OrderIntent => ({
  asset: 'BTC',
  side: 'buy',
  order_type: 'market',
  size: '0.1',
  reduce_only: false,
  leverage: 10,
  is_cross: false,
  ...fields,
})
const moveTo = (...path: number[]) => ({
  asset: 'BTC',
  atMs: walkStartMs,
  path: path.map(price),
  isExact: true,
  execute: executeWithSlippage(0n),
})
const bracket = {
  stop_loss: { price: '99000', is_market: true },
  take_profit: { price: '102000', is_market: true },
}
const opened = (order: OrderIntent, dollars = 2_000, at = 100_000) =>
  movePrice({ account: openAccount(usd(dollars)), pending: [order], resting: [] }, moveTo(at), markets)

describe('the account of a simulation', () => {
  test('loses and gains to the unit what its trades say', () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('enter' as const),
        lots: fc.bigInt(1n, 1_000_000n),
        price: fc.integer({ min: 1_000, max: 200_000 }),
      }),
      fc.record({
        kind: fc.constant('exit' as const),
        lots: fc.bigInt(1n, 2_000_000n),
        price: fc.integer({ min: 1_000, max: 200_000 }),
      }),
      fc.record({
        kind: fc.constant('fund' as const),
        rate: fc.bigInt(-1_000_000n, 1_000_000n),
        price: fc.integer({ min: 1_000, max: 200_000 }),
      }),
    )
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 40 }), (isLong, steps) => {
        const start = usd(1_000_000)
        let account: Account = openAccount(start)
        const trades: ClosedTrade[] = []
        for (const each of steps) {
          const priceUnits = price(each.price)
          if (each.kind === 'fund') {
            account = applyFunding(account, { asset: 'BTC', rateUnits: each.rate, priceUnits }, markets)
            continue
          }
          const isEntry = each.kind === 'enter'
          const held = account.positions.get('BTC')?.sizeUnits ?? 0n
          const lots = isEntry || each.lots < held ? each.lots : held
          if (lots === 0n) continue
          const valueMicros = worthMicros(lots, priceUnits, bitcoin)
          const fill = {
            asset: 'BTC',
            isBuy: isEntry === isLong,
            sizeUnits: lots,
            valueMicros,
            feeMicros: feeOf(valueMicros, 450n),
            atMs: 0,
            reason: 'test',
          }
          if (isEntry) account = applyEntry(account, fill, { leverage: 1, isCross: true, targetFromMs: 0 })
          else {
            const exited = applyExit(account, fill)
            account = exited.account
            if (exited.trade) trades.push(exited.trade)
          }
        }
        const held = account.positions.get('BTC')
        const open = held ? held.feesMicros + held.fundingMicros : 0n
        const net = trades.reduce((sum, { netMicros }) => sum + netMicros, 0n)
        assert.equal(account.cashMicros, start + net - open)
        const fees = trades.reduce((sum, { feesMicros }) => sum + feesMicros, 0n)
        assert.equal(account.feesMicros, fees + (held?.feesMicros ?? 0n))
      }),
    )
  })

  test('pays the fee, the slippage and the funding of a position that is still open', () => {
    const slipped = movePrice(
      { account: openAccount(usd(2_000)), pending: [entry()], resting: [] },
      { ...moveTo(100_000), execute: executeWithSlippage(500n) },
      markets,
    )
    const marks = new Map([['BTC', price(100_000)]])
    assert.equal(
      equityMicros(slipped.account, marks, markets),
      usd(2_000) - usd(5) - feeOf(usd(10_005), 450n),
    )
    const funded = applyFunding(
      slipped.account,
      { asset: 'BTC', rateUnits: 100_000_000n, priceUnits: price(100_000) },
      markets,
    )
    assert.equal(slipped.account.cashMicros - funded.cashMicros, usd(100))
    const short = opened(entry({ side: 'sell' })).account
    const rate = { asset: 'BTC', rateUnits: 100_000_000n, priceUnits: price(100_000) }
    assert.equal(applyFunding(short, rate, markets).cashMicros - short.cashMicros, usd(100))
  })

  test('is liquidated where the venue would, and loses no more than the margin', () => {
    const { account } = opened(entry())
    // 0.1 at 100,000 with a margin of 1,000 and a maintenance of an eightieth.
    const expected = (10_000 - 1_000) / (0.1 * (1 - 1 / 80))
    const units = liquidationPriceUnits(account, 'BTC', bitcoin)!
    assert.ok(Math.abs(Number(units) / 1e8 - expected) < 0.01, `${units}`)
    const crashed = movePrice({ account, pending: [], resting: [] }, moveTo(100_000, 80_000), markets)
    assert.equal(crashed.trades[0]!.reason, 'liquidation')
    assert.equal(crashed.account.cashMicros, account.cashMicros - usd(1_000))
    const short = opened(entry({ side: 'sell' })).account
    const above = liquidationPriceUnits(short, 'BTC', bitcoin)!
    assert.ok(Math.abs(Number(above) / 1e8 - 11_000 / (0.1 * (1 + 1 / 80))) < 0.01)
    const cross = opened(entry({ is_cross: true })).account
    assert.ok(liquidationPriceUnits(cross, 'BTC', bitcoin)! < units)
  })

  test('fills the stop before the target where a path reaches both, and the jump beyond a stop at its worse price', () => {
    const { account } = opened(entry(bracket))
    const orders = { account, pending: [], resting: [] }
    const both = movePrice(orders, moveTo(100_000, 98_000, 103_000), markets)
    assert.deepEqual(
      both.trades.map(({ reason }) => reason),
      ['stop'],
    )
    assert.equal(both.account.cashMicros, usd(2_000) - usd(100) - usd(4.5) - feeOf(usd(9_900), 450n))
    const jump = movePrice(orders, moveTo(97_000), markets)
    assert.equal(jump.trades[0]!.netMicros, -usd(300) - usd(4.5) - feeOf(usd(9_700), 450n))
    const target = movePrice(orders, moveTo(100_000, 99_500, 103_000), markets)
    assert.deepEqual(
      target.trades.map(({ reason }) => reason),
      ['target'],
    )
  })

  test('fills a resting target only where the price passes it, and a resting entry at its own price', () => {
    const limit = { ...bracket, take_profit: { price: '102000', is_market: false } }
    const { account } = opened(entry(limit))
    const orders = { account, pending: [], resting: [] }
    assert.equal(movePrice(orders, moveTo(100_000, 102_000), markets).trades.length, 0)
    assert.equal(movePrice(orders, moveTo(100_000, 102_001), markets).trades.length, 1)
    const resting = [entry({ order_type: 'limit', price: '99500', ...bracket })]
    const waiting = { account: openAccount(usd(2_000)), pending: [], resting }
    assert.equal(movePrice(waiting, moveTo(100_000, 99_500), markets).entries, 0)
    const filled = movePrice(waiting, moveTo(100_000, 99_400), markets)
    assert.equal(filled.account.positions.get('BTC')!.costMicros, usd(9_950))
    const unclear = movePrice(
      waiting,
      { ...moveTo(100_000, 99_400, 103_000, 100_000), isExact: false },
      markets,
    )
    assert.equal(unclear.trades.length, 0, 'nobody knows whether the target came before the entry')
    const stopped = movePrice(waiting, { ...moveTo(100_000, 98_000, 103_000), isExact: false }, markets)
    assert.deepEqual(
      stopped.trades.map(({ reason }) => reason),
      ['stop'],
    )
  })

  test('never turns a position around', () => {
    const { account } = opened(entry())
    const sold = movePrice(
      { account, pending: [entry({ side: 'sell', size: '0.3', reduce_only: true })], resting: [] },
      moveTo(100_000),
      markets,
    )
    assert.equal(sold.account.positions.size, 0)
    const against = movePrice(
      { account, pending: [entry({ side: 'sell', size: '0.3' })], resting: [] },
      moveTo(100_000),
      markets,
    )
    assert.equal(against.account, account)
  })
})

describe('the guards of a strategy', () => {
  const config: GuardConfig = {
    max_loss_usd: '100',
    max_drawdown_bps: 1_500,
    daily_loss_usd: '50',
    max_trades_per_day: 3,
    max_consecutive_losses: 4,
    cooldown_seconds: 60,
    on_trip: 'flatten',
  }
  const dayEndsMs = walkStartMs + dayMs
  const start = openGuards(usd(1_000), dayEndsMs)
  const read = (dollars: number, state = start, atMs = walkStartMs, ends = dayEndsMs) =>
    readGuards(state, config, { atMs, equityMicros: usd(dollars), dayEndsMs: ends })

  test('trip at their figure, and not before', () => {
    assert.equal(read(950.01).trippedToday, null)
    assert.equal(read(950).trippedToday?.guard, 'daily_loss')
    assert.equal(read(900.01).tripped, null)
    assert.equal(read(900).tripped?.guard, 'max_loss')
    const peak = read(2_000)
    assert.equal(read(1_700.01, peak).tripped, null)
    assert.equal(read(1_700, peak).tripped?.guard, 'max_drawdown')
  })

  test('begin a new day with its worth then, and forget nothing that is for good', () => {
    const lost = read(940, countEntry(start, walkStartMs))
    const next = read(940, lost, dayEndsMs, dayEndsMs + dayMs)
    assert.deepEqual([next.trippedToday, next.dayStartMicros, next.entriesToday], [null, usd(940), 0])
    const gone = read(890)
    assert.equal(read(1_500, gone, dayEndsMs, dayEndsMs + dayMs).tripped?.guard, 'max_loss')
    assert.ok(mustFlatten(gone, config) && !mustFlatten(gone, { ...config, on_trip: 'stop_entries' }))
  })

  test('allow an entry only within the cooldown, the trades of the day and the losses in a row', () => {
    const atMs = walkStartMs
    const guard = (state = start, openPositions = 0, at = atMs) =>
      entryGuard(state, config, { atMs: at, openPositions })
    assert.equal(guard(), null)
    const entered = countEntry(start, atMs)
    assert.equal(guard(entered, 0, atMs + 59_999), 'cooldown')
    assert.equal(guard(entered, 0, atMs + 60_000), null)
    const three = countEntry(countEntry(entered, atMs), atMs)
    assert.equal(guard(three, 0, atMs + dayMs / 2), 'max_trades_per_day')
    const lost = [1, 2, 3, 4].reduce((state) => countTrade(state, -1n), start)
    assert.equal(read(1_000, lost).tripped?.guard, 'max_consecutive_losses')
    assert.equal(read(1_000, countTrade(lost, 1n)).tripped, null)
    assert.equal(
      entryGuard(start, { ...config, max_open_positions: 1 }, { atMs, openPositions: 1 }),
      'max_open_positions',
    )
  })
})
