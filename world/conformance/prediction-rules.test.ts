import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ApiKeyCreds, AssetType, Chain, ClobClient, OrderType, Side } from '@polymarket/clob-client-v2'
import { cancelOrders } from '#world/polymarket/cancel.ts'
import { versionAt } from '#world/polymarket/clob-views.ts'
import { controlRoutes } from '#world/polymarket/control.ts'
import { markets } from '#world/polymarket/markets.ts'
import { type OrderInput, placeOrder } from '#world/polymarket/place-order.ts'
import { foldActivity, openInterest, positionsOf } from '#world/polymarket/positions.ts'
import { presets, quiet } from '#world/polymarket/realism.ts'
import { changeTrade, plainPlan } from '#world/polymarket/trades.ts'
import {
  accountOf as accountIn,
  addActivity,
  addVersion,
  createVenue,
  newState,
} from '#world/polymarket/venue.ts'
import {
  marketBySlug,
  openFrames,
  type PredictionUrls,
  readJson,
  signedFetch,
  urlsAt,
  walletOf,
} from './prediction/prediction.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

/** The rules of the order book, in the words of upstream, on a venue without a chain. */

let venue: RunningVenue
let urls: PredictionUrls

before(async () => {
  venue = await startVenue([], 7, 'polymarket')
  urls = urlsAt(venue.url)
  await venue.control('POST', '/price', { market: slug, price: 0.62 })
})
after(() => venue?.close())

const slug = 'fed-cuts-rates-in-december'

const accountAt = async (number: number) => {
  const options = { host: urls.clob, chain: Chain.POLYGON, signer: walletOf(number) }
  const creds = await new ClobClient(options).createOrDeriveApiKey()
  const wallet = accountOf(number).address
  await venue.control('POST', '/credit', { wallet, amount: '1000' })
  return { number, wallet, creds, client: new ClobClient({ ...options, creds, throwOnError: true }) }
}

type Order = Record<string, unknown>

/** An order as the client signs it, sent with other fields. */
const sendChanged = async (
  { client, number, creds }: { client: ClobClient; number: number; creds: ApiKeyCreds },
  change: { order?: (order: Order) => Order; body?: Record<string, unknown> },
) => {
  const { yes } = await marketBySlug(urls, slug)
  const signed = await client.createOrder({ tokenID: yes, price: 0.5, size: 10, side: Side.BUY })
  const order: Order = { ...signed, salt: Number(signed.salt), side: 'BUY', expiration: '0' }
  const body = {
    deferExec: false,
    order: change.order?.(order) ?? order,
    owner: creds.key,
    orderType: 'GTC',
    ...change.body,
  }
  const reply = await signedFetch(urls, { number, creds }, { method: 'POST', path: '/order', body })
  return (await reply.json()) as { error?: string; status?: string }
}

const endingIn = (seconds: number) => (order: Order) => ({
  ...order,
  expiration: String(Math.floor(Date.now() / 1_000) + seconds),
})

test('orders that are not what they seem are refused in the words of upstream', async () => {
  const [own, other] = [await accountAt(821), await accountAt(822)]
  const errorOf = async (...change: Parameters<typeof sendChanged>) => (await sendChanged(...change)).error
  assert.equal(await errorOf(own, { order: (order) => ({ ...order, salt: 5 }) }), 'invalid signature')
  const unknown = (order: Order) => ({ ...order, tokenId: '12345' })
  assert.equal(await errorOf(own, { order: unknown }), 'Invalid token id')
  assert.equal(
    await errorOf(own, { body: { owner: other.creds.key } }),
    'the order owner has to be the owner of the API KEY',
  )
  // What one account signed, sent with the key of another.
  assert.equal(
    await errorOf({ ...other, client: own.client }, {}),
    'the order signer address has to be the address of the API KEY',
  )
  const proxied = (order: Order) => ({ ...order, signatureType: 1 })
  assert.equal(
    await errorOf(own, { order: proxied }),
    'maker address not allowed, please use the deposit wallet flow',
  )
  const dated = (order: Order) => ({ ...order, expiration: '1900000000' })
  assert.equal(await errorOf(own, { order: dated }), 'invalid expiration')
  assert.equal(await errorOf(own, { body: { orderType: 'IOC' } }), 'Invalid order payload')
  // Fields of other versions of the protocol are ignored.
  const short = { body: { orderType: 'GTD' }, order: endingIn(170) }
  assert.equal(await errorOf(own, short), 'invalid expiration')
  assert.equal((await sendChanged(own, { ...short, order: endingIn(185) })).status, 'live')
  await own.client.cancelAll()
  const older = (order: Order) => ({ ...order, taker: `0x${'0'.repeat(40)}`, nonce: '0', feeRateBps: '0' })
  assert.equal((await sendChanged(own, { order: older, body: { postOnly: false, other: 1 } })).status, 'live')
  const { yes } = await marketBySlug(urls, slug)
  await own.client.cancelAll()
  const tiny = { tokenID: yes, price: 0.63, amount: 0.5, side: Side.BUY }
  await assert.rejects(
    own.client.createAndPostMarketOrder(tiny, undefined, OrderType.FAK),
    /invalid amount for a marketable BUY order \(\$0\.5\), min size: \$1/,
  )
  const keyRequest = (headers: Record<string, string>) =>
    readJson(`${urls.clob}/auth/api-key`, { method: 'POST', headers })
  assert.deepEqual(await keyRequest({}), { error: 'Invalid L1 Request headers' })
  const stale = { poly_address: own.wallet, poly_signature: '0x', poly_timestamp: '1', poly_nonce: '0' }
  assert.deepEqual(await keyRequest(stale), { error: 'Invalid L1 Request headers' })
})

test('a dated order that is sent again too near to its end is refused by its date, though it is in', async () => {
  const { client, wallet } = await accountAt(829)
  const { yes } = await marketBySlug(urls, slug)
  const expiration = Math.floor(Date.now() / 1_000) + 100
  const order = await client.createOrder({ tokenID: yes, price: 0.33, size: 10, side: Side.BUY, expiration })
  await venue.control('POST', '/realism', { gtdMinMs: 0, lostReplyRate: 1 })
  await assert.rejects(client.postOrder(order, OrderType.GTD))
  // The rest of its time is shorter than a new order may last, as after a pause between the two requests.
  await venue.control('POST', '/realism', { preset: 'quiet' })
  await assert.rejects(client.postOrder(order, OrderType.GTD), /invalid expiration/)
  const { orders } = await venue.control<{ orders: { id: string }[] }>('GET', `/effects?wallet=${wallet}`)
  assert.equal(orders.length, 1)
  assert.equal((await client.getOrder(orders[0]?.id ?? '')).status, 'LIVE')
})

test('a taker pays its fee on top of what it buys and out of what it sells', async () => {
  const { client } = await accountAt(823)
  const { yes, conditionId } = await marketBySlug(urls, 'bitcoin-up-or-down-today')
  await venue.control('POST', '/price', { market: conditionId, price: 0.5 })
  const { fd } = await client.getClobMarketInfo(conditionId)
  assert.deepEqual(fd, { r: 0.04, e: 1, to: true })
  const ask = Number((await client.getOrderBook(yes)).asks.at(-1)?.price)
  const cashNow = async () => {
    const { balance } = await client.getBalanceAllowance({ asset_type: AssetType.COLLATERAL })
    return Number(balance)
  }
  const settled = (id: string | undefined) =>
    eventually('the settlement', async () => {
      const [trade] = await client.getTrades({ id: id ?? '' })
      return trade?.status === 'TRADE_STATUS_CONFIRMED' ? trade : undefined
    })
  const size = 33.33
  const bought = await client.createAndPostOrder({ tokenID: yes, price: ask, size, side: Side.BUY })
  const trade = await settled(bought.tradeIDs?.[0])
  const cents = (price: number) => Math.round(price * 100)
  const feeOf = (price: number) => {
    const exact = 33_330_000 * 4 * cents(price) * (100 - cents(price))
    assert.notEqual(exact % 1_000_000, 0, 'the fee is rounded down')
    return Math.floor(exact / 1_000_000)
  }
  assert.ok(Number(trade.fee_rate_bps) > 0)
  const afterBuying = await cashNow()
  assert.equal(afterBuying, 1_000_000_000 - 333_300 * cents(ask) - feeOf(ask))
  const bid = Number((await client.getOrderBook(yes)).bids.at(-1)?.price)
  const sold = await client.createAndPostOrder({ tokenID: yes, price: bid, size, side: Side.SELL })
  await settled(sold.tradeIDs?.[0])
  const gained = (await cashNow()) - afterBuying
  assert.equal(gained, 333_300 * cents(bid) - feeOf(bid))
  const fee = (rate: number) => venue.control('POST', '/fee', { market: conditionId, rate })
  await assert.rejects(fee(0.21), /more than a tenth of the cash/)
})

test('both amounts of a market order are as exact as the tick allows', async () => {
  const { client } = await accountAt(826)
  const market = 'new-phone-before-march'
  const { yes: tokenID } = await marketBySlug(urls, market)
  const send = async (side: Side, makerAmount: string, takerAmount: string) => {
    const order = await client.createExchangeV3OrderFromAmounts({ tokenID, side, makerAmount, takerAmount })
    return client.postOrder(order as never, OrderType.FAK)
  }
  const changeTo = (tick: number) => venue.control('POST', '/tick-size', { market, tick })
  await changeTo(0.01)
  await assert.rejects(send(Side.BUY, '5000000', '6666670'), /taker amount a max accuracy of 4 decimals/)
  await assert.rejects(send(Side.SELL, '5000000', '3700010'), /taker amount a max accuracy of 4 decimals/)
  await changeTo(0.001)
  await assert.rejects(send(Side.BUY, '5000000', '6666667'), /taker amount a max accuracy of 5 decimals/)
  await assert.rejects(send(Side.SELL, '5000000', '3700001'), /taker amount a max accuracy of 5 decimals/)
  await assert.rejects(send(Side.SELL, '5000000', '3700010'), /not enough balance/)
  await changeTo(0.01)
})

test('positions stay what they were when their oldest rows are dropped', () => {
  const market = createVenue(newState(7, 0))
  const [{ conditionId }] = markets as [(typeof markets)[number]]
  const row = { conditionId, outcome: 0, fee: 0, hash: '0x', role: null } as const
  for (let atMs = 1; atMs <= 200_001; atMs += 1) {
    const side = atMs % 3 === 0 ? 'SELL' : 'BUY'
    const wallet = `0x${atMs % 2}`
    addActivity(market, { ...row, type: 'TRADE', wallet, side, shares: 100, cash: 40 + (atMs % 9), atMs })
  }
  // Nothing happens to this wallet later.
  market.state.activity[0]!.wallet = '0x2'
  const wallets = ['0x0', '0x1', '0x2']
  const held = () => wallets.map((wallet) => positionsOf(market, wallet, 300_000))
  const interest = () => openInterest(market, 300_000).get(conditionId)
  const before = held()
  const shares = before.flat().reduce((sum, { size }) => sum + size, 0)
  assert.equal(interest(), shares)
  foldActivity(market)
  assert.ok(market.state.activity.length < 200_000)
  assert.deepEqual(held(), before)
  assert.equal(interest(), shares)
})

const [first] = markets as [(typeof markets)[number]]
const funds = { balance: '1000000000000', allowance: '1000000000000', spender: '' }
const orderInput = (number: number): OrderInput => ({
  id: `order ${number}`,
  conditionId: first.conditionId,
  outcome: 0,
  side: 'BUY',
  price: 100,
  size: 5_000_000,
  type: 'GTC',
  postOnly: false,
  expiresMs: 0,
  expiration: '0',
  owner: '',
  user: '0x01',
  wallet: '0x01',
  signed: {
    salt: String(number),
    maker: '0x01',
    signer: '0x01',
    tokenId: first.tokens[0],
    makerAmount: '50000',
    takerAmount: '5000000',
    side: 'BUY',
    signatureType: 0,
    timestamp: '0',
    metadata: '0x',
    builder: '0x',
    signature: '0x1234',
  },
  spend: null,
  plan: plainPlan,
})

test('a maker has so many open orders and no more, and what has ended keeps no signature', () => {
  const market = createVenue(newState(7, 0))
  const place = (number: number) =>
    placeOrder(market, orderInput(number), { funds, identify: () => {} }).error
  for (let number = 1; number <= 2_000; number += 1) assert.equal(place(number), null)
  assert.match(String(place(2_001)), /More than 2000 open orders of one maker/)
  assert.equal(market.state.orders.get('order 1')?.signed.signature, '0x1234')
  assert.deepEqual(cancelOrders(market, '0x01', ['order 1']).canceled, ['order 1'])
  assert.equal(market.state.orders.get('order 1')?.signed.signature, '0x')
  assert.equal(place(2_001), null)
})

test('a trade whose block is removed commits again, and gives back once', () => {
  const market = createVenue(newState(7, 0))
  const place = (order: OrderInput) => placeOrder(market, order, { funds, identify: () => {} }).error
  const cheap = { ...orderInput(1), price: 1_000 }
  assert.equal(place(cheap), null)
  assert.equal(place({ ...orderInput(2), outcome: 1, price: 9_000, user: '0x02', wallet: '0x02' }), null)
  const [trade] = [...market.state.trades.values()].filter(({ makers }) =>
    makers.some(({ wallet }) => wallet === '0x01'),
  )
  assert.ok(trade)
  const committed = () => accountIn(market, '0x01').matchedCash
  const before = committed()
  assert.ok(before > 0n)
  for (const [status, cash] of [
    ['MINED', 0n],
    ['RETRYING', before],
    ['MINED', 0n],
    ['CONFIRMED', 0n],
  ] as const) {
    changeTrade(market, trade.id, { status })
    assert.equal(committed(), cash, status)
  }
})

test('a lagging read of what changed too often shows the oldest version that is kept', () => {
  const versions: { atMs: number }[] = []
  for (let atMs = 10; atMs < 20; atMs += 1) addVersion(versions, { atMs })
  const shown = (atMs: number) => versionAt(versions, { atMs, bornMs: 10 })?.atMs
  assert.deepEqual([9, 10, 13, 14, 16].map(shown), [undefined, 14, 14, 14, 16])
})

test('the page names every control and setting', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/local-prediction-market.md'), 'utf8')
  const settings = [quiet, quiet.relayer, quiet.autoRedeem].flatMap((each) => Object.keys(each))
  const names = [...settings, ...Object.keys(presets), ...Object.keys(controlRoutes)]
  assert.deepEqual(
    names.filter((name) => !page.includes(`\`${name}\``)),
    [],
  )
})

test('balances of the other protocol have an asset type of their own', async () => {
  const account = await accountAt(824)
  const { yes } = await marketBySlug(urls, 'new-phone-before-march')
  const path = `/balance-allowance?asset_type=CONDITIONAL-V2&token_id=${yes}&signature_type=0`
  const reply = await signedFetch(urls, account, { method: 'GET', path })
  const { balance, allowances } = (await reply.json()) as { balance: string; allowances: object }
  assert.equal(balance, '0')
  assert.deepEqual(Object.keys(allowances), ['0xe3333700cA9d93003F00f0F71f8515005F6c00Aa'])
  const { error } = await readJson<{ error: string }>(`${urls.clob}${path}`)
  assert.equal(error, 'Unauthorized/Invalid api key')
})

test('sockets: pings, subscriptions that change, users with and without markets', async () => {
  const { client, creds } = await accountAt(825)
  const [first, second] = [
    await marketBySlug(urls, slug),
    await marketBySlug(urls, 'bitcoin-reaches-250k-this-year'),
  ]
  const feed = await openFrames(urls.socket, 'market', { type: 'market', assets_ids: [first.yes] })
  const bookOf = (token: string) => (frame: Record<string, unknown>) =>
    frame.event_type === 'book' && frame.asset_id === token
  await feed.next('the first book', bookOf(first.yes))
  feed.send('PING')
  await eventually('the pong', () => feed.texts.includes('PONG') || undefined)
  feed.send({ operation: 'subscribe', assets_ids: [second.yes] })
  await feed.next('the second book', bookOf(second.yes))
  feed.send({ operation: 'subscribe', assets_ids: [second.yes] })
  await eventually('the answer', () => feed.texts.includes('NO NEW ASSETS') || undefined)
  feed.send({ operation: 'unsubscribe', assets_ids: [first.yes] })
  feed.send('PING')
  await eventually(
    'the second pong',
    () => feed.texts.filter((text) => text === 'PONG').length === 2 || undefined,
  )
  const seen = feed.all.length
  await venue.control('POST', '/price', { market: slug, price: 0.7 })
  await venue.control('POST', '/price', { market: second.slug, price: 0.06 })
  await feed.next('a change of the second', (frame) => frame.event_type === 'price_change')
  assert.ok(feed.all.slice(seen).every(({ market }) => market === second.conditionId))
  const auth = { apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }
  const all = await openFrames(urls.socket, 'user', { type: 'user', auth })
  const some = await openFrames(urls.socket, 'user', { type: 'user', auth, markets: [second.conditionId] })
  const bid = (tokenID: string) =>
    client.createAndPostOrder({ tokenID, price: 0.02, size: 50, side: Side.BUY })
  const [one, two] = [await bid(first.yes), await bid(second.yes)]
  const placed = (id: string) => (frame: Record<string, unknown>) => frame.id === id
  await all.next('the first order', placed(one.orderID))
  await all.next('the second order', placed(two.orderID))
  await some.next('the second order', placed(two.orderID))
  assert.ok(!some.all.some(({ id }) => id === one.orderID))
  const stranger = await openFrames(urls.socket, 'user', { type: 'user', auth: { ...auth, secret: 'x' } })
  await stranger.ended
  const third = await marketBySlug(urls, 'bitcoin-up-or-down-today')
  const custom = { type: 'market', assets_ids: [third.yes], custom_feature_enabled: true }
  const results = await openFrames(urls.socket, 'market', custom)
  await results.next('the third book', bookOf(third.yes))
  await venue.control('POST', '/resolve', { market: third.slug, outcome: 'void' })
  const resolved = await results.next('the result', ({ event_type }) => event_type === 'market_resolved')
  assert.equal(resolved.winning_asset_id, null)
  for (const { dropped, close } of [feed, all, some, results]) {
    assert.deepEqual(dropped, [])
    close()
  }
})
