import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { WebSocket } from 'ws'
import { newCloid, postRaw, type Trader, traderAt } from './venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue
let number = 900

before(async () => {
  venue = await startVenue(['--tick-ms', '100'])
  await venue.control('POST', '/settings', { walking: false })
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
})
after(() => venue?.close())
beforeEach(() => venue.control('POST', '/realism', { preset: 'quiet' }))

const setRealism = (settings: object) => venue.control('POST', '/realism', settings)
const trader = (): Promise<Trader> => {
  number += 1
  return traderAt(venue, number)
}
const buy = (c: `0x${string}`, tif: 'Ioc' | 'Gtc' = 'Ioc', p = '101000') => ({
  orders: [{ a: 0, b: true, p, s: '0.001', r: false, t: { limit: { tif } }, c } as const],
  grouping: 'na' as const,
})
const info = async <T>(body: object): Promise<T> => {
  const { status, text } = await postRaw(venue, body)
  assert.equal(status, 200, text)
  return JSON.parse(text) as T
}
/** The first answer, and how long it took until an answer satisfied the condition. */
const untilSeen = async <T>(read: () => Promise<T>, passes: (seen: T) => boolean) => {
  const from = performance.now()
  const first = await read()
  await eventually('the late answer', async () => (passes(await read()) ? true : undefined))
  return { first, ms: performance.now() - from }
}

test('an order is unknown to its status for the configured lag, and its reply is not affected', async () => {
  const { exchange, user } = await trader()
  await setRealism({ statusLag: 300 })
  const cloid = newCloid()
  const reply = await exchange.order(buy(cloid))
  assert.ok('filled' in (reply.response.data.statuses[0] as object))
  const read = () => info<{ status: string }>({ type: 'orderStatus', user, oid: cloid })
  const { first, ms } = await untilSeen(read, ({ status }) => status === 'order')
  assert.equal(first.status, 'unknownOid')
  assert.ok(ms > 200, `${ms}`)
})

test('a resting order that was filled is shown as open by a late status', async () => {
  const { exchange, user } = await trader()
  const cloid = newCloid()
  await exchange.order(buy(cloid, 'Gtc', '99000'))
  await setRealism({ statusLag: 300 })
  await venue.control('POST', '/price', { coin: 'BTC', price: 98_000 })
  type StatusReply = { order: { status: string } }
  const read = () => info<StatusReply>({ type: 'orderStatus', user, oid: cloid })
  const { first } = await untilSeen(read, ({ order }) => order.status === 'filled')
  assert.equal(first.order.status, 'open')
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
})

test('a blind status misses young orders with its probability and no older ones', async () => {
  const { exchange, user } = await trader()
  await setRealism({ seed: 5, statusBlind: { rate: 0.5, forMs: 60_000 } })
  const cloid = newCloid()
  await exchange.order(buy(cloid))
  const readStatuses = async () => {
    const statuses: string[] = []
    for (let i = 0; i < 20; i += 1)
      statuses.push((await info<{ status: string }>({ type: 'orderStatus', user, oid: cloid })).status)
    return statuses
  }
  const first = await readStatuses()
  assert.deepEqual([...new Set(first)].sort(), ['order', 'unknownOid'])
  await setRealism({ seed: 5 })
  assert.deepEqual(await readStatuses(), first, 'the same seed gives the same answers')
  await venue.control('POST', '/advance', { ms: 61_000 })
  assert.deepEqual([...new Set(await readStatuses())], ['order'])
})

test('open orders, positions, spot balances and fills each lag by their own setting', async () => {
  const { exchange, user } = await trader()
  await exchange.usdClassTransfer({ amount: '100', toPerp: false })
  await setRealism({ openOrdersLag: 400, clearinghouseLag: 400, spotLag: 400, fillsLag: 400 })
  const kinds = [
    'openOrders',
    'frontendOpenOrders',
    'clearinghouseState',
    'spotClearinghouseState',
    'userFills',
  ]
  const before = Object.fromEntries(
    await Promise.all(kinds.map(async (type) => [type, await info({ type, user })])),
  )
  await exchange.order(buy(newCloid()))
  await exchange.order(buy(newCloid(), 'Gtc', '90000'))
  await exchange.usdClassTransfer({ amount: '50', toPerp: false })
  const timeless = (seen: unknown) => JSON.stringify({ ...(seen as object), time: 0 })
  await Promise.all(
    kinds.map(async (type) => {
      const read = () => info<unknown>({ type, user })
      const { first } = await untilSeen(read, (seen) => timeless(seen) !== timeless(before[type]))
      assert.equal(timeless(first), timeless(before[type]), type)
    }),
  )
  type State = { assetPositions: unknown[] }
  assert.equal((await info<State>({ type: 'clearinghouseState', user })).assetPositions.length, 1)
})

test('past actions can be made visible at once, so that a test begins with reads that show them', async () => {
  await setRealism({ clearinghouseLag: 60_000 })
  const { user } = await trader()
  const read = async () =>
    (await info<{ withdrawable: string }>({ type: 'clearinghouseState', user })).withdrawable
  assert.equal(await read(), '0.0')
  await venue.control('POST', '/realism/catch-up')
  assert.equal(await read(), '10000.0')
})

test('a fill comes late over the stream, and foreign records come by stream and by list', async () => {
  const { exchange, user } = await trader()
  await setRealism({ fillsLag: 300, foreignRecords: true })
  const socket = new WebSocket(venue.wsUrl)
  await new Promise((resolve) => socket.once('open', resolve))
  const seen: { channel: string; data: never; atMs: number }[] = []
  socket.on('message', (data) => seen.push({ ...JSON.parse(String(data)), atMs: performance.now() }))
  for (const type of ['userFills', 'orderUpdates', 'userNonFundingLedgerUpdates'])
    socket.send(JSON.stringify({ method: 'subscribe', subscription: { type, user } }))
  const cloid = newCloid()
  await eventually('the subscriptions', () =>
    seen.filter(({ channel }) => channel === 'subscriptionResponse').length === 3 ? true : undefined,
  )
  const placed = performance.now()
  await exchange.order(buy(cloid))
  const fill = await eventually('the fill', () =>
    seen.find(({ channel, data }) =>
      channel === 'userFills' ? JSON.stringify(data).includes(cloid) : undefined,
    ),
  )
  assert.ok(fill.atMs - placed > 250)
  const ledger = await eventually('a foreign record', () =>
    seen.find(
      ({ channel, data }) =>
        channel === 'userNonFundingLedgerUpdates' &&
        !('isSnapshot' in data) &&
        JSON.stringify(data).includes('"nonce":null'),
    ),
  )
  assert.ok(ledger)
  socket.close()
  await venue.control('POST', '/advance', { ms: 10_000 })
  const list = await info<{ delta: { type: string; nonce?: null } }[]>({
    type: 'userNonFundingLedgerUpdates',
    user,
    startTime: 0,
  })
  assert.ok(list.some(({ delta }) => delta.type === 'spotTransfer' && delta.nonce === null))
  assert.ok(list.some(({ delta }) => delta.type === 'gossipPriorityBid'))
  const fills = await info<{ coin: string; cloid?: string }[]>({ type: 'userFills', user })
  assert.ok(fills.some(({ coin, cloid: id }) => coin === 'xyz:GOLD' && id === undefined))
  const history = await info<{ status: string }[]>({ type: 'historicalOrders', user })
  assert.ok(history.some(({ status }) => status === 'auctionPhaseCanceled'))
})

test('amounts have the error of a float, the same at every read', async () => {
  const { exchange, user } = await trader()
  await exchange.usdClassTransfer({ amount: '16', toPerp: false })
  await setRealism({ printedFloats: 1 })
  const read = () =>
    info<{ delta: { type: string; usdc: string } }[]>({
      type: 'userNonFundingLedgerUpdates',
      user,
      startTime: 0,
    })
  const found = (await read()).find(({ delta }) => delta.type === 'accountClassTransfer')
  assert.equal(found?.delta.usdc, '16.000000000000004')
  assert.deepEqual(await read(), await read())
})

test('an ended order can have an undocumented status word', async () => {
  const { exchange, user } = await trader()
  const cloid = newCloid()
  await exchange.order(buy(cloid, 'Gtc', '90000'))
  await setRealism({ unknownStatus: { rate: 1, word: 'internalCancel' } })
  await exchange.cancelByCloid({ cancels: [{ asset: 0, cloid }] })
  const reply = await info<{ order: { status: string } }>({ type: 'orderStatus', user, oid: cloid })
  assert.equal(reply.order.status, 'internalCancel')
})

test('orders and transfers of others change an account really', async () => {
  const { user } = await trader()
  const order = { a: 0, b: true, p: '101000', s: '0.001', r: false, t: { limit: { tif: 'Ioc' } } }
  await venue.control('POST', '/foreign/orders', { user, orders: [order] })
  await venue.control('POST', '/foreign/transfer', { user, coin: 'USDC', amount: '0.01' })
  const [fill] = await info<{ cloid?: string; sz: string }[]>({ type: 'userFills', user })
  assert.deepEqual([fill?.sz, fill?.cloid], ['0.001', undefined])
  type Spot = { balances: { coin: string; total: string }[] }
  const { balances } = await info<Spot>({ type: 'spotClearinghouseState', user })
  assert.deepEqual(
    balances.map(({ coin, total }) => [coin, total]),
    [['USDC', '0.01']],
  )
  const { conservation } = await venue.control<{ conservation: { spot: Record<string, string> } }>(
    'GET',
    '/effects?accounts=none',
  )
  assert.deepEqual([...new Set(Object.values(conservation.spot))], ['0.0'])
})

test('new accounts open in the configured mode', async () => {
  await setRealism({ accountMode: 'portfolioMargin' })
  const { user, exchange } = await trader()
  assert.equal(await info({ type: 'userAbstraction', user }), 'portfolioMargin')
  await venue.control('POST', '/account-mode', { user, mode: 'default' })
  assert.equal(await info({ type: 'userAbstraction', user }), 'default')
  await exchange.usdClassTransfer({ amount: '1', toPerp: false })
})

test('streams are dropped and reconnect', async () => {
  await setRealism({ streamDropMs: 300 })
  let closed = 0
  const sockets = Array.from({ length: 8 }, () => new WebSocket(venue.wsUrl))
  for (const socket of sockets)
    socket
      .on('error', () => {})
      .on('close', () => {
        closed += 1
      })
  await eventually('the end of the streams', () => (closed === sockets.length ? true : undefined))
})

test('the realistic preset is one setting, is printed with its seed, and enforces the weight', async () => {
  const set = await venue.control<{ seed: number; weightPerMinute: number }>('POST', '/realism', {
    preset: 'realistic',
    seed: 77,
  })
  assert.deepEqual([set.seed, set.weightPerMinute], [77, 1_200])
  assert.deepEqual(await venue.control('GET', '/realism'), set)
  const statuses = await Promise.all(
    Array.from({ length: 61 }, async () => (await postRaw(venue, { type: 'meta' })).status),
  )
  assert.deepEqual([statuses.filter((status) => status === 200).length, statuses.includes(429)], [60, true])
  await assert.rejects(venue.control('POST', '/realism', { preset: 'wild' }), /preset must be/)
  await assert.rejects(venue.control('POST', '/realism', { statusLagg: 3 }), /no setting statusLagg/)
})

test('a killed venue restarts with the realism of its options', async () => {
  const own = await startVenue(['--realism', 'realistic', '--realism-seed', '9'])
  try {
    await own.restart()
    const { seed, foreignRecords } = await own.control<{ seed: number; foreignRecords: boolean }>(
      'GET',
      '/realism',
    )
    assert.deepEqual([seed, foreignRecords], [9, true])
  } finally {
    await own.close()
  }
})
