import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  AssetType,
  Chain,
  ClobClient,
  OrderType,
  PriceHistoryInterval,
  Side,
} from '@polymarket/clob-client-v2'
import * as keySets from './prediction/key-sets.ts'
import {
  assertKeys,
  type Frames,
  marketBySlug,
  openFrames,
  openWitness,
  type PredictionUrls,
  readJson,
  urlsAt,
  type Witness,
  walletOf,
} from './prediction/prediction.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

/** The official client of the order book, unmodified, as an ordinary account on a venue without a chain. */

let venue: RunningVenue
let urls: PredictionUrls
let witness: Witness

before(async () => {
  venue = await startVenue([], 7, 'polymarket')
  urls = urlsAt(venue.url)
  witness = await openWitness(urls)
})
after(() => venue?.close())

const clientAt = async (number: number, usd = '10000') => {
  const signer = walletOf(number)
  const options = { host: urls.clob, chain: Chain.POLYGON, signer, throwOnError: true }
  const creds = await new ClobClient(options).createOrDeriveApiKey()
  await witness.follow(number)
  await venue.control('POST', '/credit', { wallet: accountOf(number).address, amount: usd })
  return { client: new ClobClient({ ...options, creds }), creds, wallet: accountOf(number).address }
}

type Row = Record<string, unknown> & { id: string; status: string }
const rejects = (run: Promise<unknown>, text: RegExp) =>
  assert.rejects(run, (error: Error) => text.test(error.message))

const pinned = async (slug: string, price: number) => {
  await venue.control('POST', '/price', { market: slug, price })
  return marketBySlug(urls, slug)
}

test('keys are created once, derived again, listed and deleted', async () => {
  const signer = walletOf(301)
  const options = { host: urls.clob, chain: Chain.POLYGON, signer, throwOnError: true }
  const client = new ClobClient(options)
  await rejects(client.deriveApiKey(), /Could not derive/)
  const created = await client.createApiKey()
  await rejects(client.createApiKey(), /Could not create api key/)
  assert.deepEqual(await client.deriveApiKey(), created)
  const second = await client.createApiKey(1)
  assert.notEqual(second.key, created.key)
  const authorised = new ClobClient({ ...options, creds: created })
  const { apiKeys } = await authorised.getApiKeys()
  assert.deepEqual([...(apiKeys as unknown as string[])].sort(), [created.key, second.key].sort())
  assert.deepEqual(await authorised.getClosedOnlyMode(), { closed_only: false })
  await authorised.deleteApiKey()
  await rejects(authorised.getApiKeys(), /Unauthorized\/Invalid api key/)
  const wrong = new ClobClient({ ...options, creds: { ...second, secret: created.secret } })
  await rejects(wrong.getOpenOrders(), /Unauthorized\/Invalid api key/)
})

test('book, prices, history and facts of a market agree', async () => {
  const { client } = await clientAt(302)
  const { yes, no, conditionId } = await pinned('fed-cuts-rates-in-december', 0.62)
  const bookOfYes = await client.getOrderBook(yes)
  assertKeys(bookOfYes, keySets.book, 'book')
  assert.match(bookOfYes.hash, /^[a-f0-9]{40}$/)
  // The best come last on both sides.
  assert.equal(bookOfYes.bids.at(-1)?.price, '0.61')
  assert.equal(bookOfYes.asks.at(-1)?.price, '0.63')
  const bookOfNo = await client.getOrderBook(no)
  assert.equal(bookOfNo.bids.at(-1)?.price, '0.37')
  assert.equal(bookOfNo.asks.at(-1)?.price, '0.39')
  assert.deepEqual(await client.getMidpoint(yes), { mid: '0.62' })
  assert.deepEqual(await client.getPrice(yes, Side.BUY), { price: '0.61' })
  assert.deepEqual(await client.getSpread(yes), { spread: '0.02' })
  assert.equal(await client.getTickSize(yes), '0.01')
  assert.equal(await client.getNegRisk(yes), false)
  assert.equal(await client.getFeeRateBps(yes), 0)
  assert.equal(await client.getVersion(), 2)
  assert.ok(Math.abs((await client.getServerTime()) - Date.now() / 1000) < 5)
  const [first] = await client.getOrderBooks([{ token_id: yes, side: Side.BUY }])
  assert.equal(first?.asset_id, yes)
  const byToken = await readJson<object>(`${urls.clob}/markets-by-token/${no}`)
  assertKeys(byToken, keySets.marketByToken, 'market by token')
  const info = await client.getClobMarketInfo(conditionId)
  assert.equal(info.mts, 0.01)
  const { history } = (await client.getPricesHistory({
    market: yes,
    interval: PriceHistoryInterval.ONE_WEEK,
    fidelity: 60,
  })) as unknown as { history: { t: number; p: number }[] }
  assert.ok(history.length >= 160)
  assert.ok(history.every(({ p }) => p > 0 && p < 1))
  const now = Math.floor(Date.now() / 1000)
  await rejects(client.getPricesHistory({ market: yes, startTs: now - 16 * 86_400, endTs: now }), /too long/)
  await rejects(client.getOrderBook('12345'), /No orderbook exists for the requested token id/)
  const page = await client.getSimplifiedMarkets()
  assert.equal(page.count, 12)
  assert.equal(page.next_cursor, 'LTE=')
})

test('a limit order rests, is listed, and is cancelled one by one, by list, by market and all', async () => {
  const { client } = await clientAt(303)
  const { yes, conditionId } = await pinned('fed-cuts-rates-in-december', 0.62)
  const other = await pinned('bitcoin-reaches-250k-this-year', 0.045)
  const place = async (price: number, token = yes) => {
    const order = await client.createOrder({ tokenID: token, price, size: 10, side: Side.BUY })
    return client.postOrder(order)
  }
  const sent = await place(0.4)
  assertKeys(sent, keySets.sentOrder, 'sent order')
  assert.equal(sent.status, 'live')
  const [row] = (await client.getOpenOrders()) as unknown as Row[]
  assertKeys(row ?? {}, keySets.openOrder, 'open order')
  assert.equal(row?.id, sent.orderID)
  assert.equal(row?.status, 'LIVE')
  assert.equal(row?.price, '0.4')
  assert.equal((await client.getOrder(sent.orderID)).original_size, '10')
  assert.deepEqual(await client.cancelOrder({ orderID: sent.orderID }), {
    canceled: [sent.orderID],
    not_canceled: {},
  })
  const again = await client.cancelOrder({ orderID: sent.orderID })
  assert.deepEqual(again.canceled, [])
  assert.match(again.not_canceled[sent.orderID], /already canceled or matched/)
  const ids = [await place(0.41), await place(0.42), await place(0.43)].map(({ orderID }) => orderID)
  assert.deepEqual((await client.cancelOrders(ids.slice(0, 2))).canceled, ids.slice(0, 2))
  await place(0.02, other.yes)
  assert.deepEqual((await client.cancelMarketOrders({ market: conditionId })).canceled, [ids[2]])
  assert.equal((await client.cancelAll()).canceled.length, 1)
  assert.deepEqual(await client.getOpenOrders(), [])
})

test('immediate orders fill, kill, or fill in part; shares arrive and are sold', async () => {
  const { client } = await clientAt(304)
  const { yes, no: noOfV2 } = await pinned('recession-declared-next-year', 0.125)
  assert.equal(await client.getTickSize(yes), '0.001')
  const v1 = await pinned('fed-cuts-rates-in-december', 0.62)
  const bought = await client.createAndPostMarketOrder(
    { tokenID: v1.yes, amount: 63, side: Side.BUY, price: 0.63 },
    undefined,
    OrderType.FOK,
  )
  assert.equal(bought.status, 'matched')
  assert.equal(bought.makingAmount, '63')
  assert.equal(bought.takingAmount, '100')
  assert.equal(bought.tradeIDs?.length, 1)
  await eventually('the trade', async () => {
    const [trade] = (await client.getTrades({ id: bought.tradeIDs?.[0] ?? '' })) as unknown as Row[]
    return trade?.status === 'TRADE_STATUS_CONFIRMED' ? trade : undefined
  })
  const [trade] = (await client.getTrades()) as unknown as (Row & { maker_orders: object[] })[]
  assertKeys(trade ?? {}, keySets.trade, 'trade')
  assertKeys(trade?.maker_orders[0] ?? {}, keySets.makerOrder, 'maker order')
  const held = await client.getBalanceAllowance({ asset_type: AssetType.CONDITIONAL, token_id: v1.yes })
  assertKeys(held, keySets.balance, 'balance')
  assert.equal(held.balance, '100000000')
  const cash = await client.getBalanceAllowance({ asset_type: AssetType.COLLATERAL })
  assert.equal(cash.balance, String((10_000 - 63) * 1_000_000))
  const sold = await client.createAndPostMarketOrder(
    { tokenID: v1.yes, amount: 40, side: Side.SELL, price: 0.61 },
    undefined,
    OrderType.FAK,
  )
  assert.equal(sold.makingAmount, '40')
  assert.equal(sold.takingAmount, '24.4')
  const fok = client.createAndPostMarketOrder(
    { tokenID: v1.yes, amount: 9_000, side: Side.BUY, price: 0.63 },
    undefined,
    OrderType.FOK,
  )
  await rejects(fok, /couldn't be fully filled/)
  const fak = await client.createAndPostMarketOrder(
    { tokenID: v1.yes, amount: 1_000, side: Side.BUY, price: 0.63 },
    undefined,
    OrderType.FAK,
  )
  assert.equal(fak.status, 'matched')
  assert.ok(Number(fak.makingAmount) < 1_000)
  const none = client.createAndPostMarketOrder(
    { tokenID: v1.yes, amount: 10, side: Side.BUY, price: 0.3 },
    undefined,
    OrderType.FAK,
  )
  await rejects(none, /no orders found to match with FAK order/)
  const signedForV1 = await client.createOrder({ tokenID: noOfV2, price: 0.9, size: 10, side: Side.SELL })
  await rejects(client.postOrder(signedForV1), /^order_version_mismatch$/)
})

test('shares are sold by who owns them, and not before their purchase has settled', async () => {
  const { client } = await clientAt(311)
  const { no } = await pinned('fed-cuts-rates-in-december', 0.62)
  const order = (side: Side, price: number) => client.createOrder({ tokenID: no, price, size: 10, side })
  // Otherwise the client waits half a minute for the hash of a transaction.
  const send = async (side: Side, price: number) =>
    client.postOrder(await order(side, price), OrderType.GTC, false, true)
  const unowned =
    /^not enough balance \/ allowance: the balance is not enough -> balance: 0, order amount: 10000000$/
  await rejects(send(Side.SELL, 0.37), unowned)
  await venue.control('POST', '/realism', { settleDelay: { rate: 1, minMs: 60_000, maxMs: 60_000 } })
  assert.equal((await send(Side.BUY, 0.39)).status, 'matched')
  await venue.control('POST', '/realism', { preset: 'quiet' })
  await rejects(send(Side.SELL, 0.37), unowned)
  await venue.control('POST', '/advance', { ms: 60_000 })
  await eventually('the shares', async () => {
    const { balance } = await client.getBalanceAllowance({ asset_type: AssetType.CONDITIONAL, token_id: no })
    return balance === '10000000' ? true : undefined
  })
  assert.equal((await send(Side.SELL, 0.37)).status, 'matched')
})

test('post-only, good-til-date and batches follow their rules', async () => {
  const { client } = await clientAt(305)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  const crossing = await client.createOrder({ tokenID: yes, price: 0.7, size: 10, side: Side.BUY })
  await rejects(
    client.postOrder(crossing, OrderType.GTC, true),
    /invalid post-only order: order crosses book/,
  )
  const expiration = (await client.getServerTime()) + 200
  const dated = await client.createOrder({ tokenID: yes, price: 0.5, size: 10, side: Side.BUY, expiration })
  const { orderID } = await client.postOrder(dated, OrderType.GTD)
  assert.equal((await client.getOrder(orderID)).expiration, String(expiration))
  // It ends a minute before its time.
  await venue.control('POST', '/advance', { ms: 141_000 })
  assert.equal((await client.getOrder(orderID)).status, 'CANCELED')
  const past = await client.createOrder({
    tokenID: yes,
    price: 0.5,
    size: 10,
    side: Side.BUY,
    expiration: Math.floor(Date.now() / 1000) + 170,
  })
  await rejects(client.postOrder(past, OrderType.GTD), /invalid expiration/)
  const small = await client.createOrder({ tokenID: yes, price: 0.5, size: 4, side: Side.BUY })
  await rejects(client.postOrder(small), /Size \(4\) lower than the minimum: 5/)
  const orders = await Promise.all(
    [0.5, 0.51, 0.99].map((price) => client.createOrder({ tokenID: yes, price, size: 10, side: Side.BUY })),
  )
  const replies = await client.postOrders(orders.map((order) => ({ order, orderType: OrderType.GTC })))
  assert.deepEqual(
    (replies as { status: string }[]).map(({ status }) => status),
    ['live', 'live', 'matched'],
  )
  const { id } = (await client.getOpenOrders())[0] ?? { id: '' }
  assert.ok(id)
  const [again] = (await client.postOrders([
    { order: orders[0] as (typeof orders)[number], orderType: OrderType.GTC },
  ])) as { success: boolean; errorMsg: string }[]
  assert.equal(again?.success, false)
  assert.match(again?.errorMsg ?? '', /Duplicated/)
  await client.cancelAll()
})

test('an order beyond the balance is refused with the sums', async () => {
  const { client } = await clientAt(306, '100')
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  await client.createAndPostOrder({ tokenID: yes, price: 0.5, size: 100, side: Side.BUY })
  const second = client.createAndPostOrder({ tokenID: yes, price: 0.51, size: 100, side: Side.BUY })
  await rejects(
    second,
    /not enough balance \/ allowance: the balance is not enough -> balance: 100000000, sum of active orders: 50000000, order amount: 51000000/,
  )
  await client.cancelAll()
})

test('two accounts mint, trade and merge over one book', async () => {
  const [maker, taker] = [await clientAt(307), await clientAt(308)]
  const { yes, no } = await pinned('ada-winter-wins-the-mayoral-race', 0.46)
  await maker.client.createAndPostOrder({ tokenID: no, price: 0.54, size: 20, side: Side.BUY })
  const bid = await taker.client.createAndPostOrder({ tokenID: yes, price: 0.46, size: 20, side: Side.BUY })
  assert.equal(bid.status, 'matched')
  assert.equal(bid.makingAmount, '9.2')
  const [trade] = (await maker.client.getTrades()) as unknown as (Row & {
    maker_orders: { owner: string; outcome: string; price: string; side: string; matched_amount: string }[]
  })[]
  assert.equal(trade?.trader_side, 'MAKER')
  assert.equal(trade?.price, '0.46')
  const own = trade?.maker_orders.find(({ owner }) => owner === maker.creds.key)
  assert.deepEqual([own?.outcome, own?.price, own?.side, own?.matched_amount], ['No', '0.54', 'BUY', '20'])
  // Both sell what they got: a pair is merged.
  await maker.client.createAndPostOrder({ tokenID: no, price: 0.54, size: 20, side: Side.SELL })
  const ask = await taker.client.createAndPostOrder({ tokenID: yes, price: 0.46, size: 20, side: Side.SELL })
  assert.equal(ask.status, 'matched')
})

test('both sockets send what the official schemas accept, with every published key', async () => {
  const { client, creds } = await clientAt(309)
  const market = await pinned('fed-cuts-rates-in-december', 0.62)
  const opened: Frames[] = []
  const feed = await openFrames(urls.socket, 'market', {
    type: 'market',
    assets_ids: [market.yes, market.no],
    custom_feature_enabled: true,
  })
  const auth = { apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }
  const own = await openFrames(urls.socket, 'user', { type: 'user', auth })
  opened.push(feed, own)
  await feed.next('the book', ({ event_type }) => event_type === 'book')
  const { orderID } = await client.createAndPostOrder({
    tokenID: market.yes,
    price: 0.55,
    size: 10,
    side: Side.BUY,
  })
  const placed = await own.next('the order', ({ id, type }) => id === orderID && type === 'PLACEMENT')
  assertKeys(placed, keySets.orderFrame, 'order frame')
  await feed.next('the change', ({ event_type }) => event_type === 'price_change')
  await feed.next('the best prices', ({ event_type }) => event_type === 'best_bid_ask')
  const bought = await client.createAndPostMarketOrder(
    { tokenID: market.yes, amount: 6.3, side: Side.BUY, price: 0.63 },
    undefined,
    OrderType.FOK,
  )
  const id = bought.tradeIDs?.[0]
  const traded = await own.next('the trade', (frame) => frame.id === id && frame.status === 'CONFIRMED')
  assertKeys(traded, keySets.tradeFrame, 'trade frame')
  await feed.next('the last price', ({ event_type }) => event_type === 'last_trade_price')
  await client.cancelOrder({ orderID })
  await own.next('the end', (frame) => frame.id === orderID && frame.type === 'CANCELLATION')
  await venue.control('POST', '/tick-size', { market: market.slug, tick: 0.001 })
  await feed.next('the tick', ({ event_type }) => event_type === 'tick_size_change')
  await venue.control('POST', '/announce', { market: market.slug })
  await feed.next('the new market', ({ event_type }) => event_type === 'new_market')
  await venue.control('POST', '/tick-size', { market: market.slug, tick: 0.01 })
  for (const { dropped } of opened) assert.deepEqual(dropped, [])
  for (const { close } of opened) close()
})

test('not one frame of these runs would be dropped by the official client, and none lacks a published key', () => {
  const kinds = witness.end()
  const expected = ['best_bid_ask', 'book', 'last_trade_price', 'new_market', 'order', 'price_change']
  assert.deepEqual(Object.keys(kinds).sort(), [...expected, 'tick_size_change', 'trade'])
})

test('orders, keys and the book survive a killed process', async () => {
  const { client } = await clientAt(310)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  const { orderID } = await client.createAndPostOrder({ tokenID: yes, price: 0.33, size: 10, side: Side.BUY })
  const before = await client.getOrderBook(yes)
  await venue.restart()
  assert.equal((await client.getOrder(orderID)).status, 'LIVE')
  const restored = await client.getOrderBook(yes)
  assert.deepEqual(restored.bids, before.bids)
  assert.deepEqual(restored.asks, before.asks)
  await client.cancelAll()
})
