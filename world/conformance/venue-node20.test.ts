import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  ExchangeClient,
  HttpTransport,
  InfoClient,
  SubscriptionClient,
  WebSocketTransport,
} from '@deeeed/hyperliquid-node20'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue

before(async () => {
  venue = await startVenue(['--tick-ms', '500'])
  await venue.control('POST', '/settings', { walking: false })
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
})
after(() => venue?.close())

const clientAt = async (number: number, isTestnet = false) => {
  const wallet = accountOf(number)
  const user = wallet.address.toLowerCase() as `0x${string}`
  await venue.control('POST', '/credit', { user, amount: '10000' })
  const api = { api: venue.url, rpc: venue.url }
  const transport = new HttpTransport({ isTestnet, server: { mainnet: api, testnet: api } })
  return {
    user,
    info: new InfoClient({ transport }),
    exchange: new ExchangeClient({ wallet, transport, isTestnet }),
  }
}

const buy = (s: string, tif: 'Ioc' | 'Gtc' = 'Ioc', p = '101000') => ({
  orders: [{ a: 0, b: true, p, s, r: false, t: { limit: { tif } } }],
  grouping: 'na' as const,
})
const stop = {
  orders: [
    {
      a: 0,
      b: false,
      p: '80000',
      s: '0.01',
      r: true,
      t: { trigger: { isMarket: true, triggerPx: '95000', tpsl: 'sl' as const } },
    },
  ],
  grouping: 'na' as const,
}

test('the fork for Node 20 trades, protects, and cancels by the order id of the reply', async () => {
  const { user, info, exchange } = await clientAt(751)
  await exchange.updateLeverage({ asset: 0, isCross: true, leverage: 10 })
  const [opened] = (await exchange.order(buy('0.01'))).response.data.statuses
  assert.ok(typeof opened === 'object' && 'filled' in opened)
  const [resting] = (await exchange.order(stop)).response.data.statuses
  assert.ok(typeof resting === 'object' && 'resting' in resting, JSON.stringify(resting))
  const { oid } = resting.resting
  const status = await info.orderStatus({ user, oid })
  assert.equal(status.status === 'order' && status.order.status, 'open')
  await exchange.cancel({ cancels: [{ a: 0, o: oid }] })
  assert.deepEqual(await info.openOrders({ user }), [])
  const state = await info.clearinghouseState({ user })
  assert.equal(state.assetPositions[0]?.position.szi, '0.01')
})

test('the fork for Node 20 transfers money between the sides and withdraws', async () => {
  const { user, info, exchange } = await clientAt(752)
  await exchange.usdClassTransfer({ amount: '100', toPerp: false })
  const { balances } = await info.spotClearinghouseState({ user })
  assert.equal(balances[0]?.total, '100.0')
  await exchange.withdraw3({ destination: user, amount: '20' })
  const updates = await info.userNonFundingLedgerUpdates({ user, startTime: 0 })
  assert.deepEqual(
    updates.map(({ delta }) => delta.type),
    ['deposit', 'accountClassTransfer', 'withdraw'],
  )
})

test('the fork for Node 20 receives its orders and fills by stream', async () => {
  const { user, exchange } = await clientAt(753)
  const transport = new WebSocketTransport({ url: venue.wsUrl })
  const client = new SubscriptionClient({ transport })
  const statuses: string[] = []
  const sizes: string[] = []
  await client.orderUpdates({ user }, (updates) => {
    for (const { status } of updates) statuses.push(status)
  })
  await client.userFills({ user }, ({ fills, isSnapshot }) => {
    if (!isSnapshot) for (const { sz } of fills) sizes.push(sz)
  })
  await exchange.order(buy('0.02'))
  await eventually('the fill', () => (sizes.length > 0 ? true : undefined))
  assert.deepEqual([statuses.at(-1), sizes], ['filled', ['0.02']])
  await transport.close()
})

test('a client that signs for the test network is served at a URL that is not public', async () => {
  const { user, info, exchange } = await clientAt(754, true)
  await exchange.order(buy('0.01', 'Gtc', '90000'))
  await exchange.usdClassTransfer({ amount: '5', toPerp: false })
  assert.equal((await info.openOrders({ user })).length, 1)
})
