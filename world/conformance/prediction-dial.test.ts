import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { AssetType, Chain, ClobClient, OrderType, Side } from '@polymarket/clob-client-v2'
import { ccxtClientAt } from './prediction/ccxt-client.ts'
import {
  marketBySlug,
  openFrames,
  type PredictionUrls,
  readJson,
  signedFetch,
  urlsAt,
  walletOf,
} from './prediction/prediction.ts'
import { accountOf, eventually, type RunningVenue, resetRefusedUpgrades, startVenue } from './venue/venue.ts'

/** What goes wrong at this venue, and that the official client meets it in the words of upstream. No chain is needed. */

let venue: RunningVenue
let urls: PredictionUrls
let yes: string

before(async () => {
  venue = await startVenue([], 7, 'polymarket')
  urls = urlsAt(venue.url)
  yes = (await marketBySlug(urls, slug)).yes
})
beforeEach(async () => {
  await venue.control('POST', '/realism', { preset: 'quiet', seed: 5 })
  await venue.control('DELETE', '/faults', {})
  await venue.control('POST', '/mode', { mode: 'open' })
  await venue.control('POST', '/price', { market: slug, price: 0.62 })
})
after(() => venue?.close())

const slug = 'fed-cuts-rates-in-december'
const set = (settings: Record<string, unknown>) => venue.control('POST', '/realism', settings)

const clientAt = async (number: number) => {
  const common = { host: urls.clob, chain: Chain.POLYGON, signer: walletOf(number) }
  const creds = await new ClobClient(common).createOrDeriveApiKey()
  const options = { ...common, throwOnError: true }
  const { address } = accountOf(number)
  await venue.control('POST', '/credit', { wallet: address, amount: '1000' })
  return { client: new ClobClient({ ...options, creds }), creds, address }
}

const rejects = (run: Promise<unknown>, text: RegExp) =>
  assert.rejects(run, (error: Error) => text.test(error.message) || assert.fail(error.message))

const buy = (client: ClobClient, price: number, postOnly = false) =>
  client
    .createOrder({ tokenID: yes, price, size: 10, side: Side.BUY })
    .then((order) => client.postOrder(order, OrderType.GTC, postOnly))

type Effects = {
  trades: { id: string; status: string; hash: string; attempts: number; legs: { wallet: string }[] }[]
}

const tradeOf = async (address: string) => {
  const { trades } = await venue.control<Effects>('GET', `/effects?wallet=${address}`)
  return trades.at(-1)
}

test('a restart answers 425, then takes post-only orders for two minutes; other modes have their own words', async () => {
  const { client } = await clientAt(601)
  const { orderID } = await buy(client, 0.5)
  await venue.control('POST', '/restart', {})
  await rejects(buy(client, 0.51), /Too Early/)
  await venue.control('POST', '/advance', { ms: 91_000 })
  await rejects(buy(client, 0.51), /post-only mode/)
  assert.equal((await buy(client, 0.51, true)).status, 'live')
  assert.equal((await client.getOrder(orderID)).status, 'LIVE')
  await venue.control('POST', '/advance', { ms: 121_000 })
  assert.equal((await buy(client, 0.49)).status, 'live')
  await venue.control('POST', '/mode', { mode: 'cancelOnly' })
  await rejects(buy(client, 0.48), /cancel-only/)
  const { canceled } = await client.cancelOrder({ orderID })
  assert.deepEqual(canceled, [orderID])
  await venue.control('POST', '/mode', { mode: 'disabled' })
  await rejects(client.cancelAll(), /Trading is currently disabled/)
  await venue.control('POST', '/restart', { forMs: 0, nextMs: 0, wipe: true })
  await venue.control('POST', '/mode', { mode: 'open' })
  assert.deepEqual(await client.getOpenOrders(), [])
})

test('accounts that may only close, or nothing, are refused by name', async () => {
  const { client, address } = await clientAt(602)
  const order = await client.createAndPostOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY })
  assert.equal(order.status, 'matched')
  await eventually('the settlement', async () =>
    (await tradeOf(address))?.status === 'CONFIRMED' ? true : undefined,
  )
  await venue.control('POST', '/account', { wallet: address, closedOnly: true })
  assert.deepEqual(await client.getClosedOnlyMode(), { closed_only: true })
  await rejects(buy(client, 0.5), /address in closed only mode/)
  const sold = await client.createAndPostOrder({ tokenID: yes, price: 0.61, size: 5, side: Side.SELL })
  assert.equal(sold.status, 'matched')
  await venue.control('POST', '/account', { wallet: address, closedOnly: false, banned: true })
  await rejects(buy(client, 0.5), /address banned/)
  await set({ preset: 'depositWalletsOnly' })
  const { client: other } = await clientAt(603)
  await rejects(buy(other, 0.5), /maker address not allowed, please use the deposit wallet flow/)
  await set({ preset: 'geoblocked' })
  assert.equal((await readJson<{ blocked: boolean }>(`${urls.geoblock}/api/geoblock`)).blocked, true)
  await rejects(buy(other, 0.5), /Trading restricted in your region/)
  await set({ preset: 'closeOnly' })
  await venue.control('POST', '/account', { wallet: address, banned: false })
  await rejects(buy(client, 0.5), /Trading restricted in your region/)
  const closing = await client.createAndPostOrder({ tokenID: yes, price: 0.61, size: 5, side: Side.SELL })
  assert.equal(closing.status, 'matched')
})

test('a match may fail, be sent again under another hash, or first not be broadcast', async () => {
  const { client, creds, address } = await clientAt(604)
  const auth = { apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }
  const frames = await openFrames(urls.socket, 'user', { type: 'user', auth })
  await set({ preset: 'failedMatches' })
  // Otherwise the client waits half a minute for the hash of a transaction.
  const order = await client.createOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY })
  const failed = await client.postOrder(order, OrderType.GTC, false, true)
  await frames.next('the failure', ({ id, status }) => id === failed.tradeIDs?.[0] && status === 'FAILED')
  assert.equal((await tradeOf(address))?.status, 'FAILED')
  const { balance } = await client.getBalanceAllowance({ asset_type: AssetType.CONDITIONAL, token_id: yes })
  assert.equal(balance, '0')
  await set({ preset: 'replacedHashes' })
  const again = await client.createAndPostOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY })
  const id = again.tradeIDs?.[0]
  const confirmed = await frames.next('the end', (frame) => frame.id === id && frame.status === 'CONFIRMED')
  const reported = frames.all.filter((frame) => frame.id === id).map(({ status }) => status)
  assert.deepEqual(
    new Set(reported),
    new Set(['MATCHED_NOT_BROADCASTED', 'MATCHED', 'RETRYING', 'MINED', 'CONFIRMED']),
  )
  const first = frames.all.find((frame) => frame.id === id && frame.status === 'MATCHED')
  assert.notEqual(confirmed.transaction_hash, first?.transaction_hash)
  assert.deepEqual(frames.dropped, [])
  frames.close()
})

test('a phantom of matched orders locks a balance for ever', async () => {
  const { client, address } = await clientAt(605)
  await set({ preset: 'phantomLocks' })
  await client.createAndPostMarketOrder(
    { tokenID: yes, amount: 63, side: Side.BUY, price: 0.63 },
    undefined,
    OrderType.FOK,
  )
  await set({ preset: 'quiet' })
  await eventually('the settlement', async () =>
    (await tradeOf(address))?.status === 'CONFIRMED' ? true : undefined,
  )
  const order = await client.createOrder({ tokenID: yes, price: 0.5, size: 1_800, side: Side.BUY })
  await rejects(
    client.postOrder(order),
    /the balance is not enough -> balance: 937000000, sum of matched orders: 63000000, order amount: 900000000/,
  )
})

test('reads lag behind writes, Gamma and the neg-risk of the book contradict each other', async () => {
  const { client } = await clientAt(606)
  const lags = (await set({ preset: 'laggingReads' })) as Record<string, { maxMs: number }>
  for (const server of ['orders', 'trades', 'balance', 'data', 'gamma', 'relayer'])
    assert.equal(lags[`${server}Lag`]?.maxMs, 5_000)
  await set({ preset: 'quiet', ordersLag: { rate: 1, minMs: 900, maxMs: 1_000 } })
  const { orderID } = await buy(client, 0.5)
  assert.deepEqual(await client.getOpenOrders(), [])
  await eventually('the order in the list', async () =>
    (await client.getOpenOrders()).some(({ id }) => id === orderID) ? true : undefined,
  )
  const { client: buyer, creds, address } = await clientAt(614)
  const auth = { apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }
  const frames = await openFrames(urls.socket, 'user', { type: 'user', auth })
  const cash = async () => (await buyer.getBalanceAllowance({ asset_type: AssetType.COLLATERAL })).balance
  assert.equal(await cash(), '1000000000')
  const lag = { rate: 1, minMs: 1_500, maxMs: 1_600 }
  await set({ preset: 'quiet', tradesLag: lag, dataLag: lag, balanceLag: lag, socketLag: lag })
  const order = await buyer.createOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY })
  const { orderID: bought, tradeIDs } = await buyer.postOrder(order)
  await eventually('the settlement', async () =>
    (await tradeOf(address))?.status === 'CONFIRMED' ? true : undefined,
  )
  const trades = () => buyer.getTrades({ id: tradeIDs?.[0] ?? '' })
  const activity = () => readJson<{ type: string }[]>(`${urls.data}/activity?user=${address}&type=TRADE`)
  assert.deepEqual([await trades(), await activity(), await cash()], [[], [], '1000000000'])
  assert.deepEqual(frames.all, [])
  await frames.next('the order', ({ id }) => id === bought)
  await eventually('the trade', async () =>
    (await trades()).length + (await activity()).length === 2 && (await cash()) === '993700000'
      ? true
      : undefined,
  )
  frames.close()
  const at = `${urls.gamma}/markets?slug=${slug}`
  const priceNow = async () => (await readJson<{ lastTradePrice: number; bestBid: number }[]>(at))[0]?.bestBid
  await set({ preset: 'quiet', gammaLag: { rate: 1, minMs: 1_500, maxMs: 2_000 } })
  assert.equal(await priceNow(), 0.61)
  await venue.control('POST', '/price', { market: slug, price: 0.8 })
  assert.equal(await priceNow(), 0.61)
  await eventually('the new price', async () => ((await priceNow()) === 0.79 ? true : undefined))
  await set({ preset: 'contradictoryNegRisk' })
  assert.deepEqual(await readJson(`${urls.clob}/neg-risk?token_id=${yes}`), { neg_risk: true })
  const misled = await clientAt(607)
  // It asks this path for the exchange of a limit order, and for that of a market order the facts of the market.
  await rejects(buy(misled.client, 0.3), /^invalid signature$/)
  const market = { tokenID: yes, amount: 8.1, side: Side.BUY, price: 0.81 }
  assert.equal((await misled.client.createAndPostMarketOrder(market)).status, 'matched')
  // ccxt believes Gamma.
  const believer = ccxtClientAt(urls, 607)
  assert.equal((await believer.createOrder(yes, 'limit', 'buy', 10, 0.3)).status, 'open')
})

test('a version is refused on a whim, or Gamma names another one than the ids have', async () => {
  const { client } = await clientAt(615)
  await set({ preset: 'versionMismatches' })
  await rejects(buy(client, 0.3), /^order_version_mismatch$/)
  await assert.rejects(
    ccxtClientAt(urls, 615).createOrder(yes, 'limit', 'buy', 10, 0.31),
    /"error":"order_version_mismatch"/,
  )
  await set({ preset: 'quiet' })
  assert.equal((await buy(client, 0.3)).status, 'live')
  const versions = async () => {
    const event = 'who-wins-the-mayoral-race'
    const { markets } = await readJson<{ markets: { version: string }[] }>(
      `${urls.gamma}/events/slug/${event}`,
    )
    const listed = [slug, 'new-phone-before-march'].map((each) => marketBySlug(urls, each))
    return [...markets, ...(await Promise.all(listed))].map(({ version }) => version)
  }
  assert.deepEqual(await versions(), ['v1', 'v1', 'v1', 'v1', 'v2'])
  await set({ preset: 'contradictoryVersions' })
  assert.deepEqual(await versions(), ['v2', 'v2', 'v2', 'v2', 'v1'])
  const { yes: position, positionIds } = await marketBySlug(urls, 'new-phone-before-march')
  assert.equal(positionIds[0], position)
})

test('requests are throttled, lost, late and answered by a proxy; sockets drop', async () => {
  const { client, creds, address } = await clientAt(608)
  await set({ preset: 'throttled' })
  const burst = await Promise.all(
    Array.from({ length: 80 }, () => fetch(`${urls.clob}/order`, { method: 'POST', body: '{}' })),
  )
  assert.ok(
    burst.every(({ status }) => status === 401),
    'who is not known is not counted',
  )
  const orders = await Promise.all(
    [0.3, 0.31, 0.32, 0.34, 0.35].map((price) =>
      client.createOrder({ tokenID: yes, price, size: 5, side: Side.BUY }),
    ),
  )
  const settled = await Promise.allSettled(orders.map((order) => client.postOrder(order)))
  assert.ok(settled.some(({ status }) => status === 'fulfilled'))
  assert.ok(
    settled.some((each) => each.status === 'rejected' && /Too Many Requests/.test(String(each.reason))),
  )
  const batch = { method: 'POST', path: '/orders', body: Array(15).fill({}) }
  const { status: refused, headers } = await signedFetch(urls, { number: 608, creds }, batch)
  assert.equal(refused, 429)
  assert.ok(Number(headers.get('retry-after')) > 0)
  assert.ok(Number(headers.get('poly-ratelimit-reset')) >= Math.floor(Date.now() / 1_000))
  assert.deepEqual(
    [headers.get('poly-ratelimit-remaining'), headers.get('poly-ratelimit-tier')],
    ['0', 'standard'],
  )
  await set({ preset: 'proxyPages' })
  const page = await fetch(`${urls.clob}/time`)
  assert.equal(page.status, 502)
  assert.match(await page.text(), /502 Bad Gateway/)
  await set({ preset: 'busy' })
  const busy = await fetch(`${urls.clob}/time`)
  assert.deepEqual([busy.status, busy.headers.get('retry-after')], [429, '1'])
  await set({ preset: 'quiet' })
  // The reply is lost, the order is not.
  await venue.control('POST', '/faults', { endpoint: 'clob', type: '/order', effect: 'dropReply', count: 1 })
  await assert.rejects(buy(client, 0.33))
  const { orders: remaining } = await venue.control<{ orders: { price: string }[] }>(
    'GET',
    `/effects?wallet=${address}`,
  )
  assert.ok(remaining.some(({ price }) => price === '0.33'))
})

test('replies are queued, late or lost, though the order is in, and sockets drop', async () => {
  const { client, address } = await clientAt(609)
  const priced = async (price: string) => {
    const { orders } = await venue.control<{ orders: { price: string }[] }>(
      'GET',
      `/effects?wallet=${address}`,
    )
    return orders.some((order) => order.price === price)
  }
  const sign = (price: number) => client.createOrder({ tokenID: yes, price, size: 10, side: Side.BUY })
  const [first, later] = [await sign(0.31), await sign(0.32)]
  await set({ preset: 'lostReplies' })
  await assert.rejects(client.postOrder(first))
  assert.equal(await priced('0.31'), true)
  const timed = async (setting: string, preset: string) => {
    const whole = (await set({ preset })) as Record<string, { maxMs: number }>
    await set({ [setting]: { rate: 1, minMs: 700, maxMs: 800 } })
    const startMs = performance.now()
    await fetch(`${urls.clob}/time`)
    return { longestMs: whole[setting]?.maxMs, tookMs: performance.now() - startMs }
  }
  const queued = await timed('queue', 'queued')
  assert.ok(queued.tookMs >= 690 && queued.longestMs === 20_000, JSON.stringify(queued))
  const late = await timed('lateReply', 'lateReplies')
  assert.ok(late.tookMs >= 690 && late.longestMs === 15_000, JSON.stringify(late))
  const sending = client.postOrder(later)
  await eventually('the order before its reply', async () => ((await priced('0.32')) ? true : undefined))
  assert.equal((await sending).status, 'live')
  await set({ preset: 'quiet' })
  const open = () => openFrames(urls.socket, 'market', { type: 'market', assets_ids: [yes] })
  const frames = await open()
  await frames.next('the book', ({ event_type }) => event_type === 'book')
  assert.equal((await venue.control<{ dropped: number }>('POST', '/ws/drop')).dropped, 1)
  await frames.ended
  const second = await open()
  await set({ preset: 'droppedSockets' })
  await second.ended
})

test('a balance that the venue knows stays as it is until the client asks for an update', async () => {
  const { client, address } = await clientAt(616)
  await set({ preset: 'staleBalances' })
  const cash = async () => (await client.getBalanceAllowance({ asset_type: AssetType.COLLATERAL })).balance
  assert.equal(await cash(), '1000000000')
  await venue.control('POST', '/credit', { wallet: address, amount: '500' })
  assert.equal(await cash(), '1000000000')
  const order = await client.createOrder({ tokenID: yes, price: 0.5, size: 2_400, side: Side.BUY })
  await rejects(client.postOrder(order), /the balance is not enough -> balance: 1000000000/)
  await client.updateBalanceAllowance({ asset_type: AssetType.COLLATERAL })
  assert.equal(await cash(), '1500000000')
  assert.equal((await client.postOrder(order)).status, 'live')
})

test('sockets end where a client is silent or sends too much, and a reset ends nobody else', async () => {
  const open = () => openFrames(urls.socket, 'market', { type: 'market', assets_ids: [yes] })
  const [frames, large] = [await open(), await open()]
  large.send('x'.repeat(65_537))
  await large.ended
  await resetRefusedUpgrades(`${venue.url}/ws/market`)
  await set({ socketSilenceMs: 300 })
  await frames.ended
  assert.equal((await fetch(`${urls.clob}/time`)).status, 200)
})

/** The client makes a text of the whole reply. */
const unknownHeartbeat = (expected: string) =>
  new RegExp(`^{"heartbeat_id":"${expected}","error_msg":"Invalid Heartbeat ID"}$`)

test('heartbeats once begun must go on: silence cancels all orders of that account alone', async () => {
  const [{ client }, { client: other }] = [await clientAt(610), await clientAt(611)]
  const { orderID } = await buy(client, 0.3)
  const untouched = await buy(other, 0.3)
  const first = await client.postHeartbeat()
  const { heartbeat_id: known } = first
  await rejects(client.postHeartbeat('another'), unknownHeartbeat(known))
  const second = await client.postHeartbeat(first.heartbeat_id)
  assert.notEqual(second.heartbeat_id, first.heartbeat_id)
  await venue.control('POST', '/advance', { ms: 10_000 })
  const third = await client.postHeartbeat(second.heartbeat_id)
  await venue.control('POST', '/advance', { ms: 10_000 })
  assert.equal((await client.getOrder(orderID)).status, 'LIVE')
  await venue.control('POST', '/advance', { ms: 6_000 })
  assert.equal((await client.getOrder(orderID)).status, 'CANCELED')
  assert.equal((await other.getOrder(untouched.orderID)).status, 'LIVE')
  // An end of the silence does not bring them back, and begins anew.
  await rejects(client.postHeartbeat(third.heartbeat_id), unknownHeartbeat(''))
  assert.ok((await client.postHeartbeat()).heartbeat_id)
})

test('an order on a market with a delay is matched seconds later, and can be cancelled until then', async () => {
  const { client } = await clientAt(612)
  const delayed = await marketBySlug(urls, 'harbor-city-vs-river-town')
  await venue.control('POST', '/price', { market: delayed.slug, price: 0.5 })
  const send = () => client.createAndPostOrder({ tokenID: delayed.yes, price: 0.6, size: 10, side: Side.BUY })
  const sent = await send()
  assert.deepEqual([sent.status, sent.tradeIDs], ['delayed', []])
  assert.equal((await client.getOrder(sent.orderID)).status, 'LIVE')
  const dropped = await send()
  assert.deepEqual((await client.cancelOrder({ orderID: dropped.orderID })).canceled, [dropped.orderID])
  await venue.control('POST', '/advance', { ms: 3_000 })
  const { status, associate_trades: trades } = await client.getOrder(sent.orderID)
  assert.deepEqual([status, trades.length], ['MATCHED', 1])
  assert.equal((await client.getOrder(dropped.orderID)).status, 'CANCELED')
  // A post-only order is not delayed.
  const resting = await client.createOrder({ tokenID: delayed.yes, price: 0.3, size: 10, side: Side.BUY })
  assert.equal((await client.postOrder(resting, OrderType.GTC, true)).status, 'live')
})

test('a tick changes under resting orders, which stay, and signed ones, which are refused', async () => {
  const { client } = await clientAt(613)
  const { orderID } = await buy(client, 0.3)
  const changeTo = (tick: number) => venue.control('POST', '/tick-size', { market: slug, tick })
  await changeTo(0.001)
  assert.equal((await client.getOrder(orderID)).status, 'LIVE')
  const fresh = await clientAt(613)
  const fine = await fresh.client.createOrder({ tokenID: yes, price: 0.301, size: 10, side: Side.BUY })
  const second = await fresh.client.createOrder({ tokenID: yes, price: 0.302, size: 10, side: Side.BUY })
  const { orderID: finer } = await client.postOrder(fine)
  await changeTo(0.01)
  await rejects(client.postOrder(second), /breaks minimum tick size rule: 0.01/)
  assert.equal((await client.getOrder(finer)).status, 'LIVE')
})
