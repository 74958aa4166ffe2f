import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as clob from '@polymarket/bindings/clob'
import * as data from '@polymarket/bindings/data'
import * as gamma from '@polymarket/bindings/gamma'
import { Chain, ClobClient, OrderType, Side } from '@polymarket/clob-client-v2'
import * as keySets from './prediction/key-sets.ts'
import {
  assertKeys,
  marketBySlug,
  type PredictionUrls,
  readJson,
  signedFetch,
  urlsAt,
  walletOf,
} from './prediction/prediction.ts'
import { assertWhole } from './prediction/schema-keys.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

/** Every reply of the venue without a chain: the official client takes it, and no published key is missing. */

let venue: RunningVenue
let urls: PredictionUrls
const number = 801
const { address } = accountOf(number)

before(async () => {
  venue = await startVenue([], 7, 'polymarket')
  urls = urlsAt(venue.url)
  await venue.control('POST', '/price', { market: slug, price: 0.62 })
})
after(() => venue?.close())

const slug = 'fed-cuts-rates-in-december'

const post = (url: string, body: unknown) => readJson(url, { method: 'POST', body: JSON.stringify(body) })

const connect = async () => {
  const signer = walletOf(number)
  const options = { host: urls.clob, chain: Chain.POLYGON, signer }
  const creds = await new ClobClient(options).createOrDeriveApiKey()
  const client = new ClobClient({ ...options, creds, throwOnError: true })
  const asOwner = async <T = unknown>(method: string, path: string, body?: unknown): Promise<T> => {
    const reply = await signedFetch(urls, { number, creds }, { method, path, body })
    return (await reply.json()) as T
  }
  return { client, creds, asOwner }
}

test('public replies of the order book', async () => {
  const { clob: at } = urls
  const { yes, no, conditionId } = await marketBySlug(urls, slug)
  const tokens = [{ token_id: yes }, { token_id: no }]
  const one = `token_id=${yes}`
  assert.equal(await readJson(`${at}/ok`), 'OK')
  assert.ok(Number.isInteger(await readJson(`${at}/time`)))
  assertKeys(await readJson(`${at}/version`), ['version'], 'version')
  const book = await readJson<object>(`${at}/book?${one}`)
  assertWhole(clob.FetchOrderBookResponseSchema, book, 'book')
  assertKeys(book, keySets.book, 'book')
  assertWhole(clob.OrderBooksSchema, await post(`${at}/books`, tokens), 'books')
  assertWhole(clob.MidpointSchema, await readJson(`${at}/midpoint?${one}`), 'midpoint')
  assertWhole(clob.MidpointsSchema, await post(`${at}/midpoints`, tokens), 'midpoints')
  assertWhole(clob.PriceSchema, await readJson(`${at}/price?${one}&side=BUY`), 'price')
  const prices = await post(`${at}/prices`, [
    { token_id: yes, side: 'BUY' },
    { token_id: yes, side: 'SELL' },
  ])
  assertWhole(clob.PricesSchema, prices, 'prices')
  assert.deepEqual(prices, { [yes]: { BUY: '0.61', SELL: '0.63' } })
  assertWhole(clob.SpreadSchema, await readJson(`${at}/spread?${one}`), 'spread')
  assertWhole(clob.SpreadsSchema, await post(`${at}/spreads`, tokens), 'spreads')
  assertWhole(clob.LastTradePriceSchema, await readJson(`${at}/last-trade-price?${one}`), 'last price')
  assertWhole(clob.LastTradePricesSchema, await post(`${at}/last-trades-prices`, tokens), 'last prices')
  const history = await readJson(`${at}/prices-history?market=${yes}&interval=1d`)
  assertWhole(clob.PriceHistorySchema, history, 'history')
  assertWhole(clob.FetchTickSizeResponseSchema, await readJson(`${at}/tick-size?${one}`), 'tick')
  assertWhole(clob.FetchNegRiskResponseSchema, await readJson(`${at}/neg-risk?${one}`), 'neg risk')
  assertKeys(await readJson(`${at}/fee-rate?${one}`), ['base_fee'], 'fee rate')
  const code = `0x${'0'.repeat(64)}`
  assertWhole(clob.BuilderFeeRatesSchema, await readJson(`${at}/fees/builder-fees/${code}`), 'builder fees')
  const byToken = await readJson<object>(`${at}/markets-by-token/${yes}`)
  assertWhole(clob.ConditionByTokenSchema, byToken, 'market by token')
  assertKeys(byToken, keySets.marketByToken, 'market by token')
  const short = await readJson<object>(`${at}/clob-markets/${conditionId}`)
  assertWhole(clob.MarketInfoSchema, short, 'short market')
  assertKeys(short, keySets.shortMarket, 'short market')
  assertKeys(await readJson(`${at}/markets/${conditionId}`), keySets.clobMarket, 'market')
  const lists = [
    ['markets', keySets.clobMarket],
    ['sampling-markets', keySets.clobMarket],
    ['simplified-markets', keySets.simplifiedMarket],
    ['sampling-simplified-markets', keySets.simplifiedMarket],
  ] as const
  for (const [name, keys] of lists) {
    const page = await readJson<{ data: object[] }>(`${at}/${name}`)
    assertKeys(page, keySets.page, name)
    assertKeys(page.data[0] ?? {}, keys, name)
  }
})

test('replies to an owner, and all rows of a trade', async () => {
  const { client, creds, asOwner } = await connect()
  const { yes } = await marketBySlug(urls, slug)
  assertWhole(clob.ApiKeysResponseSchema, await asOwner('GET', '/auth/api-keys'), 'keys')
  assertKeys({ apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }, keySets.apiKey, 'key')
  assertWhole(clob.ClosedOnlyModeSchema, await asOwner('GET', '/auth/ban-status/closed-only'), 'closed only')
  await venue.control('POST', '/credit', { wallet: address, amount: '1000' })
  const bid = (price: number) => client.createOrder({ tokenID: yes, price, size: 10, side: Side.BUY })
  const resting = await client.postOrder(await bid(0.5))
  assertWhole(clob.OrderResponseSchema, resting, 'order')
  assertKeys(resting, keySets.sentOrder, 'order')
  const taking = { order: await bid(0.63), orderType: OrderType.GTC }
  const list = (await client.postOrders([taking, taking])) as { success: boolean }[]
  assert.deepEqual(
    list.map(({ success }) => success),
    [true, false],
  )
  assertWhole(clob.OrderResponsesSchema, list, 'orders')
  for (const each of list) assertKeys(each, keySets.sentOrder, 'order of a list')
  const page = await asOwner<{ data: object[] }>('GET', '/data/orders')
  assertWhole(clob.OpenOrdersPageSchema, page, 'open orders')
  assertKeys(page, keySets.page, 'open orders')
  assertWhole(clob.OpenOrderSchema, await asOwner('GET', `/data/order/${resting.orderID}`), 'one order')
  const trades = await eventually('the trade', async () => {
    const found = await asOwner<{ data: { status: string }[] }>('GET', '/data/trades')
    return found.data[0]?.status === 'TRADE_STATUS_CONFIRMED' ? found : undefined
  })
  assertWhole(clob.ClobTradesPageSchema, trades, 'trades')
  assertKeys(trades.data[0] ?? {}, keySets.trade, 'trade')
  for (const asset of ['asset_type=COLLATERAL', `asset_type=CONDITIONAL&token_id=${yes}`])
    for (const path of ['/balance-allowance', '/balance-allowance/update']) {
      const balance = await asOwner<object>('GET', `${path}?${asset}&signature_type=0`)
      assertWhole(clob.BalanceAllowanceResponseSchema, balance, path)
      assertKeys(balance, keySets.balance, path)
    }
  const ended = await asOwner('DELETE', '/order', { orderID: resting.orderID })
  assertWhole(clob.CancelOrdersResponseSchema, ended, 'cancel')
  for (const path of ['/cancel-all', '/cancel-market-orders'])
    assertWhole(clob.CancelOrdersResponseSchema, await asOwner('DELETE', path, { asset_id: yes }), path)
  const many = Array.from({ length: 1_001 }, (_, at) => `0x${at.toString(16).padStart(64, '0')}`)
  const { canceled, not_canceled: others } = await asOwner<{ canceled: string[]; not_canceled: object }>(
    'DELETE',
    '/orders',
    many.slice(1),
  )
  assert.deepEqual([canceled.length, Object.keys(others).length], [0, 1_000])
  assertKeys(await asOwner('DELETE', '/orders', many), ['error'], 'too many cancels')
  const news = await asOwner<{ id: number; type: number }[]>('GET', '/notifications')
  assertWhole(clob.NotificationsResponseSchema, news, 'notifications')
  assert.deepEqual([...new Set(news.map(({ type }) => type))].sort(), [1, 2])
  assert.equal(await asOwner('DELETE', `/notifications?ids=${news.map(({ id }) => id).join()}`), 'OK')
  assert.deepEqual(await asOwner('GET', '/notifications'), [])
  assertKeys(await asOwner('GET', '/v1/user/rate-limit-tier'), ['tier'], 'tier')
  assertKeys(await asOwner('DELETE', `/data/orders`), ['error'], 'a method that is not served')
})

test('the Data API: positions open and closed, activity, trades, value and interest', async () => {
  const { data: at } = urls
  const { client } = await connect()
  const market = await marketBySlug(urls, slug)
  await client.createAndPostOrder({ tokenID: market.yes, price: 0.61, size: 10, side: Side.SELL })
  const other = await marketBySlug(urls, 'bitcoin-reaches-250k-this-year')
  await client.createAndPostOrder({ tokenID: other.yes, price: 0.99, size: 10, side: Side.BUY })
  const of = `user=${address}`
  const closed = await eventually('the closed position', async () => {
    const rows = await readJson<object[]>(`${at}/closed-positions?${of}`)
    const open = await readJson<object[]>(`${at}/positions?${of}`)
    return rows.length === 1 && open.length === 1 ? rows : undefined
  })
  assertWhole(data.ListClosedPositionsResponseSchema, closed, 'closed positions')
  const open = await readJson<object[]>(`${at}/positions?${of}`)
  assertWhole(data.ListPositionsResponseSchema, open, 'positions')
  assertKeys(open[0] ?? {}, keySets.positionV1, 'position')
  const activity = await readJson<{ type: string }[]>(`${at}/activity?${of}`)
  assertWhole(data.ListActivityResponseSchema, activity, 'activity')
  assert.ok(activity.length >= 3 && activity.every(({ type }) => type === 'TRADE'), 'deposits are hidden')
  const moves = await readJson<{ type: string }[]>(`${at}/activity?${of}&excludeDepositsWithdrawals=false`)
  assert.ok(moves.some(({ type }) => type === 'DEPOSIT'))
  assertWhole(data.ListTradesResponseSchema, await readJson(`${at}/trades?${of}`), 'trades')
  assertWhole(data.FetchPortfolioValueResponseSchema, await readJson(`${at}/value?${of}`), 'value')
  const interest = await readJson<{ value: number }[]>(`${at}/oi?market=${other.conditionId}`)
  assertWhole(data.ListOpenInterestResponseSchema, interest, 'open interest')
  assert.ok(interest[0]!.value > 0)
  const past = await fetch(`${at}/activity?${of}&offset=10001`)
  assert.equal(past.status, 400)
  assert.match(await past.text(), /offset of 10000 exceeded/)
  const lists = [
    [`positions?${of}`, keySets.positionV2],
    [`positions?${of}&status=CLOSED`, keySets.positionV2],
    [`activity?${of}`, keySets.activityV2],
    [`trades?${of}`, keySets.tradeV2],
  ] as const
  for (const [path, keys] of lists) {
    const page = await readJson<{ data: object[]; pagination: object }>(`${at}/v2/${path}`)
    assertKeys(page.data[0] ?? {}, keys, path)
    assertKeys(page.pagination, keySets.paginationV2, path)
  }
  const { data: ended } = await readJson<{ data: { percent_realized_pnl: number; realized_pnl: number }[] }>(
    `${at}/v2/positions?${of}&status=CLOSED`,
  )
  assert.equal(Math.sign(ended[0]!.percent_realized_pnl), Math.sign(ended[0]!.realized_pnl))
  assert.ok(ended[0]!.percent_realized_pnl > -50)
  const value = await readJson<{ data: object }>(`${at}/v2/value?${of}`)
  assertKeys(value.data, ['proxy_wallet', 'value'], 'value of v2')
  const first = await readJson<{ data: object[]; pagination: { next_cursor: string } }>(
    `${at}/v2/activity?${of}&limit=2`,
  )
  const rest = `${at}/v2/activity?${of}&cursor=${first.pagination.next_cursor}`
  const second = await readJson<{ data: object[] }>(rest)
  assert.deepEqual([...first.data, ...second.data].slice(0, 3).length, 3)
  assert.notDeepEqual(first.data[0], second.data[0])
  const foreign = await fetch(`${at}/v2/trades?${of}&cursor=${first.pagination.next_cursor}`)
  assert.equal(foreign.status, 400)
  await venue.control('POST', '/resolve', { market: other.slug, outcome: 'void' })
  const { data: results } = await readJson<{ data: object[] }>(
    `${at}/v2/resolutions?condition=${other.conditionId}`,
  )
  assertKeys(results[0] ?? {}, keySets.resolution, 'resolution')
})

test('Gamma: markets, events, tags and search', async () => {
  const { gamma: at } = urls
  const { id } = await marketBySlug(urls, slug)
  const markets = await readJson<Record<string, unknown>[]>(`${at}/markets?limit=3`)
  assertWhole(gamma.ListMarketsResponseSchema, markets, 'markets', keySets.otherMarketFields('[]'))
  const page = await readJson<object>(`${at}/markets/keyset?limit=3`)
  assertWhole(gamma.ListMarketsKeysetResponseSchema, page, 'page', keySets.otherMarketFields('.markets[]'))
  for (const path of [`markets/${id}`, `markets/slug/${slug}`])
    assertWhole(gamma.GammaMarketSchema, await readJson(`${at}/${path}`), path, keySets.otherMarketFields(''))
  const events = await readJson<{ id: string; slug: string }[]>(`${at}/events?limit=3`)
  assertWhole(gamma.ListEventsResponseSchema, events, 'events', keySets.otherEventFields('[]'))
  const keyset = await readJson<object>(`${at}/events/keyset?limit=2`)
  assertWhole(gamma.ListEventsKeysetResponseSchema, keyset, 'page', keySets.otherEventFields('.events[]'))
  const [event] = events
  for (const path of [`events/${event?.id}`, `events/slug/${event?.slug}`])
    assertWhole(gamma.GammaEventSchema, await readJson(`${at}/${path}`), path, keySets.otherEventFields(''))
  const tags = await readJson<{ id: string; slug: string }[]>(`${at}/tags`)
  const besides = new Set(['.templates'])
  for (const path of [`tags/${tags[0]?.id}`, `tags/slug/${tags[0]?.slug}`])
    assertWhole(gamma.TagSchema, await readJson(`${at}/${path}`), path, besides)
  for (const path of [`events/${event?.id}/tags`, `markets/${id}/tags`])
    assertWhole(gamma.FetchEventTagsResponseSchema, await readJson(`${at}/${path}`), path)
  const found = await readJson<object>(`${at}/public-search?q=fed`)
  assertWhole(gamma.PublicSearchResponseSchema, found, 'search', keySets.otherEventFields('.events[]'))
  const { markets: most } = await readJson<{ markets: object[] }>(`${at}/markets/keyset?limit=100`)
  assert.equal(most.length, 11, 'a closed market is not listed')
})

test('access and the bridge', async () => {
  assertKeys(
    await readJson(`${urls.geoblock}/api/geoblock`),
    ['blocked', 'country', 'ip', 'region'],
    'access',
  )
  const { supportedAssets } = await readJson<{ supportedAssets: object[] }>(`${urls.bridge}/supported-assets`)
  for (const asset of supportedAssets) assertKeys(asset, keySets.bridgeAsset, 'asset')
  const deposit = await post(`${urls.bridge}/deposit`, { address })
  assertKeys(deposit as object, ['address', 'note', 'warnings'], 'deposit')
  assertKeys((deposit as { address: object }).address, ['btc', 'evm', 'svm'], 'addresses')
  const bad = await readJson(`${urls.bridge}/deposit`, {
    method: 'POST',
    headers: { 'x-builder-code': '0x1' },
    body: JSON.stringify({ address }),
  })
  assert.deepEqual(bad, { error: 'malformed X-Builder-Code' })
  const route = {
    fromAmountBaseUnit: '10000000',
    fromChainId: '8453',
    fromTokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    recipientAddress: address,
    toChainId: '137',
    toTokenAddress: '0xC011a7E12a19f7B1f670d46F03B03f3342E82DFB',
  }
  const quote = (await post(`${urls.bridge}/quote`, route)) as { estFeeBreakdown: object }
  assertKeys(quote, keySets.bridgeQuote, 'quote')
  assertKeys(quote.estFeeBreakdown, keySets.bridgeFees, 'fees')
  assert.deepEqual(await post(`${urls.bridge}/quote`, { ...route, fromChainId: '10' }), {
    error: 'unsupported chain or token',
  })
  assert.deepEqual(await readJson(`${urls.bridge}/status/${address}`), { transactions: [], nextCursor: null })
})
