import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AssetType } from '@polymarket/bindings/clob'
import {
  createSecureClient,
  OrderSide,
  OrderType,
  PriceHistoryInterval,
  type SecureClient,
} from '@polymarket/client'
import { fetchBalanceAllowance } from '@polymarket/client/actions'
import * as keySets from './prediction/key-sets.ts'
import { depositClient as depositClientOf, environmentOf, signerAt } from './prediction/official-client.ts'
import {
  assertKeys,
  marketBySlug,
  openFrames,
  openWitness,
  readJson,
  type Witness,
} from './prediction/prediction.ts'
import { type PredictionWorld, startPredictionWorld } from './prediction/prediction-world.ts'
import { eventually } from './venue/venue.ts'

/** The official client, unmodified, on the venue with its chain: deposit wallets, approvals, settlement, redemption. */

let market: PredictionWorld
let witness: Witness

before(async () => {
  market = await startPredictionWorld()
  witness = await openWitness(market.world.urls.polymarket)
})
after(() => market?.stop())

const depositClient = async (number: number) => {
  await witness.follow(number)
  return depositClientOf(market, number)
}

const codeAt = async (address: string): Promise<string> => {
  const { result } = await readJson<{ result: string }>(market.world.urls.evm['137'], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [address, 'latest'] }),
  })
  return result
}

const pinned = async (slug: string, price: number) => {
  await market.control('POST', '/price', { market: slug, price })
  return marketBySlug(market.world.urls.polymarket, slug)
}

const filled = async (client: SecureClient, order: Awaited<ReturnType<SecureClient['placeMarketOrder']>>) => {
  assert.ok(order.ok, JSON.stringify(order))
  const hashes = await client.waitForOrderFillSettlement(order)
  assert.ok(hashes.length > 0)
}

test('a client without a wallet gets a deposit wallet with code and approvals', async () => {
  const client = await depositClient(501)
  assert.notEqual(await codeAt(client.account.wallet), '0x')
  assert.equal((await market.balances(client.account.wallet)).pusd, '1000')
  const backing = await market.control<{ isWhole: boolean }>('GET', '/backing')
  assert.equal(backing.isWhole, true)
})

test('markets are found by search and by keyset, with book and history', async () => {
  const client = await depositClient(502)
  const found = await client.search({ q: 'mayoral' }).firstPage()
  assert.equal(found.items.events?.[0]?.markets.length, 3)
  const page = await client.listMarkets({ pageSize: 5 }).firstPage()
  assert.equal(page.items.length, 5)
  assert.ok(page.nextCursor)
  const all: unknown[] = []
  for await (const { items } of client.listMarkets({ pageSize: 5 })) all.push(...items)
  assert.equal(all.length, 12)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  const book = await client.fetchOrderBook({ tokenId: yes })
  assert.equal(book.asks.at(-1)?.price, '0.63')
  assert.equal(await client.fetchMidpoint({ tokenId: yes }), '0.62')
  assert.ok(
    (await client.fetchPriceHistory({ tokenId: yes, interval: PriceHistoryInterval.ONE_WEEK })).length > 100,
  )
})

test('market and limit orders settle on the chain, on both kinds of risk', async () => {
  const client = await depositClient(503)
  const { wallet } = client.account
  const plain = await pinned('fed-cuts-rates-in-december', 0.62)
  const group = await pinned('ada-winter-wins-the-mayoral-race', 0.46)
  for (const { yes, price } of [
    { yes: plain.yes, price: 0.63 },
    // Rounded so that no more than the price is paid: it needs the tick above.
    { yes: group.yes, price: 0.48 },
  ]) {
    const order = await client.placeMarketOrder({
      tokenId: yes,
      amount: 63,
      side: OrderSide.BUY,
      maxPrice: price,
    })
    await filled(client, order)
  }
  const held = await market.balances(wallet, [plain.yes, group.yes])
  assert.equal(held.shares[plain.yes], '100')
  assert.ok(Number(held.shares[group.yes]) > 134)
  const resting = await client.placeLimitOrder({
    tokenId: plain.yes,
    price: 0.5,
    size: 10,
    side: OrderSide.BUY,
  })
  assert.ok(resting.ok)
  const open = await client.listOpenOrders().firstPage()
  assert.deepEqual(
    open.items.map(({ id }) => id),
    [resting.orderId],
  )
  assert.deepEqual((await client.cancelOrder({ orderId: resting.orderId })).canceled, [resting.orderId])
  const sold = await client.placeMarketOrder({
    tokenId: plain.yes,
    shares: 40,
    side: OrderSide.SELL,
  })
  await filled(client, sold)
  assert.equal((await market.balances(wallet, [plain.yes])).shares[plain.yes], '60')
  const trades = await client.listAccountTrades().firstPage()
  assert.equal(trades.items.length, 3)
  assert.equal((await market.control<{ isWhole: boolean }>('GET', '/backing')).isWhole, true)
})

test('pairs are split and merged, and winnings are redeemed', async () => {
  const client = await depositClient(504)
  const { wallet } = client.account
  const group = await pinned('cal-autumn-wins-the-mayoral-race', 0.19)
  const plain = await pinned('bitcoin-reaches-250k-this-year', 0.045)
  for (const { conditionId, yes, no } of [plain, group]) {
    await (await client.splitPosition({ conditionId, amount: 20_000_000n })).wait()
    assert.deepEqual((await market.balances(wallet, [yes, no])).shares, { [yes]: '20', [no]: '20' })
    await (await client.mergePositions({ conditionId, amount: 5_000_000n })).wait()
    assert.deepEqual((await market.balances(wallet, [yes, no])).shares, { [yes]: '15', [no]: '15' })
  }
  for (const { slug, conditionId, yes, no } of [plain, group]) {
    await market.control('POST', '/resolve', { market: slug, outcome: 'no' })
    await (await client.redeemPositions({ conditionId })).wait()
    assert.deepEqual((await market.balances(wallet, [yes, no])).shares, { [yes]: '0', [no]: '0' })
  }
  assert.equal((await market.balances(wallet)).pusd, '1000')
  await eventually('the redemption in the data', async () => {
    const { items } = await client.listActivity().firstPage()
    const redeemed = items.flatMap((each) => (each.type === 'REDEEM' ? [each.conditionId] : []))
    return new Set(redeemed).size === 2 ? items : undefined
  })
  const { items } = await client.listActivity().firstPage()
  assert.deepEqual([...new Set(items.map(({ type }) => type))].sort(), ['MERGE', 'REDEEM', 'SPLIT'])
})

test('the Data API lists positions in both versions with every published key', async () => {
  const client = await depositClient(505)
  const { wallet } = client.account
  const { yes } = await pinned('ben-summer-wins-the-mayoral-race', 0.35)
  const order = await client.placeMarketOrder({ tokenId: yes, amount: 36, side: OrderSide.BUY })
  await filled(client, order)
  const { data } = market.world.urls.polymarket
  const [old] = await readJson<object[]>(`${data}/positions?user=${wallet}`)
  assertKeys(old ?? {}, keySets.positionV1, 'position')
  const page = await readJson<{ data: object[]; pagination: object }>(`${data}/v2/positions?user=${wallet}`)
  assertKeys(page.data[0] ?? {}, keySets.positionV2, 'position of v2')
  assertKeys(page.pagination, keySets.paginationV2, 'pagination')
  const activity = await readJson<{ data: object[] }>(`${data}/v2/activity?user=${wallet}`)
  assertKeys(activity.data[0] ?? {}, keySets.activityV2, 'activity of v2')
  const trades = await readJson<{ data: object[] }>(`${data}/v2/trades?user=${wallet}`)
  assertKeys(trades.data[0] ?? {}, keySets.tradeV2, 'trade of v2')
  const listed = await client.listPositions().firstPage()
  assert.equal(listed.items[0]?.tokenId, yes)
})

test('an order signed first and posted later is reported on the user socket', async () => {
  const client = await depositClient(506)
  const signed = await client.createLimitOrder({
    tokenId: (await pinned('fed-cuts-rates-in-december', 0.62)).yes,
    price: 0.5,
    size: 10,
    side: OrderSide.BUY,
  })
  assert.equal(signed.orderType, OrderType.GTC)
  const frames = await openFrames(market.world.urls.polymarket.socket, 'user', {
    type: 'user',
    auth: {
      apiKey: client.credentials.key,
      secret: client.credentials.secret,
      passphrase: client.credentials.passphrase,
    },
  })
  const sent = await client.postOrder(signed)
  assert.ok(sent.ok)
  await frames.next('the order', ({ id }) => id === sent.orderId)
  assert.deepEqual(frames.dropped, [])
  frames.close()
})

test('the subscriptions of the client report the book, an order and its trade', async () => {
  const client = await depositClient(507)
  const { yes, slug } = await pinned('fed-cuts-rates-in-december', 0.62)
  const events: { topic: string; type: string; payload: object }[] = []
  const handle = await client.subscribe([
    { topic: 'market', tokenIds: [yes], customFeatureEnabled: true },
    { topic: 'user' },
  ])
  const reading = (async () => {
    for await (const event of handle) events.push(event)
  })()
  const reported = (type: string) =>
    eventually(`${type} on the subscription`, () => events.find((event) => event.type === type))
  await reported('book')
  const order = await client.placeMarketOrder({
    tokenId: yes,
    amount: 63,
    side: OrderSide.BUY,
    maxPrice: 0.63,
  })
  await filled(client, order)
  for (const type of ['order', 'trade', 'price_change', 'last_trade_price', 'best_bid_ask'])
    await reported(type)
  await handle.close()
  await reading
})

test('an ordinary account trades, splits and merges with gas of its own', async () => {
  const address = await market.account(508)
  await witness.follow(508)
  const { world } = market
  const client = await createSecureClient({
    environment: environmentOf(world),
    signer: signerAt(world, 508),
    wallet: address,
  })
  assert.equal(client.account.wallet, client.account.signer)
  const { conditionId, yes, no } = await pinned('fed-cuts-rates-in-december', 0.62)
  await filled(client, await client.placeMarketOrder({ tokenId: yes, amount: 63, side: OrderSide.BUY }))
  await (await client.splitPosition({ conditionId, amount: 20_000_000n })).wait()
  await (await client.mergePositions({ conditionId, amount: 5_000_000n })).wait()
  assert.deepEqual((await market.balances(address, [yes, no])).shares, { [yes]: '115', [no]: '15' })
})

test('dated, post-only and batched orders rest, and end by list, by market, all at once and in time', async () => {
  const client = await depositClient(509)
  const plain = await pinned('fed-cuts-rates-in-december', 0.62)
  const group = await pinned('ben-summer-wins-the-mayoral-race', 0.35)
  const bid = { tokenId: plain.yes, price: 0.5, size: 10, side: OrderSide.BUY }
  const cash = async () => (await fetchBalanceAllowance(client, { assetType: AssetType.COLLATERAL })).balance
  assert.equal(await cash(), '1000000000')
  const crossing = await client
    .placeLimitOrder({ ...bid, price: 0.7, postOnly: true })
    .catch((error) => error)
  assert.match(crossing.message, /^invalid post-only order: order crosses book/)
  const resting = await client.placeLimitOrder({ ...bid, postOnly: true })
  assert.ok(resting.ok)
  const inGroup = { ...bid, tokenId: group.yes, price: 0.2 }
  const signed = await Promise.all(
    [{ ...bid, price: 0.51 }, { ...bid, price: 0.52 }, { ...bid, price: 0.53 }, inGroup].map((each) =>
      client.createLimitOrder(each),
    ),
  )
  const ids = (await client.postOrders(signed)).map((each) => (each.ok ? each.orderId : each.message))
  const open = async () => (await client.listOpenOrders().firstPage()).items.map(({ id }) => id).sort()
  assert.deepEqual(await open(), [resting.orderId, ...ids].sort())
  assert.deepEqual((await client.cancelOrders({ orderIds: ids.slice(0, 2) })).canceled, ids.slice(0, 2))
  const { canceled } = await client.cancelMarketOrders({ market: plain.conditionId })
  assert.deepEqual([...canceled].sort(), [resting.orderId, ids[2]].sort())
  assert.deepEqual((await client.cancelAll()).canceled, [ids[3]])
  const expiration = Math.floor(Date.now() / 1000) + 200
  const dated = await client.placeLimitOrder({ ...bid, expiration })
  assert.ok(dated.ok)
  const read = await client.fetchOrder({ orderId: dated.orderId })
  assert.deepEqual([read.orderType, read.status], [OrderType.GTD, 'LIVE'])
  // It ends a minute before its time.
  await market.control('POST', '/advance', { ms: 141_000 })
  assert.deepEqual(await open(), [])
  assert.equal(await cash(), '1000000000')
})

test('not one frame of these runs would be dropped by the official client, and none lacks a published key', () => {
  const { market_resolved: resolved = 0, order = 0, trade = 0 } = witness.end()
  assert.ok(resolved > 0 && order > 5 && trade > 5, JSON.stringify({ resolved, order, trade }))
})
