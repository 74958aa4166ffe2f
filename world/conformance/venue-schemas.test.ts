import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import WebSocket from 'ws'
import { populateVenue } from './venue/populated-venue.ts'
import { schemaErrors } from './venue/schemas.ts'
import { postRaw, type Trader } from './venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue
let busy: Trader
let ruined: Trader

before(async () => {
  venue = await startVenue(['--tick-ms', '250'])
  const traders = await populateVenue(venue)
  busy = traders.busy
  ruined = traders.ruined
})
after(() => venue?.close())

const general = [
  { type: 'meta' },
  { type: 'allPerpMetas' },
  { type: 'metaAndAssetCtxs' },
  { type: 'spotMeta' },
  { type: 'spotMetaAndAssetCtxs' },
  { type: 'perpDexs' },
  { type: 'perpCategories' },
  { type: 'perpConciseAnnotations' },
  { type: 'marginTable', id: 51 },
  { type: 'allMids' },
  { type: 'l2Book', coin: 'BTC' },
  { type: 'l2Book', coin: '@1', nSigFigs: 3 },
  { type: 'l2Book', coin: 'BTC', nSigFigs: 5, mantissa: 2 },
  { type: 'l2Book', coin: 'NOBODY' },
  { type: 'recentTrades', coin: 'BTC' },
  { type: 'candleSnapshot', req: { coin: 'BTC', interval: '1h', startTime: 0 } },
  { type: 'candleSnapshot', req: { coin: 'PURR/USDC', interval: '1M', startTime: 0 } },
  { type: 'exchangeStatus' },
  { type: 'predictedFundings' },
  { type: 'fundingHistory', coin: 'BTC', startTime: 0 },
  { type: 'perpsAtOpenInterestCap' },
  { type: 'maxMarketOrderNtls' },
  { type: 'tokenDetails', tokenId: '0xc1fb593aeffbeb02f85e0308e9956a90' },
  { type: 'vaultSummaries' },
  { type: 'liquidatable' },
]

const personal = [
  'clearinghouseState',
  'spotClearinghouseState',
  'userFees',
  'userRateLimit',
  'userRole',
  'extraAgents',
  'userAbstraction',
  'userDexAbstraction',
  'portfolio',
  'referral',
  'webData2',
  'openOrders',
  'frontendOpenOrders',
  'historicalOrders',
  'userFills',
  'approvedBuilders',
  'legalCheck',
  'delegatorSummary',
  'subAccounts',
  'subAccounts2',
  'isVip',
  'userToMultiSigSigners',
  'userVaultEquities',
  'leadingVaults',
  'delegations',
  'delegatorHistory',
  'delegatorRewards',
  'twapHistory',
  'userTwapSliceFills',
]

const timed = ['userFillsByTime', 'userFunding', 'userNonFundingLedgerUpdates', 'userTwapSliceFillsByTime']

const typeName = (type: string, ending: string): string =>
  `${type[0]?.toUpperCase()}${type.slice(1)}${ending}`

const answer = async (body: { type: string }): Promise<unknown> => {
  const { status, text } = await postRaw(venue, body)
  assert.equal(status, 200, `${JSON.stringify(body)}: ${text}`)
  return JSON.parse(text)
}

test('every general answer matches the published types', async () => {
  for (const body of general)
    assert.deepEqual(
      schemaErrors(typeName(body.type, 'Response'), await answer(body)),
      [],
      JSON.stringify(body),
    )
})

test('every answer about an account matches the published types', async () => {
  const bodies = [busy.user, ruined.user, `0x${'12'.repeat(20)}`].flatMap((user) => [
    ...personal.map((type) => ({ type, user })),
    ...timed.map((type) => ({ type, user, startTime: 0 })),
    { type: 'activeAssetData', user, coin: 'ETH' },
    { type: 'maxBuilderFee', user, builder: ruined.user },
    { type: 'preTransferCheck', user, source: busy.user },
  ])
  for (const body of bodies)
    assert.deepEqual(
      schemaErrors(typeName(body.type, 'Response'), await answer(body)),
      [],
      JSON.stringify(body),
    )
})

test('the accounts have every kind of record', async () => {
  const fills = (await answer({ type: 'userFills', user: ruined.user } as { type: string })) as {
    liquidation?: { method: string }
  }[]
  assert.ok(fills.some(({ liquidation }) => liquidation?.method === 'market'))
  const ledger = (await Promise.all(
    [busy.user, ruined.user].map((user) =>
      answer({ type: 'userNonFundingLedgerUpdates', user, startTime: 0 } as { type: string }),
    ),
  )) as { delta: { type: string } }[][]
  const kinds = new Set(ledger.flat().map(({ delta }) => delta.type))
  for (const kind of [
    'deposit',
    'withdraw',
    'accountClassTransfer',
    'internalTransfer',
    'spotTransfer',
    'liquidation',
  ])
    assert.ok(kinds.has(kind), `no ${kind}`)
  const orders = (await answer({ type: 'frontendOpenOrders', user: busy.user } as { type: string })) as {
    children: unknown[]
    isPositionTpsl: boolean
  }[]
  assert.ok(orders.some(({ children }) => children.length > 0))
  assert.ok(orders.some(({ isPositionTpsl }) => isPositionTpsl))
})

test('the status of every order matches the published type', async () => {
  const history = (await answer({ type: 'historicalOrders', user: busy.user } as { type: string })) as {
    order: { oid: number; cloid: string | null }
  }[]
  assert.ok(history.length >= 8)
  for (const oid of [
    ...history.map(({ order }) => order.oid),
    history.find(({ order }) => order.cloid)?.order.cloid,
    1,
  ]) {
    const reply = await answer({ type: 'orderStatus', user: busy.user, oid } as { type: string })
    assert.deepEqual(schemaErrors('OrderStatusResponse', reply), [])
  }
})

test('unknown requests and malformed bodies are rejected with 422', async () => {
  const bodies = [
    { type: 'somethingNew' },
    { type: 'toString' },
    {},
    [],
    'null',
    '{',
    { type: 'clearinghouseState' },
    { type: 'clearinghouseState', user: 'me' },
    { type: 'meta', dex: 'other' },
    { type: 'l2Book', coin: 'BTC', nSigFigs: 9 },
  ]
  for (const body of bodies) assert.equal((await postRaw(venue, body)).status, 422, JSON.stringify(body))
  const { text } = await postRaw(venue, { type: 'somethingNew' })
  assert.equal(text, 'Failed to deserialize the JSON body into the target type')
  for (const body of [{ action: { type: 'unheard' }, nonce: 1, signature: {} }, {}, { action: null }])
    assert.equal((await postRaw(venue, body, 'exchange')).status, 422, JSON.stringify(body))
})

const byUser = [
  'clearinghouseState',
  'allDexsClearinghouseState',
  'spotState',
  'openOrders',
  'twapStates',
  'userHistoricalOrders',
  'userFills',
  'userFundings',
  'userNonFundingLedgerUpdates',
  'userTwapHistory',
  'userTwapSliceFills',
  'webData3',
  'orderUpdates',
  'userEvents',
  'notification',
]

const subscriptions = (user: string) => [
  { type: 'allMids' },
  { type: 'l2Book', coin: 'BTC' },
  { type: 'bbo', coin: 'BTC' },
  { type: 'trades', coin: 'BTC' },
  { type: 'candle', coin: 'BTC', interval: '1m' },
  { type: 'activeAssetCtx', coin: 'BTC' },
  { type: 'activeAssetCtx', coin: 'PURR/USDC' },
  { type: 'assetCtxs' },
  { type: 'allDexsAssetCtxs' },
  { type: 'spotAssetCtxs' },
  { type: 'activeAssetData', coin: 'BTC', user },
  ...byUser.map((type) => ({ type, user })),
]

/** The type of a channel; some names differ. */
const eventOf = (channel: string): string =>
  channel === 'user' ? 'UserEventsEvent' : typeName(channel, 'Event')

test('every message of every subscription matches the published types', async () => {
  const socket = new WebSocket(venue.wsUrl)
  const seen: { channel: string; data: unknown }[] = []
  socket.on('message', (data) => seen.push(JSON.parse(String(data))))
  await new Promise((resolve) => socket.once('open', resolve))
  const wanted = subscriptions(busy.user)
  for (const subscription of wanted) socket.send(JSON.stringify({ method: 'subscribe', subscription }))
  await eventually('all confirmations', () =>
    seen.filter(({ channel }) => channel === 'subscriptionResponse').length === wanted.length
      ? true
      : undefined,
  )
  await busy.exchange.order({
    orders: [{ a: 0, b: true, p: '101000', s: '0.02', r: false, t: { limit: { tif: 'Ioc' } } }],
    grouping: 'na',
  })
  await busy.exchange.usdClassTransfer({ amount: '1', toPerp: true })
  await venue.control('POST', '/funding')
  await venue.control('POST', '/price', { coin: 'ETH', price: 2_400 })
  const channels = [...new Set(wanted.map(({ type }) => (type === 'userEvents' ? 'user' : type)))]
  await eventually('a message on every channel', () => {
    const silentChannels = channels.filter(
      (wantedChannel) => !seen.some(({ channel }) => channel === wantedChannel),
    )
    return silentChannels.length === 0 ? true : undefined
  })
  socket.close()
  for (const { channel, data } of seen) {
    assert.notEqual(channel, 'error', JSON.stringify(data))
    if (channel !== 'subscriptionResponse')
      assert.deepEqual(schemaErrors(eventOf(channel), data), [], channel)
  }
})

test('the socket answers as upstream: pong, posts, repeated and unknown subscriptions', async () => {
  const socket = new WebSocket(venue.wsUrl)
  const seen: { channel: string; data?: unknown }[] = []
  socket.on('message', (data) => seen.push(JSON.parse(String(data))))
  await new Promise((resolve) => socket.once('open', resolve))
  const send = (frame: unknown) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  send({ method: 'ping' })
  send({ method: 'subscribe', subscription: { type: 'trades', coin: 'ETH' } })
  send({ method: 'subscribe', subscription: { coin: 'ETH', type: 'trades' } })
  send({ method: 'unsubscribe', subscription: { type: 'trades', coin: 'ETH' } })
  send({ method: 'unsubscribe', subscription: { type: 'trades', coin: 'ETH' } })
  send({ method: 'subscribe', subscription: { type: 'trades', coin: 'NOBODY' } })
  send({ method: 'post', id: 9, request: { type: 'info', payload: { type: 'allMids' } } })
  send({ method: 'post', id: 10, request: { type: 'info', payload: { type: 'nonsense' } } })
  send('not json')
  await eventually('the last answer', () =>
    seen.filter(({ channel }) => channel === 'error').length === 4 ? true : undefined,
  )
  socket.close()
  const errors = seen.filter(({ channel }) => channel === 'error').map(({ data }) => String(data))
  assert.ok(errors[0]?.startsWith('Already subscribed: {'))
  assert.ok(errors[1]?.startsWith('Already unsubscribed: {'))
  assert.ok(errors[2]?.startsWith('Invalid subscription {'))
  assert.ok(errors[3]?.startsWith('Error parsing JSON into valid websocket request'))
  assert.ok(seen.some(({ channel }) => channel === 'pong'))
  const posts = seen
    .filter(({ channel }) => channel === 'post')
    .map(({ data }) => data as { id: number; response: { type: string } })
  assert.deepEqual(
    posts.map(({ id, response }) => [id, response.type]),
    [
      [9, 'info'],
      [10, 'error'],
    ],
  )
})
