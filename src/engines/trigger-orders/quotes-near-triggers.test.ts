import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNearQuotes } from './quotes-near-triggers.ts'
import type { Band } from './store.ts'

const ordersMax = 10
const none: ReadonlySet<string> = new Set()
const bandsOf = (names: string): Band[] => [...names].map((market) => ({ market, low: '9', high: '11' }))

/** Markets with so many orders each, and the markets that each read found. */
function fixture(orders: Record<string, number>) {
  const reads: string[] = []
  const nearQuotes = createNearQuotes({
    ordersMax,
    async read(bands) {
      let left = ordersMax
      const near = bands.flatMap(({ market }) => {
        const taken = Math.min(orders[market] ?? 0, left)
        left -= taken
        const quote = { market, quote_key: market, lte: '10', gte: null, owners: [market], orders: taken }
        return taken > 0 ? [quote] : []
      })
      reads.push(near.map(({ market }) => market).join(''))
      return near
    },
  })
  const marketsOf = async (names: string, awaited = none) =>
    (await nearQuotes(bandsOf(names), { except: [], awaited }))
      .map(({ market, orders: taken }) => `${market}${taken}`)
      .join(' ')
  return { reads, marketsOf }
}

test('all markets are read at once where their orders are few', async () => {
  const { reads, marketsOf } = fixture({ a: 3, b: 0, c: 6 })
  assert.equal(await marketsOf('cab'), 'a3 c6')
  assert.equal(await marketsOf('cab'), 'a3 c6')
  assert.equal(reads.length, 2)
})

test('markets with many orders take turns, and none of them is left out', async () => {
  const { marketsOf } = fixture({ a: 4, b: 4, c: 4, d: 0, e: 4 })
  const rounds: string[] = []
  for (let round = 0; round < 4; round += 1) rounds.push(await marketsOf('abcde'))
  assert.deepEqual(rounds, ['a4 b4 c2', 'c4 e4 a2', 'a4 b4 c2', 'c4 e4 a2'])
})

test('a market that takes up a whole read does not keep the next one out', async () => {
  const { marketsOf } = fixture({ a: 50, b: 50 })
  const rounds: string[] = []
  for (let round = 0; round < 3; round += 1) rounds.push(await marketsOf('ab'))
  assert.deepEqual(rounds, ['a10', 'b10', 'a10'])
})

test('a market that went is no end of the turns', async () => {
  const { marketsOf } = fixture({ a: 6, b: 6, c: 6 })
  assert.equal(await marketsOf('abc'), 'a6 b4')
  assert.equal(await marketsOf('ac'), 'c6 a4')
})

test('markets whose second quote is awaited are read whole in each round, once', async () => {
  const { reads, marketsOf } = fixture({ a: 6, b: 6, c: 6, d: 3 })
  assert.equal(await marketsOf('abcd', new Set(['d', 'b'])), 'a6 b6 d3')
  assert.equal(await marketsOf('abcd', new Set(['b'])), 'b6 c4')
  assert.equal(await marketsOf('abcd', new Set(['b'])), 'c6 d3 a1 b6')
  assert.deepEqual(reads, ['ab', 'bd', 'bc', 'cda', 'b'])
})
