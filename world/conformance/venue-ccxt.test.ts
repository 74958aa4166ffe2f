import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import ccxt from 'ccxt'
import { accountOf, keyOf, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue

const options = () => ({
  urls: { api: { public: venue.url, private: venue.url, ws: { public: venue.wsUrl } } },
  enableRateLimit: false,
  options: { builderFee: false, refSet: true, fetchMarkets: { types: ['spot', 'swap'] } },
})

const clientAt = async (number: number, usd = '10000') => {
  const user = accountOf(number).address.toLowerCase()
  await venue.control('POST', '/credit', { user, amount: usd })
  const client = new ccxt.hyperliquid({ ...options(), walletAddress: user, privateKey: keyOf(number) })
  await client.loadMarkets()
  return client
}

const idOf = ({ id }: { id?: string | undefined }): string => id ?? assert.fail('an order without an id')

const btc = 'BTC/USDC:USDC'
const eth = 'ETH/USDC:USDC'
const hype = 'HYPE/USDC'

before(async () => {
  venue = await startVenue(['--tick-ms', '500'])
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
  await venue.control('POST', '/price', { coin: '@1', price: 40 })
})
after(() => venue?.close())

test('markets of both kinds are read with their precision and limits', async () => {
  const client = await clientAt(101)
  const perp = client.market(btc)
  assert.equal(perp.baseId, '0')
  assert.equal(perp.precision.amount, 0.00001)
  assert.equal(perp.limits.leverage?.max, 40)
  assert.equal(client.market(hype).baseId, '10001')
  assert.equal(client.market('BTC/USDC').base, 'BTC')
  const ticker = await client.fetchTicker(btc)
  assert.equal(Number(ticker.info.markPx), 100_000)
  const book = await client.fetchOrderBook(btc)
  assert.ok((book.bids[0]?.[0] ?? 0) < (book.asks[0]?.[0] ?? 0))
  const candles = await client.fetchOHLCV(btc, '1h', undefined, 50)
  assert.ok(candles.length >= 49)
  const rate = await client.fetchFundingRates([btc])
  assert.equal(typeof rate[btc]?.fundingRate, 'number')
  const history = await client.fetchFundingRateHistory(btc, 1)
  assert.ok(Array.isArray(history))
  const status = await client.fetchStatus()
  assert.equal(status.status, 'ok')
})

test('a limit order rests, is found, edited and cancelled', async () => {
  const client = await clientAt(102)
  const order = await client.createOrder(btc, 'limit', 'buy', 0.01, 90_000)
  const open = await client.fetchOpenOrders(btc)
  assert.deepEqual(
    open.map(({ id }) => id),
    [order.id],
  )
  const edited = await client.editOrder(idOf(order), btc, 'limit', 'buy', 0.02, 91_000)
  const moved = await client.fetchOrder(idOf(edited), btc)
  assert.equal(moved.price, 91_000)
  assert.equal(moved.amount, 0.02)
  await client.cancelOrder(idOf(edited), btc)
  assert.equal((await client.fetchOrder(idOf(edited), btc)).status, 'canceled')
  await assert.rejects(client.cancelOrder(idOf(edited), btc), ccxt.OrderNotFound)
  await assert.rejects(client.fetchOrder('42', btc), ccxt.OrderNotFound)
})

test('a market order opens a position that is reported and closed', async () => {
  const client = await clientAt(103)
  await client.setLeverage(5, btc, { marginMode: 'cross' })
  const order = await client.createOrder(btc, 'market', 'buy', 0.05, 100_000)
  assert.equal((await client.fetchOrder(idOf(order), btc)).status, 'closed')
  const [position] = await client.fetchPositions([btc])
  assert.equal(position?.contracts, 0.05)
  assert.equal(position?.side, 'long')
  assert.equal(position?.leverage, 5)
  await client.createOrder(btc, 'market', 'sell', 0.05, 100_000, { reduceOnly: true })
  assert.deepEqual(await client.fetchPositions([btc]), [])
  const trades = await client.fetchMyTrades(btc)
  assert.deepEqual(
    trades.map(({ side }) => side),
    ['buy', 'sell'],
  )
  assert.ok((trades[0]?.fee?.cost ?? 0) > 0)
})

test('an order with stop loss and take profit is closed by its stop', async () => {
  const client = await clientAt(104)
  const orders = await client.createOrders([
    {
      symbol: eth,
      type: 'market',
      side: 'buy',
      amount: 1,
      price: 3_000,
      params: {
        stopLoss: { triggerPrice: 2_800, type: 'market', price: 2_600 },
        takeProfit: { triggerPrice: 3_300, type: 'limit', price: 3_300 },
      },
    },
  ])
  assert.equal(orders.length, 3)
  const waiting = await client.fetchOpenOrders(eth)
  assert.deepEqual(waiting.map(({ triggerPrice }) => triggerPrice).sort(), [2_800, 3_300])
  await venue.control('POST', '/price', { coin: 'ETH', price: 2_790 })
  assert.deepEqual(await client.fetchPositions([eth]), [])
  assert.deepEqual(await client.fetchOpenOrders(eth), [])
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
})

test('a single stop is answered with its id, fetched, and cancelled', async () => {
  const client = await clientAt(111)
  await client.createOrder(eth, 'market', 'buy', 1, 3_000)
  const params = { stopLossPrice: 2_800, reduceOnly: true }
  const id = idOf(await client.createOrder(eth, 'market', 'sell', 1, 2_800, params))
  const found = await client.fetchOrder(id, eth)
  assert.deepEqual([found.id, found.status, found.triggerPrice], [id, 'open', 2_800])
  await client.cancelOrder(id, eth)
  assert.deepEqual(await client.fetchOpenOrders(eth), [])
})

test('client order ids find, cancel and name an order', async () => {
  const client = await clientAt(105)
  const clientOrderId = `0x${'5a'.repeat(16)}`
  await client.createOrder(btc, 'limit', 'sell', 0.01, 120_000, { clientOrderId })
  assert.equal((await client.fetchOrder('', btc, { clientOrderId })).clientOrderId, clientOrderId)
  await client.cancelOrder('', btc, { clientOrderId })
  assert.deepEqual(await client.fetchOpenOrders(btc), [])
  const cancelled = await client.fetchCanceledOrders(btc)
  assert.equal(cancelled[0]?.clientOrderId, clientOrderId)
})

test('spot is bought and sold with money transferred from the perpetual side', async () => {
  const client = await clientAt(106)
  await client.transfer('USDC', 1_000, 'swap', 'spot')
  await client.createOrder(hype, 'limit', 'buy', 10, 41)
  const balance = await client.fetchBalance({ type: 'spot' })
  assert.ok(Math.abs(Number(balance.HYPE?.total) - 9.993) < 1e-9)
  await client.createOrder(hype, 'market', 'sell', 9.99, 40)
  await client.transfer('USDC', 100, 'spot', 'swap')
  const perp = await client.fetchBalance({ type: 'swap' })
  assert.equal(perp.USDC?.total, 9_100)
})

test('errors become the error classes of the client', async () => {
  const client = await clientAt(107, '100')
  await assert.rejects(client.createOrder(btc, 'limit', 'buy', 5, 99_000), ccxt.InsufficientFunds)
  await assert.rejects(client.createOrder(btc, 'limit', 'buy', 0.00001, 90_000), ccxt.InvalidOrder)
  await assert.rejects(
    client.createOrder(btc, 'limit', 'buy', 0.01, 90_000, { reduceOnly: true }),
    ccxt.InvalidOrder,
  )
  await assert.rejects(
    client.createOrder(btc, 'limit', 'buy', 0.001, 101_000, { postOnly: true }),
    ccxt.InvalidOrder,
  )
  await assert.rejects(
    client.withdraw('USDC', 5_000, accountOf(107).address.toLowerCase()),
    ccxt.InsufficientFunds,
  )
})

test('withdrawals, deposits and funding payments are listed', async () => {
  const client = await clientAt(108)
  await client.createOrder(btc, 'market', 'sell', 0.1, 100_000)
  await venue.control('POST', '/funding')
  await client.withdraw('USDC', 25, accountOf(108).address.toLowerCase())
  const [withdrawal] = await client.fetchWithdrawals()
  assert.equal(withdrawal?.amount, 24)
  const [deposit] = await client.fetchDeposits()
  assert.equal(deposit?.amount, 10_000)
  const paid = await client.fetchFundingHistory(btc)
  assert.equal(paid.length, 1)
  const ledger = await client.fetchLedger()
  assert.ok(ledger.length >= 2)
  const fee = await client.fetchTradingFee(btc)
  assert.equal(fee.taker, 0.00045)
  const interest = await client.fetchOpenInterests([btc])
  assert.ok(Number(interest[btc]?.openInterestAmount) > 0)
})

test('isolated margin is added through the client', async () => {
  const client = await clientAt(109)
  await client.setMarginMode('isolated', eth, { leverage: 3 })
  await client.createOrder(eth, 'market', 'buy', 1, 3_000)
  const [before] = await client.fetchPositions([eth])
  assert.equal(before?.marginMode, 'isolated')
  await client.addMargin(eth, 100)
  const [after] = await client.fetchPositions([eth])
  assert.ok(Math.abs((after?.collateral ?? 0) - (before?.collateral ?? 0) - 100) < 0.01)
})

test('the streaming client receives the book, trades and its own orders', async () => {
  const user = accountOf(110).address.toLowerCase()
  await venue.control('POST', '/credit', { user, amount: '10000' })
  const client = new ccxt.pro.hyperliquid({ ...options(), walletAddress: user, privateKey: keyOf(110) })
  try {
    await client.loadHttpProxyAgent()
    await client.loadMarkets()
    const book = await client.watchOrderBook(btc)
    assert.ok(book.bids.length > 5)
    const ticker = await client.watchTicker(btc)
    assert.ok((ticker.last ?? 0) > 0)
    const orders = client.watchOrders()
    const trades = client.watchMyTrades()
    await client.createOrder(btc, 'market', 'buy', 0.01, 100_000)
    assert.equal((await orders)[0]?.symbol, btc)
    assert.equal((await trades)[0]?.amount, 0.01)
    const tape = await client.watchTrades(btc)
    assert.ok(tape.length > 0)
    const placed = await client.createOrderWs(btc, 'limit', 'buy', 0.01, 90_000)
    await client.cancelOrderWs(idOf(placed), btc)
    assert.deepEqual(await client.fetchOpenOrders(btc), [])
  } finally {
    await client.close()
  }
})
