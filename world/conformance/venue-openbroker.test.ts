import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { HyperliquidClient, OPEN_BROKER_BUILDER_ADDRESS, parseOrderStatus } from 'openbroker'
import { servePublicUrl } from './venue/public-url.ts'
import { accountOf, keyOf, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue
let served: Disposable

before(async () => {
  venue = await startVenue(['--tick-ms', '500'])
  served = servePublicUrl(venue.url)
  await venue.control('POST', '/settings', { walking: false })
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
  await venue.control('POST', '/price', { coin: '@1', price: 40 })
})
after(async () => {
  served?.[Symbol.dispose]()
  await venue?.close()
})

const clientAt = async (number: number, usd = '10000') => {
  const walletAddress = accountOf(number).address.toLowerCase()
  await venue.control('POST', '/credit', { user: walletAddress, amount: usd })
  const client = new HyperliquidClient({
    baseUrl: 'https://api.hyperliquid.xyz',
    privateKey: keyOf(number),
    walletAddress,
    accountAddress: walletAddress,
    isApiWallet: false,
    isReadOnly: false,
    builderAddress: OPEN_BROKER_BUILDER_ADDRESS,
    builderFee: 10,
    slippageBps: 50,
    verbose: false,
  })
  const approved = await client.approveBuilderFee('0.1%')
  assert.equal(approved.status, 'ok', JSON.stringify(approved))
  return client
}

const statusesOf = (reply: { status: string; response?: unknown }) => {
  assert.equal(reply.status, 'ok', JSON.stringify(reply))
  const { data } = reply.response as { data: { statuses: unknown[] } }
  return data.statuses.map(parseOrderStatus)
}
const positionsOf = async (client: HyperliquidClient) => {
  const { assetPositions } = await client.getUserState()
  return assetPositions.map(({ position: { coin, szi } }) => [coin, szi])
}

test('openbroker reads markets, books, candles, funding and the account', async () => {
  const client = await clientAt(701)
  assert.ok(Math.abs(Number((await client.getAllMids()).BTC) - 100_000) < 100)
  assert.ok((await client.getL2Book('ETH')).spread > 0)
  const sinceMs = Date.now() - 86_400_000
  assert.ok((await client.getCandleSnapshot('BTC', '1h', sinceMs)).length > 20)
  assert.ok((await client.getFundingHistory('BTC', sinceMs)).length >= 20)
  assert.ok((await client.getPredictedFundings()).length > 5)
  assert.ok((await client.getSpotMeta()).universe.length >= 4)
  assert.deepEqual((await client.getOutcomeMeta()).outcomes, [])
  assert.equal((await client.getUserRole()).role, 'user')
  assert.equal(await client.getAccountMode(), 'standard')
})

test('openbroker opens at the market, protects by a stop with an order id, and cancels it', async () => {
  const client = await clientAt(702)
  const [opened] = statusesOf(await client.marketOrder('ETH', true, 1, 100, 5))
  assert.equal(opened?.kind, 'filled')
  const [stop] = statusesOf(await client.stopLoss('ETH', false, 1, 2_800))
  assert.ok(stop?.kind === 'resting', JSON.stringify(stop))
  const [open] = await client.getFrontendOpenOrders()
  assert.deepEqual([open?.oid, open?.isTrigger], [stop.oid, true])
  const found = await client.getOrderStatus(stop.oid)
  assert.equal(found.status, 'order')
  assert.equal((await client.cancel('ETH', stop.oid)).status, 'ok')
  assert.deepEqual(await client.getOpenOrders(), [])
  statusesOf(await client.marketOrder('ETH', false, 1, 100))
  assert.deepEqual(await positionsOf(client), [])
})

test("openbroker's pair of exits protects a position, which its stop closes", async () => {
  const client = await clientAt(703)
  statusesOf(await client.marketOrder('ETH', true, 0.5))
  statusesOf(await client.tpslPair('ETH', false, 0.5, 3_150, 2_910))
  assert.deepEqual(await positionsOf(client), [['ETH', '0.5']])
  assert.equal((await client.getFrontendOpenOrders()).length, 2)
  await venue.control('POST', '/price', { coin: 'ETH', price: 2_900 })
  assert.deepEqual(await positionsOf(client), [])
  assert.deepEqual(await client.getFrontendOpenOrders(), [])
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
})

test("openbroker's atomic bracket rests with its exits, and one cancel takes all of it", async () => {
  const client = await clientAt(704)
  const reply = await client.bracketOrder('ETH', true, 0.5, 2_900, {
    takeProfitPrice: 3_200,
    stopLossPrice: 2_700,
  })
  const statuses = statusesOf(reply)
  assert.deepEqual(
    statuses.map(({ kind }) => kind),
    ['resting', 'waiting', 'waiting'],
  )
  await client.cancelAll('ETH')
  assert.deepEqual(await client.getFrontendOpenOrders(), [])
})

test('openbroker reads an account in the unified mode', async () => {
  const client = await clientAt(705)
  await venue.control('POST', '/account-mode', { user: client.address, mode: 'unifiedAccount' })
  assert.equal(await client.isUnifiedAccount(), true)
  const { balances } = await client.getSpotBalances()
  assert.deepEqual(
    balances.map(({ coin, total }) => [coin, total]),
    [['USDC', '10000.0']],
  )
})
