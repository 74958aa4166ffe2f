import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import ccxt from 'ccxt'
import { ccxtClientAt, exchangeV3Options } from './prediction/ccxt-client.ts'
import {
  marketBySlug,
  openWitness,
  type PredictionUrls,
  urlsAt,
  type Witness,
} from './prediction/prediction.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

/**
 * ccxt's own code for this venue, unmodified, on a venue without a chain. Its limits: `fetchPositions` reads an envelope
 * that the first Data API does not have, and so lists nothing; it knows four tick sizes, and takes tokens from
 * `clobTokenIds` alone; a canceled order keeps the venue's word `canceled`, which it does not map.
 */

let venue: RunningVenue
let urls: PredictionUrls
let witness: Witness

before(async () => {
  venue = await startVenue([], 7, 'polymarket')
  urls = urlsAt(venue.url)
  witness = await openWitness(urls)
  for (const [market, price] of [
    ['fed-cuts-rates-in-december', 0.62],
    ['new-phone-before-march', 0.73],
    ['ben-summer-wins-the-mayoral-race', 0.35],
  ] as const)
    await venue.control('POST', '/price', { market, price })
})
after(() => venue?.close())

const clientAt = async (number: number, options: Record<string, unknown> = {}) => {
  const wallet = accountOf(number).address
  await venue.control('POST', '/credit', { wallet, amount: '10000' })
  await witness.follow(number)
  return ccxtClientAt(urls, number, options)
}

const settled = (id: string | undefined) =>
  eventually('the settlement', async () => {
    const { trades } = await venue.control<{ trades: { status: string; legs: { orderId: string }[] }[] }>(
      'GET',
      '/effects',
    )
    const own = trades.filter(({ legs }) => legs.some(({ orderId }) => orderId === id))
    return own.length > 0 && own.every(({ status }) => status === 'CONFIRMED') ? own : undefined
  })

test('events are found by search and by list, with their outcomes', async () => {
  const client = await clientAt(401)
  const found = await client.fetchEvents({ query: 'mayoral race' })
  assert.equal(found.length, 1)
  assert.equal(found[0]?.markets?.length, 3)
  const markets = await client.fetchMarkets()
  assert.equal(markets.length, 12)
  const slugs = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page = await client.gammaPublicGetMarketsKeyset({
      limit: 5,
      ...(cursor && { after_cursor: cursor }),
    })
    slugs.push(...page.markets.map(({ slug }: { slug: string }) => slug))
    cursor = page.next_cursor
  }
  assert.deepEqual([slugs.length, new Set(slugs).size], [12, 12])
  assert.equal((await client.fetchStatus())?.status, 'ok')
  assert.ok(Math.abs(Number(await client.fetchTime()) - Date.now()) < 5_000)
  const event = await client.fetchEvent('who-wins-the-mayoral-race')
  assert.equal(event.title, 'Who wins the mayoral race?')
})

test('prices, book, candles, fees and interest of an outcome', async () => {
  const client = await clientAt(402)
  const { yes } = await marketBySlug(urls, 'fed-cuts-rates-in-december')
  const ticker = await client.fetchTicker(yes)
  assert.deepEqual([ticker.bid, ticker.ask], [0.61, 0.63])
  const tickers = await client.fetchTickers([yes])
  assert.equal(Object.values(tickers)[0]?.bid, 0.61)
  const book = await client.fetchOrderBook(yes)
  assert.equal(book.bids[0]?.[0], 0.61)
  const candles = await client.fetchOHLCV(yes, '1h', undefined, 24)
  assert.ok(candles.length >= 20)
  assert.equal((await client.fetchTradingFee(yes)).taker, 0)
})

test('orders of every kind, on both kinds of risk, and their ends', async () => {
  const client = await clientAt(403)
  const { yes } = await marketBySlug(urls, 'fed-cuts-rates-in-december')
  const group = await marketBySlug(urls, 'ben-summer-wins-the-mayoral-race')
  const resting = await client.createOrder(yes, 'limit', 'buy', 10, 0.4)
  assert.equal(resting.status, 'open')
  const [open] = await client.fetchOpenOrders(yes)
  assert.equal(open?.id, resting.id)
  assert.equal((await client.fetchOrder(String(resting.id))).price, 0.4)
  assert.equal((await client.cancelOrder(String(resting.id))).status, 'canceled')
  const inGroup = await client.createOrder(group.yes, 'limit', 'buy', 10, 0.2)
  assert.equal(inGroup.status, 'open')
  const pair = await client.createOrders([
    { outcome: yes, type: 'limit', side: 'buy', amount: 10, price: 0.41 },
    { outcome: yes, type: 'limit', side: 'buy', amount: 10, price: 0.42, params: { postOnly: true } },
  ])
  assert.equal(pair.length, 2)
  const [first] = pair
  assert.equal((await client.cancelOrders([String(first?.id)])).length, 1)
  assert.equal((await client.cancelAllOrders(yes)).length, 1)
  assert.equal((await client.cancelAllOrders()).length, 1)
  const bought = await client.createOrder(yes, 'limit', 'buy', 100, 0.63, { timeInForce: 'FOK' })
  assert.equal(bought.status, 'closed')
  await settled(bought.id)
  const trades = await client.fetchMyTrades(yes)
  assert.equal(trades[0]?.takerOrMaker, 'taker')
  assert.equal(trades[0]?.amount, 100)
  assert.equal((await client.fetchOrderTrades(String(bought.id))).length, 1)
  assert.equal((await client.fetchOpenInterest(yes)).openInterestValue, 100)
  const spent = await client
    .createMarketBuyOrderWithCost(yes, 6.3, { tickSize: '0.01' })
    .catch((error) => error)
  // Without a price it takes the last price of the outcome, at which nothing is offered; it does not know the words.
  assert.match(String(spent), /FOK orders are fully filled or killed/)
  const sold = await client.createOrder(yes, 'limit', 'sell', 50, 0.61, { timeInForce: 'IOC' })
  await settled(sold.id)
  const balance = await client.fetchBalance({ signatureType: 0 })
  assert.ok(Number(balance.USDC?.total) < 10_000)
  assert.deepEqual(await client.fetchPositions(), [])
  assert.ok((await client.fetchTrades(yes)).length >= 2)
  await assert.rejects(client.createOrder(yes, 'limit', 'buy', 100_000, 0.3), ccxt.InsufficientFunds)
})

test('orders of the other protocol are signed for its domain, and fill', async () => {
  const client = await clientAt(404, exchangeV3Options)
  const { yes, version, positionIds } = await marketBySlug(urls, 'new-phone-before-march')
  assert.equal(version, 'v2')
  assert.equal(positionIds[0], yes)
  const bought = await client.createOrder(yes, 'limit', 'buy', 50, 0.74, { timeInForce: 'FOK' })
  assert.equal(bought.status, 'closed')
  await settled(bought.id)
  const wrong = await clientAt(405)
  await assert.rejects(wrong.createOrder(yes, 'limit', 'buy', 50, 0.74), /order_version_mismatch/)
})

test('sockets of both kinds', async () => {
  const client = await clientAt(406)
  const { yes } = await marketBySlug(urls, 'fed-cuts-rates-in-december')
  await client.fetchEvents({ query: 'fed' })
  await client.loadHttpProxyAgent()
  const book = await client.watchOrderBook(yes)
  assert.equal(book.bids[0]?.[0], 0.61)
  // Otherwise the subscription and the order would each create the same key.
  await client.fetchOpenOrders()
  const orders = client.watchOrders()
  // The subscription is sent when the socket is open; the order may come only afterwards.
  await eventually('an order on the socket', async () => {
    await client.createOrder(yes, 'limit', 'buy', 10, 0.3)
    const seen = await Promise.race([orders, setTimeout(300)])
    return seen?.length ? seen : undefined
  })
  await client.cancelAllOrders()
  await client.close()
})

test('not one frame of these runs would be dropped by the official client, and none lacks a published key', () => {
  const { order = 0, trade = 0, price_change: changes = 0 } = witness.end()
  assert.ok(order > 10 && trade > 5 && changes > 5, JSON.stringify({ order, trade, changes }))
})
