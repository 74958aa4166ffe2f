import assert from 'node:assert/strict'
import { appendFileSync, readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SubscriptionClient, WebSocketTransport } from '@nktkas/hyperliquid'
import { nextInteger, nextRandom } from '#world/venue-core/random.ts'
import { newCloid, postRaw, type Trader, traderAt } from './venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue

before(async () => {
  venue = await startVenue(['--tick-ms', '100'])
  await venue.control('POST', '/settings', { walking: false })
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
})
after(() => venue?.close())

test('the control port of the venue rejects other host names and pages of other origins', async () => {
  const { port } = new URL(venue.controlUrl)
  const ask = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path: '/faults', headers }, (reply) => {
        reply.resume().once('end', () => resolve(reply.statusCode ?? 0))
      })
      outgoing.once('error', reject).end()
    })
  const host = `127.0.0.1:${port}`
  assert.equal(await ask({ host }), 200)
  for (const headers of [
    { host: 'attacker.example' },
    { host: `${host}.attacker.example` },
    { host, origin: 'https://attacker.example' },
    { host, origin: 'null' },
  ])
    assert.equal(await ask(headers), 403, JSON.stringify(headers))
})

type VenueRecord = {
  sequence: number
  conservation: { perp: string; spot: Record<string, string>; open: Record<string, number> }
  accounts: {
    address: string
    fills: { cloid?: string; oid: number; sz: string }[]
    orders: { cloid?: string }[]
  }[]
  orders?: { oid: number }[]
}

const readRecord = (query = ''): Promise<VenueRecord> => venue.control<VenueRecord>('GET', `/effects${query}`)

const assertConserved = ({ conservation }: VenueRecord): void => {
  assert.equal(conservation.perp, '0.0')
  assert.deepEqual([...new Set(Object.values(conservation.spot))], ['0.0'])
  assert.deepEqual([...new Set(Object.values(conservation.open))], [0])
}

const buy = (cloid: `0x${string}`, s = '0.001') => ({
  orders: [{ a: 0, b: true, p: '101000', s, r: false, t: { limit: { tif: 'Ioc' } }, c: cloid } as const],
  grouping: 'na' as const,
})

/** As a careful client: looks up the client id before it sends again. */
const placeOnce = async ({ exchange, info, user }: Trader, cloid: `0x${string}`): Promise<void> => {
  for (;;) {
    try {
      await exchange.order(buy(cloid))
      return
    } catch {
      // The reply is not reliable now; only the venue's record is.
      const reply = await eventually('the order status', () =>
        info.orderStatus({ user, oid: cloid }).catch(() => undefined),
      )
      if (reply.status === 'order') return
    }
  }
}

test('a reply that is dropped after the commit leaves an order that is found by its client id', async () => {
  const trader = await traderAt(venue, 301)
  const cloid = newCloid()
  await venue.control('POST', '/faults', {
    effect: 'dropReply',
    endpoint: 'exchange',
    type: 'order',
    count: 1,
  })
  await assert.rejects(trader.exchange.order(buy(cloid)))
  const reply = await trader.info.orderStatus({ user: trader.user, oid: cloid })
  assert.equal(reply.status === 'order' && reply.order.status, 'filled')
})

test('a reset and an error status before the commit have no effect', async () => {
  const trader = await traderAt(venue, 302)
  for (const fault of [
    { effect: 'reset' },
    { effect: 'status', status: 429 },
    { effect: 'status', status: 503 },
  ]) {
    const cloid = newCloid()
    await venue.control('POST', '/faults', { ...fault, endpoint: 'exchange', count: 1 })
    await assert.rejects(trader.exchange.order(buy(cloid)))
    assert.equal((await trader.info.orderStatus({ user: trader.user, oid: cloid })).status, 'unknownOid')
  }
  const faults = await venue.control<{ left: number; struck: number }[]>('GET', '/faults')
  assert.deepEqual(
    faults.slice(-3).map(({ left, struck }) => [left, struck]),
    [
      [0, 1],
      [0, 1],
      [0, 1],
    ],
  )
  await venue.control('DELETE', '/faults')
})

test('a slow venue delays only the selected requests', async () => {
  const trader = await traderAt(venue, 303)
  await venue.control('POST', '/faults', {
    effect: 'latency',
    latencyMs: 300,
    endpoint: 'info',
    type: 'userRole',
    count: 1,
  })
  const took = async (run: () => Promise<unknown>) => {
    const from = performance.now()
    await run()
    return performance.now() - from
  }
  assert.ok((await took(() => trader.info.userRole({ user: trader.user }))) >= 290)
  assert.equal((await venue.control<{ left: number }[]>('GET', '/faults'))[0]?.left, 0)
  await venue.control('DELETE', '/faults')
})

test('weights are counted and the first request above the limit gets 429', async () => {
  await venue.control('POST', '/limits', { weightPerMinute: 100 })
  const statuses: number[] = []
  for (let i = 0; i < 8; i += 1) statuses.push((await postRaw(venue, { type: 'meta' })).status)
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429, 429, 429])
  await venue.control('POST', '/limits', { weightPerMinute: 0 })
  assert.equal((await postRaw(venue, { type: 'meta' })).status, 200)
})

test('the budget of requests per address is rejected with the text of the venue', async () => {
  const trader = await traderAt(venue, 304)
  await venue.control('POST', '/settings', { requestsPerAddress: 2 })
  const nonce = Date.now()
  const refused = await Promise.all(
    [0, 1, 2].map((i) =>
      trader.exchange.noop({ nonce: nonce + i }).then(
        () => '',
        (error: { response: { response: string } }) => error.response.response,
      ),
    ),
  )
  await venue.control('POST', '/settings', { requestsPerAddress: 0 })
  assert.equal(refused.filter((sentence) => sentence !== '').length, 1)
  assert.match(
    refused.join(''),
    /^Too many cumulative requests sent \(3 > 2\) for cumulative volume traded \$0\.0\./,
  )
})

test('a dropped socket reconnects without replay, and the fills are read once', async () => {
  const trader = await traderAt(venue, 305)
  const transport = new WebSocketTransport({ url: venue.wsUrl, reconnect: { reconnectionDelay: 20 } })
  const updates: number[] = []
  let snapshots = 0
  const subscriptions = new SubscriptionClient({ transport })
  await subscriptions.orderUpdates({ user: trader.user }, (events) => {
    for (const { order } of events) updates.push(order.oid)
  })
  await subscriptions.userFills({ user: trader.user }, ({ isSnapshot }) => {
    if (isSnapshot) snapshots += 1
  })
  await eventually('the first snapshot', () => snapshots === 1 || undefined)
  await venue.control('POST', '/ws/drop')
  await trader.exchange.order(buy(newCloid()))
  await eventually('the second snapshot', () => snapshots === 2 || undefined)
  assert.deepEqual(updates, [])
  assert.equal((await trader.info.userFills({ user: trader.user })).length, 1)
  await transport.close()
})

test('seeded orders through drops, resets, 429, 503 and kills: one fill for every key, none twice', async () => {
  const traders = await Promise.all(
    [311, 312, 313, 314, 315].map((number) => traderAt(venue, number, '100000')),
  )
  const random = { at: 42 }
  const faults = [
    { effect: 'dropReply', endpoint: 'exchange', rate: 0.1 },
    { effect: 'reset', endpoint: 'exchange', rate: 0.05 },
    { effect: 'status', status: 429, endpoint: 'exchange', rate: 0.05 },
    { effect: 'status', status: 503, rate: 0.03 },
  ]
  const arm = async () => {
    for (const [i, fault] of faults.entries())
      await venue.control('POST', '/faults', { ...fault, seed: i + nextInteger(random, 1_000) })
  }
  const cloids = new Map(traders.map(({ user }) => [user, [] as string[]]))
  await arm()
  for (let round = 0; round < 4; round += 1) {
    const work = traders.map(async (trader) => {
      for (let i = 0; i < 12; i += 1) {
        const cloid = newCloid()
        cloids.get(trader.user)?.push(cloid)
        await placeOnce(trader, cloid)
      }
    })
    const killed = nextRandom(random) < 0.7
    if (killed) {
      await venue.restart()
      await arm()
    }
    await Promise.all(work)
  }
  await venue.control('DELETE', '/faults')
  const seen = await readRecord()
  assertConserved(seen)
  for (const { user } of traders) {
    const account = seen.accounts.find(({ address }) => address === user)
    const expectedLots = [...(cloids.get(user) ?? [])].sort()
    assert.equal(expectedLots.length, 48)
    assert.deepEqual(account?.orders.map(({ cloid }) => cloid).sort(), expectedLots)
    const filled = new Map<string, number>()
    for (const { cloid, sz } of account?.fills ?? [])
      filled.set(String(cloid), (filled.get(String(cloid)) ?? 0) + Number(sz))
    assert.deepEqual([...filled.keys()].sort(), expectedLots)
    assert.ok([...filled.values()].every((size) => Math.abs(size - 0.001) < 1e-9))
  }
})

test('a killed venue restores its exact state, with an incomplete last line too', async () => {
  const trader = await traderAt(venue, 321)
  const { exchange, user } = trader
  await exchange.order({
    orders: [
      { a: 0, b: true, p: '101000', s: '0.01', r: false, t: { limit: { tif: 'Ioc' } } },
      {
        a: 0,
        b: false,
        p: '130000',
        s: '0.01',
        r: true,
        t: { trigger: { isMarket: true, triggerPx: '130000', tpsl: 'tp' } },
      },
      {
        a: 0,
        b: false,
        p: '70000',
        s: '0.01',
        r: true,
        t: { trigger: { isMarket: true, triggerPx: '80000', tpsl: 'sl' } },
      },
    ],
    grouping: 'normalTpsl',
  })
  await exchange.order({
    orders: [{ a: 0, b: true, p: '90000', s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } }],
    grouping: 'na',
  })
  const nonce = Date.now() + 5_000
  await exchange.noop({ nonce })
  const before = (await readRecord(`?user=${user}`)).accounts
  await venue.kill('SIGKILL')
  const log = readdirSync(venue.dataDir).find((name) => name.startsWith('events-'))
  assert.ok(log)
  appendFileSync(join(venue.dataDir, log), '{"at":1,"kind":"cre')
  await venue.restart()
  assert.deepEqual((await readRecord(`?user=${user}`)).accounts, before)
  await assert.rejects(exchange.noop({ nonce }), /duplicate nonce/)
  await venue.control('POST', '/price', { coin: 'BTC', price: 79_000 })
  const state = await trader.info.clearinghouseState({ user })
  assert.deepEqual(
    state.assetPositions.map(({ position }) => position.szi),
    ['0.01'],
  )
  const [stopped] = await trader.info.userFills({ user })
  assert.equal(stopped?.dir, 'Close Long')
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
})

test('a clean stop and a second start preserve the state too', async () => {
  const trader = await traderAt(venue, 322)
  await trader.exchange.order(buy(newCloid()))
  const before = await readRecord()
  await venue.kill('SIGTERM')
  await venue.restart()
  const after = await readRecord()
  assert.deepEqual(after.accounts, before.accounts)
  assert.ok(after.sequence >= before.sequence)
  assertConserved(after)
})
