import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Book, createBook, type Incoming } from './book.ts'

type Step = { kind: 'place'; order: Omit<Incoming, 'id'> } | { kind: 'cancel'; back: number }

const order = fc.record({
  owner: fc.integer({ min: 1, max: 4 }),
  buy: fc.boolean(),
  price: fc.integer({ min: 1, max: 12 }),
  size: fc.integer({ min: 1, max: 20 }),
  timeInForce: fc.constantFrom(
    'gtc' as const,
    'gtc' as const,
    'ioc' as const,
    'alo' as const,
    'fok' as const,
  ),
})

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: order.map((given): Step => ({ kind: 'place', order: given })) },
    { weight: 1, arbitrary: fc.nat({ max: 30 }).map((back): Step => ({ kind: 'cancel', back })) },
  ),
  { maxLength: 120 },
)

type Trade = { maker: number; taker: number; price: number; size: number }

/** The reference book: one list, searched from the start every time. */
const createPlainBook = () => {
  type Rest = { id: number; owner: number; buy: boolean; price: number; left: number }
  let resting: Rest[] = []
  const trades: Trade[] = []
  const removed: number[] = []
  const crosses = (order: Incoming, rest: Rest) =>
    rest.buy !== order.buy && (order.buy ? rest.price <= order.price : rest.price >= order.price)
  const better = (a: Rest, b: Rest) => (a.buy ? b.price - a.price : a.price - b.price) || a.id - b.id
  return {
    trades,
    removed,
    cancel: (id: number) => {
      resting = resting.filter((rest) => rest.id !== id)
    },
    place: (order: Incoming) => {
      const matchable = () => resting.filter((rest) => crosses(order, rest)).sort(better)
      if (order.timeInForce === 'alo' && matchable().length > 0) return
      const others = matchable().filter(({ owner }) => owner !== order.owner)
      if (order.timeInForce === 'fok' && others.reduce((sum, { left }) => sum + left, 0) < order.size) return
      let left = order.size
      while (left > 0) {
        const [best] = matchable()
        if (!best) break
        if (best.owner === order.owner) removed.push(best.id)
        else {
          const size = Math.min(left, best.left)
          trades.push({ maker: best.id, taker: order.id, price: best.price, size })
          best.left -= size
          left -= size
        }
        if (best.left === 0 || best.owner === order.owner) resting = resting.filter((rest) => rest !== best)
      }
      if (left > 0 && (order.timeInForce === 'gtc' || order.timeInForce === 'alo'))
        resting.push({ ...order, owner: Number(order.owner), left })
    },
    left: () => [...resting].sort((a, b) => a.id - b.id).map(({ id, left, price }) => [id, left, price]),
  }
}

const createRecordedBook = () => {
  const trades: Trade[] = []
  const removed: number[] = []
  let taker = 0
  const book = createBook({
    filled: (maker, price, size) => trades.push({ maker: maker.id, taker, price, size }),
    removed: (maker) => removed.push(maker.id),
  })
  const place: Book['place'] = (given) => {
    taker = given.id
    return book.place(given)
  }
  return { book: { ...book, place }, trades, removed }
}

const run = (list: readonly Step[], place: (order: Incoming) => void, cancel: (id: number) => void): void => {
  list.forEach((step, i) => {
    if (step.kind === 'place') place({ id: i + 1, ...step.order })
    else cancel(i - step.back)
  })
}

test('any flow of orders trades as in the reference book', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const { book, trades, removed } = createRecordedBook()
      const plain = createPlainBook()
      run(list, book.place, book.cancel)
      run(list, plain.place, plain.cancel)
      assert.deepEqual(trades, plain.trades)
      assert.deepEqual(removed, plain.removed)
      const left = book.orders().map(({ id, size, price }) => [id, size, price])
      assert.deepEqual(
        left.sort(([a], [b]) => Number(a) - Number(b)),
        plain.left(),
      )
    }),
    { numRuns: 400 },
  )
})

test('a book is never crossed and its levels add up', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const { book } = createRecordedBook()
      run(list, book.place, book.cancel)
      const bid = book.best({ buy: true })
      const ask = book.best({ buy: false })
      assert.ok(bid === undefined || ask === undefined || bid < ask)
      for (const buy of [true, false]) {
        const levels = book.depth({ buy }, 100)
        const prices = levels.map(({ price }) => price)
        assert.deepEqual(
          prices,
          [...prices].sort((a, b) => (buy ? b - a : a - b)),
        )
        for (const { price, size, count } of levels) {
          const orders = book.orders().filter((resting) => resting.buy === buy && resting.price === price)
          assert.equal(orders.length, count)
          assert.equal(
            orders.reduce((sum, resting) => sum + resting.size, 0),
            size,
          )
        }
      }
    }),
    { numRuns: 200 },
  )
})

test('a book restored from its orders behaves exactly as the original', () => {
  fc.assert(
    fc.property(steps, steps, (before, after) => {
      const one = createRecordedBook()
      run(before, one.book.place, one.book.cancel)
      const two = createRecordedBook()
      two.book.restore(one.book.orders())
      one.trades.length = 0
      one.removed.length = 0
      const later = (book: Book) =>
        run(
          after,
          (given) => book.place({ ...given, id: given.id + 1_000 }),
          (id) => book.cancel(id),
        )
      later(one.book)
      later(two.book)
      assert.deepEqual(two.trades, one.trades)
      assert.deepEqual(two.removed, one.removed)
      assert.deepEqual(two.book.orders(), one.book.orders())
    }),
    { numRuns: 200 },
  )
})

test('a listener that allows less cancels the resting order', () => {
  const removed: number[] = []
  const book = createBook({
    allow: (maker, size) => (maker.id === 1 ? 3 : size),
    removed: ({ id }) => removed.push(id),
  })
  book.place({ id: 1, owner: 'a', buy: false, price: 10, size: 8, timeInForce: 'gtc' })
  book.place({ id: 2, owner: 'b', buy: false, price: 11, size: 8, timeInForce: 'gtc' })
  assert.deepEqual(book.place({ id: 3, owner: 'c', buy: true, price: 11, size: 6, timeInForce: 'ioc' }), {
    filled: 6,
    rests: false,
    refused: null,
  })
  assert.deepEqual(removed, [1])
  assert.deepEqual(book.depth({ buy: false }, 5), [{ price: 11, size: 5, count: 1 }])
})

test('a rejected post-only or fill-or-kill order does not change the book', () => {
  const book = createBook()
  book.place({ id: 1, owner: 1, buy: false, price: 10, size: 5, timeInForce: 'gtc' })
  assert.equal(
    book.place({ id: 2, owner: 2, buy: true, price: 10, size: 1, timeInForce: 'alo' }).refused,
    'crosses',
  )
  assert.equal(
    book.place({ id: 3, owner: 2, buy: true, price: 10, size: 6, timeInForce: 'fok' }).refused,
    'unfillable',
  )
  assert.deepEqual(book.depth({ buy: false }, 1), [{ price: 10, size: 5, count: 1 }])
  assert.equal(book.place({ id: 4, owner: 2, buy: true, price: 10, size: 5, timeInForce: 'fok' }).filled, 5)
})
