import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OrderBook, Side } from 'nodejs-order-book'
import { createBook } from '#world/venue-core/book.ts'
import { nextInteger, nextRandom } from '#world/venue-core/random.ts'

/** 60 % limit, 30 % cancel, 10 % market, on whole prices and sizes, the same flow through both books. */
const runFlow = (seed: number, count: number) => {
  const random = { at: seed }
  let trades = 0
  const book = createBook({ filled: () => (trades += 1) })
  const other = new OrderBook()
  const placed: number[] = []
  const live: number[] = []
  for (let id = 1; id <= count; id += 1) {
    const kind = nextRandom(random)
    const buy = nextRandom(random) < 0.5
    const side = buy ? Side.BUY : Side.SELL
    const size = 1 + nextInteger(random, 50)
    if (kind < 0.6) {
      const price = 970 + nextInteger(random, 60) + (buy ? -4 : 4)
      book.place({ id, owner: id, buy, price, size, timeInForce: 'gtc' })
      other.limit({ id: String(id), side, size, price })
      live.push(id)
      placed.push(id)
    } else if (kind < 0.9) {
      const [gone] = live.splice(nextInteger(random, Math.max(1, live.length)), 1)
      if (gone === undefined) continue
      assert.equal(book.cancel(gone) !== undefined, other.cancel(String(gone))?.order !== undefined)
    } else {
      const edge = buy ? Number.MAX_SAFE_INTEGER : 1
      book.place({ id, owner: id, buy, price: edge, size, timeInForce: 'ioc' })
      other.market({ side, size })
    }
  }
  return { book, other, placed, trades }
}

test('the same flow leaves both books with the same levels and every order with the same remainder', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const { book, other, placed, trades } = runFlow(seed, 20_000)
    assert.ok(trades > 2_000, `only ${trades} trades`)
    const [asks, bids] = other.depth()
    const levels = (buy: boolean) => book.depth({ buy }, 10_000).map(({ price, size }) => [price, size])
    assert.deepEqual(levels(true), bids)
    assert.deepEqual(levels(false), asks)
    // Equal remainders of equal orders: the first order was filled first.
    for (const id of placed) assert.equal(book.get(id)?.left, other.order(String(id))?.size, `order ${id}`)
  }
})
