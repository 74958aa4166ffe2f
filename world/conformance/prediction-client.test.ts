import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  createSecureClient,
  forkEnvironmentConfig,
  OrderSide,
  OrderType,
  PriceHistoryInterval,
  type SecureClient,
} from '@polymarket/client'
import { builderApiKey } from '@polymarket/client/node'
import { signerFrom } from '@polymarket/client/viem'
import { startWorld, type World } from '#world/world.ts'
import * as keySets from './prediction/key-sets.ts'
import {
  assertKeys,
  type Control,
  marketBySlug,
  openFrames,
  readJson,
  walletOf,
} from './prediction/prediction.ts'
import { eventually } from './venue/venue.ts'

/** The official client, unmodified, on the venue with its chain: deposit wallets, approvals, settlement, redemption. */

let world: World
let dataDir: string
let control: Control
let builder: { key: string; secret: string; passphrase: string }

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'prediction-'))
  world = await startWorld({ dataDir, port: 0, only: ['137', 'polymarket'] })
  control = async <T>(method: string, path: string, body?: unknown) =>
    readJson<T>(`${world.urls.control}/venues/polymarket${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  builder = await control('POST', '/builder-key', {})
})
after(async () => {
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

const closed = 'http://127.0.0.1:1'

const environment = () => {
  const { polymarket: urls, evm } = world.urls
  return forkEnvironmentConfig({
    name: 'local',
    rpc: evm['137'],
    clob: { rest: urls.clob, market: { ws: `${urls.socket}/market` }, user: { ws: `${urls.socket}/user` } },
    relayer: { rest: urls.relayer },
    gamma: { rest: urls.gamma },
    data: { rest: urls.data },
    combos: { rest: closed, ws: closed.replace('http', 'ws'), collateralReturn: { rest: closed } },
    perps: { rest: closed, ws: closed.replace('http', 'ws') },
    rtds: { ws: closed.replace('http', 'ws') },
    sports: { ws: closed.replace('http', 'ws') },
    relayerPollFrequencyMs: 50,
  })
}

type Balances = { pusd: string; shares: Record<string, string> }

const balancesOf = (wallet: string, tokens: readonly string[] = []) =>
  control<Balances>('GET', `/balances?wallet=${wallet}&tokens=${tokens.join()}`)

const codeAt = async (address: string): Promise<string> => {
  const { result } = await readJson<{ result: string }>(world.urls.evm['137'], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [address, 'latest'] }),
  })
  return result
}

/** A deposit wallet, deployed, approved and funded. */
const depositClient = async (number: number, usd = '1000'): Promise<SecureClient> => {
  const client = await createSecureClient({
    environment: environment(),
    signer: signerFrom(walletOf(number, world.urls.evm['137'])),
    apiKey: builderApiKey(builder),
  })
  await client.setupTradingApprovals()
  await control('POST', '/credit', { wallet: client.account.wallet, amount: usd })
  return client
}

const pinned = async (slug: string, price: number) => {
  await control('POST', '/price', { market: slug, price })
  return marketBySlug(world.urls.polymarket, slug)
}

const filled = async (client: SecureClient, order: Awaited<ReturnType<SecureClient['placeMarketOrder']>>) => {
  assert.ok(order.ok, JSON.stringify(order))
  const hashes = await client.waitForOrderFillSettlement(order)
  assert.ok(hashes.length > 0)
}

test('a client without a wallet gets a deposit wallet with code and approvals', async () => {
  const client = await depositClient(501)
  assert.notEqual(await codeAt(client.account.wallet), '0x')
  assert.equal((await balancesOf(client.account.wallet)).pusd, '1000')
  const backing = await control<{ isWhole: boolean }>('GET', '/backing')
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
  const held = await balancesOf(wallet, [plain.yes, group.yes])
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
  assert.equal((await balancesOf(wallet, [plain.yes])).shares[plain.yes], '60')
  const trades = await client.listAccountTrades().firstPage()
  assert.equal(trades.items.length, 3)
  assert.equal((await control<{ isWhole: boolean }>('GET', '/backing')).isWhole, true)
})

test('pairs are split and merged, and winnings are redeemed', async () => {
  const client = await depositClient(504)
  const { wallet } = client.account
  const market = await pinned('cal-autumn-wins-the-mayoral-race', 0.19)
  const plain = await pinned('bitcoin-reaches-250k-this-year', 0.045)
  for (const { conditionId, yes, no } of [plain, market]) {
    await (await client.splitPosition({ conditionId, amount: 20_000_000n })).wait()
    assert.deepEqual((await balancesOf(wallet, [yes, no])).shares, { [yes]: '20', [no]: '20' })
    await (await client.mergePositions({ conditionId, amount: 5_000_000n })).wait()
    assert.deepEqual((await balancesOf(wallet, [yes, no])).shares, { [yes]: '15', [no]: '15' })
  }
  await control('POST', '/resolve', { market: plain.slug, outcome: 'no' })
  await (await client.redeemPositions({ conditionId: plain.conditionId })).wait()
  assert.deepEqual((await balancesOf(wallet, [plain.yes, plain.no])).shares, {
    [plain.yes]: '0',
    [plain.no]: '0',
  })
  await eventually('the redemption in the data', async () => {
    const { items } = await client.listActivity().firstPage()
    return items.some(({ type }) => type === 'REDEEM') ? items : undefined
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
  const { data } = world.urls.polymarket
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
  const frames = await openFrames(world.urls.polymarket.socket, 'user', {
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
