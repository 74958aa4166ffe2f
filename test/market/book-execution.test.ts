import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openAccount, priceUnitsOf } from '#market/strategies/account.ts'
import { executeInBook, nothingTaken, type ShownBook, takenOf } from '#market/strategies/book-execution.ts'
import { movePrice } from '#market/strategies/matching.ts'
import { bitcoin } from './strategy-walk.ts'

const level = fc.record({ step: fc.integer({ min: 1, max: 50 }), sizeUnits: fc.bigInt(1n, 5_000n) })
const book: fc.Arbitrary<ShownBook> = fc
  .tuple(fc.array(level, { maxLength: 20 }), fc.array(level, { maxLength: 20 }))
  .map(([asks, bids]) => {
    let [ask, bid] = [100_000, 100_000]
    return {
      timeMs: 1,
      asks: asks.map(({ step, sizeUnits }) => {
        ask += step
        return { priceUnits: priceUnitsOf(ask), sizeUnits }
      }),
      bids: bids.map(({ step, sizeUnits }) => {
        bid -= step
        return { priceUnits: priceUnitsOf(bid), sizeUnits }
      }),
    }
  })
const order = fc.record({ isBuy: fc.boolean(), sizeUnits: fc.bigInt(1n, 20_000n) })

test('freqtrade #6963, nautilus #2564: orders together take no more than the book shows, and no level twice', () => {
  fc.assert(
    fc.property(book, fc.array(order, { maxLength: 12 }), (shown, orders) => {
      const taken = nothingTaken(shown.timeMs)
      const execute = executeInBook(shown, taken, { slippageBps: 10_000n })
      const got = { bids: 0n, asks: 0n }
      for (const { isBuy, sizeUnits } of orders) {
        const filled = execute({ isBuy, sizeUnits, priceUnits: 0n, isTaker: true }, bitcoin)
        got[isBuy ? 'asks' : 'bids'] += filled?.sizeUnits ?? 0n
        assert.ok((filled?.sizeUnits ?? 0n) <= sizeUnits)
      }
      for (const side of ['asks', 'bids'] as const) {
        const there = shown[side].reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)
        const wanted = orders
          .filter(({ isBuy }) => isBuy === (side === 'asks'))
          .reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)
        assert.equal(got[side], wanted < there ? wanted : there)
        for (const { priceUnits, sizeUnits } of shown[side])
          assert.ok((taken[side].get(priceUnits) ?? 0n) <= sizeUnits)
      }
    }),
  )
})

test('an order beyond its slippage is filled in part, and the next block has new levels', () => {
  const shown: ShownBook = {
    timeMs: 1,
    asks: [
      { priceUnits: priceUnitsOf(100_000), sizeUnits: 1_000n },
      { priceUnits: priceUnitsOf(101_000), sizeUnits: 1_000n },
    ],
    bids: [],
  }
  const taken = nothingTaken(1)
  const execute = executeInBook(shown, taken, { slippageBps: 50n })
  const entry = {
    asset: 'BTC',
    side: 'buy' as const,
    order_type: 'market' as const,
    size: '0.015',
    reduce_only: false,
  }
  const move = { asset: 'BTC', atMs: 5, path: [priceUnitsOf(100_000)], isExact: true, execute }
  const orders = { account: openAccount(10_000_000_000n), pending: [entry], resting: [] }
  const { account, pending } = movePrice(orders, move, { BTC: bitcoin })
  const held = account.positions.get('BTC')!
  assert.deepEqual([held.sizeUnits, held.costMicros, pending], [1_000n, 1_000_000_000n, []])
  assert.equal(execute({ isBuy: true, sizeUnits: 1n, priceUnits: 0n, isTaker: true }, bitcoin), undefined)
  assert.equal(execute({ isBuy: false, sizeUnits: 1n, priceUnits: 0n, isTaker: true }, bitcoin), undefined)
  assert.equal(takenOf(shown, taken), taken)
  assert.equal(takenOf({ ...shown, timeMs: 2 }, taken).asks.size, 0)
})
