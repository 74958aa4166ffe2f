import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BASE_URLS, Hyperliquid, WSS_URLS } from 'hyperliquid'
import { accountOf, eventually, keyOf, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue

before(async () => {
  venue = await startVenue(['--tick-ms', '500'])
  BASE_URLS.PRODUCTION = venue.url
  WSS_URLS.PRODUCTION = venue.wsUrl
  // The package writes every request and frame to the console.
  for (const name of ['log', 'warn'] as const) console[name] = () => {}
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
  await venue.control('POST', '/price', { coin: 'PURR/USDC', price: 0.2 })
})
after(() => venue?.close())

const clientAt = async (number: number, enableWs = false) => {
  const walletAddress = accountOf(number).address.toLowerCase()
  await venue.control('POST', '/credit', { user: walletAddress, amount: '10000' })
  const client = new Hyperliquid({
    enableWs,
    privateKey: keyOf(number),
    walletAddress,
    disableAssetMapRefresh: true,
  })
  await client.connect()
  return { client, user: walletAddress }
}

type Statuses = {
  status: string
  response: { data: { statuses: Record<string, { oid: number; totalSz: string }>[] } }
}

const statusesOf = (reply: unknown) => {
  const { status, response } = reply as Statuses
  assert.equal(status, 'ok', JSON.stringify(reply))
  return response.data.statuses
}

test('markets and prices are read', async () => {
  const { client } = await clientAt(201)
  const { perp, spot } = await client.custom.getAllAssets()
  assert.ok(perp.includes('BTC-PERP') && spot.includes('PURR-SPOT'))
  const mids = await client.info.getAllMids()
  assert.ok(Math.abs(Number(mids['BTC-PERP']) - 100_000) < 100)
  const book = await client.info.getL2Book('ETH-PERP')
  assert.equal(book.levels.length, 2)
  const candles = await client.info.getCandleSnapshot('BTC-PERP', '1h', 0, Date.now())
  assert.ok(candles.length > 100)
  const [meta] = await client.info.perpetuals.getMetaAndAssetCtxs()
  assert.equal(meta.universe[0]?.name, 'BTC-PERP')
  assert.ok((await client.info.spot.getSpotMeta()).universe.length >= 4)
})

test('orders are placed, modified and cancelled', async () => {
  const { client, user } = await clientAt(202)
  const order = {
    coin: 'BTC-PERP',
    is_buy: true,
    sz: 0.01,
    limit_px: 90_000,
    order_type: { limit: { tif: 'Gtc' as const } },
    reduce_only: false,
  }
  const [placed] = statusesOf(await client.exchange.placeOrder(order))
  const oid = placed?.resting?.oid ?? 0
  const modified = await client.exchange.modifyOrder(oid, { ...order, limit_px: '91000.0' })
  assert.equal((modified as { status: string }).status, 'ok')
  const [open] = await client.info.getUserOpenOrders(user)
  assert.equal(Number(open?.limitPx), 91_000)
  await client.exchange.cancelOrder({ coin: 'BTC-PERP', o: open?.oid ?? 0 })
  assert.deepEqual(await client.info.getUserOpenOrders(user), [])
  const cloid = `0x${'77'.repeat(16)}`
  await client.exchange.placeOrder({ ...order, cloid })
  await client.exchange.cancelOrderByCloid('BTC-PERP', cloid)
  const status = (await client.info.getOrderStatus(user, cloid)) as unknown as { order: { status: string } }
  assert.equal(status.order.status, 'canceled')
})

test('market orders open and close a position', async () => {
  const { client, user } = await clientAt(203)
  await client.exchange.updateLeverage('ETH-PERP', 'cross', 5)
  const [opened] = statusesOf(await client.custom.marketOpen('ETH-PERP', true, 1, 3_000))
  assert.equal(opened?.filled?.totalSz, '1.0')
  const state = await client.info.perpetuals.getClearinghouseState(user)
  assert.equal(Number(state.assetPositions[0]?.position.szi), 1)
  statusesOf(await client.custom.marketClose('ETH-PERP', undefined, 3_000))
  const after = await client.info.perpetuals.getClearinghouseState(user)
  assert.deepEqual(after.assetPositions, [])
  const fills = await client.info.getUserFills(user)
  assert.deepEqual(
    fills.map(({ dir }) => dir),
    ['Close Long', 'Open Long'],
  )
})

test('a bracket is placed in one request and closed by its take profit', async () => {
  const { client, user } = await clientAt(204)
  const leg = { coin: 'ETH-PERP', is_buy: false, sz: 0.5, reduce_only: true }
  const reply = await client.exchange.placeOrder({
    orders: [
      {
        coin: 'ETH-PERP',
        is_buy: true,
        sz: 0.5,
        limit_px: 3_050,
        order_type: { limit: { tif: 'Ioc' } },
        reduce_only: false,
      },
      { ...leg, limit_px: 3_100, order_type: { trigger: { isMarket: true, triggerPx: 3_200, tpsl: 'tp' } } },
      { ...leg, limit_px: 2_500, order_type: { trigger: { isMarket: true, triggerPx: 2_800, tpsl: 'sl' } } },
    ],
    grouping: 'normalTpsl',
  })
  assert.deepEqual(statusesOf(reply).slice(1), ['waitingForTrigger', 'waitingForTrigger'])
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_210 })
  assert.deepEqual((await client.info.perpetuals.getClearinghouseState(user)).assetPositions, [])
  assert.deepEqual(await client.info.getFrontendOpenOrders(user), [])
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
})

test('money is transferred, spot is bought, funding is listed', async () => {
  const { client, user } = await clientAt(205)
  await client.exchange.transferBetweenSpotAndPerp(500, false)
  statusesOf(
    await client.exchange.placeOrder({
      coin: 'PURR-SPOT',
      is_buy: true,
      sz: 1_000,
      limit_px: 0.21,
      order_type: { limit: { tif: 'Ioc' } },
      reduce_only: false,
    }),
  )
  const { balances } = await client.info.spot.getSpotClearinghouseState(user)
  assert.ok(balances.some(({ coin, total }) => coin.startsWith('PURR') && Number(total) === 999.3))
  const receiver = accountOf(299).address.toLowerCase()
  await client.exchange.usdTransfer(receiver, 50)
  await client.exchange.spotTransfer(receiver, 'PURR:0xc1fb593aeffbeb02f85e0308e9956a90', '5')
  const withdrawn = (await client.exchange.initiateWithdrawal(user, 20)) as { status: string }
  assert.equal(withdrawn.status, 'ok')
  statusesOf(await client.custom.marketOpen('BTC-PERP', false, 0.01, 100_000))
  await venue.control('POST', '/funding')
  const paid = await client.info.perpetuals.getUserFunding(user, 0)
  assert.equal(paid.length, 1)
  const ledger = await client.info.perpetuals.getUserNonFundingLedgerUpdates(user, 0)
  assert.deepEqual(
    (ledger as unknown as { delta: { type: string } }[]).map(({ delta }) => delta.type),
    ['deposit', 'accountClassTransfer', 'internalTransfer', 'spotTransfer', 'withdraw'],
  )
})

test('its sockets stream books, own orders and fills', async () => {
  const { client, user } = await clientAt(206, true)
  const books: unknown[] = []
  const updates: { status: string }[] = []
  const fills: unknown[] = []
  await client.subscriptions.subscribeToL2Book('BTC-PERP', (book) => books.push(book))
  await client.subscriptions.subscribeToOrderUpdates(user, (list) => {
    for (const update of list as unknown as { status: string }[]) updates.push(update)
  })
  await client.subscriptions.subscribeToUserFills(user, (message) => fills.push(message))
  statusesOf(await client.custom.marketOpen('BTC-PERP', true, 0.01, 100_000))
  await eventually(
    'book, update and fill',
    () => (books.length && updates.length && fills.length > 1) || undefined,
  )
  assert.equal(updates.at(-1)?.status, 'filled')
  client.disconnect()
})
