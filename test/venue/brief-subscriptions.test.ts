import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { silentLog as log } from '#kernel/log.ts'
import { openVenueStreams, type VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { newCloid, type Trader, traderAt } from '../../world/conformance/venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from '../../world/conformance/venue/venue.ts'

/** Accounts without a permanent stream, which share the remaining subscriptions in turns. */

const readMs = 5_000

describe('brief subscriptions', () => {
  let venue: RunningVenue
  let streams: VenueStreams
  before(async () => {
    venue = await startVenue(['--tick-ms', '100'])
    await venue.control('POST', '/settings', { walking: false })
    await venue.control('POST', '/settings', { wsUsersPerAddress: 3 })
    await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
    streams = openVenueStreams({
      url: venue.wsUrl,
      clock,
      random,
      log,
      subscribedUsersMax: 3,
      briefUsersMax: 2,
    })
    await eventually('the stream', () => streams.mids())
  })
  after(async () => {
    await streams?.[Symbol.asyncDispose]()
    await venue?.close()
  })

  const buy = async ({ exchange }: Trader): Promise<number> => {
    const limit = { limit: { tif: 'Ioc' } } as const
    const order = { a: 0, b: true, p: '101000', s: '0.001', r: false, t: limit, c: newCloid() }
    const { response } = await exchange.order({ orders: [order], grouping: 'na' })
    const [status] = response.data.statuses
    assert.ok(typeof status === 'object' && 'filled' in status, JSON.stringify(status))
    return status.filled.oid
  }
  const cash = (user: string) =>
    streams.brief(user, 'clearinghouseState', (message) => message.clearinghouseState.withdrawable, readMs)

  test('the fills of an order are read without a permanent stream, and listeners get them', async () => {
    const trader = await traderAt(venue, 601)
    const reported: number[] = []
    using _listening = streams.onFills(({ user, fills }) => {
      assert.equal(user, trader.user)
      reported.push(...fills.map(({ orderId }) => orderId))
    })
    const orderId = await buy(trader)
    const size = await streams.readOrder(trader.user, orderId, ({ fills }) => fills[0]?.size)
    assert.equal(size, '0.001')
    assert.ok(reported.includes(orderId))
    assert.equal(await streams.readOrder(trader.user, newCloid(), () => true), undefined)
  })

  test('a read waits for fills that the venue shows late', async () => {
    const trader = await traderAt(venue, 602)
    await venue.control('POST', '/realism', { fillsLag: 300 })
    const orderId = await buy(trader)
    const size = await streams.readOrder(trader.user, orderId, ({ fills }) => fills[0]?.size)
    await venue.control('POST', '/realism', { fillsLag: 0 })
    assert.equal(size, '0.001')
  })

  test('many accounts take turns within the limit of the venue, beside a subscribed one', async () => {
    const traders = await Promise.all(Array.from({ length: 12 }, (_, at) => traderAt(venue, 610 + at)))
    const [followed, ...others] = traders as [Trader, ...Trader[]]
    using held = streams.subscribe(followed.user, () => {})
    assert.ok(held)
    assert.equal(
      streams.subscribe(others[0]!.user, () => {}),
      undefined,
    )
    const read = await Promise.all(others.map(({ user }) => cash(user)))
    assert.deepEqual(
      read,
      others.map(() => '10000.0'),
    )
    assert.equal(await cash(followed.user), undefined)
  })

  test('without an answer in time the read is empty, and the subscription is free again', async () => {
    const trader = await traderAt(venue, 640)
    const never = () => undefined
    const [one, two] = await Promise.all([
      streams.brief(trader.user, 'openOrders', never, 100),
      streams.brief(trader.user, 'spotState', never, 100),
    ])
    assert.deepEqual([one, two], [undefined, undefined])
    assert.equal(await cash(trader.user), '10000.0')
  })
})
