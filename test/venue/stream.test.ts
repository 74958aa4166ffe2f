import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { silentLog as log } from '#kernel/log.ts'
import { openVenueStreams, type UserEvent, type VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { newCloid, type Trader, traderAt } from '../../world/conformance/venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from '../../world/conformance/venue/venue.ts'

describe("the venue's streams", () => {
  let venue: RunningVenue
  let streams: VenueStreams
  before(async () => {
    venue = await startVenue(['--tick-ms', '100'])
    await venue.control('POST', '/settings', { walking: false })
    await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
    streams = openVenueStreams({ url: venue.wsUrl, clock, random, log })
  })
  after(async () => {
    await streams?.[Symbol.asyncDispose]()
    await venue?.close()
  })

  const buy = async ({ exchange }: Trader, s = '0.001') => {
    const c = newCloid()
    const order = { a: 0, b: true, p: '101000', s, r: false, t: { limit: { tif: 'Ioc' } }, c } as const
    await exchange.order({ orders: [order], grouping: 'na' })
    return c
  }
  const follow = (trader: Trader) => {
    const events: UserEvent[] = []
    const held = streams.subscribe(trader.user, (each) => events.push(each))
    assert.ok(held)
    const cloids = () =>
      events.flatMap((each) => (each.type === 'fills' ? each.fills.map(({ cloid }) => cloid) : []))
    const gaps = () => events.filter(({ type }) => type === 'gap').length
    return {
      news: events,
      held,
      cloids,
      gaps,
      begun: (n = 1) => eventually('a stream', () => gaps() >= n || undefined),
    }
  }

  test('middle prices follow the stream, and are absent before its first message', async () => {
    const mids: (string | undefined)[] = []
    assert.equal(streams.mids(), undefined)
    using _listening = streams.onMids((received) => mids.push(received.get('BTC')))
    await eventually('prices', () => streams.mids())
    await venue.control('POST', '/price', { coin: 'BTC', price: 90_000 })
    await eventually(
      'the new price',
      () => mids.some((mid) => mid?.startsWith('90') || mid?.startsWith('89999')) || undefined,
    )
    await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  })

  test('each user gets the own fills, funding and ledger updates, and none of others', async () => {
    const [one, two] = [await traderAt(venue, 501), await traderAt(venue, 502)]
    const [first, second] = [follow(one), follow(two)]
    await Promise.all([first.begun(), second.begun()])
    const orders: (string | null)[] = []
    const received: unknown[] = []
    using _orders = streams.onOrders((list) => {
      received.push(...list)
      orders.push(...list.map(({ cloid }) => cloid))
    })
    const [mine, theirs] = [await buy(one), await buy(two)]
    await eventually('both fills', () => (first.cloids().length && second.cloids().length) || undefined)
    assert.deepEqual([first.cloids(), second.cloids()], [[mine], [theirs]])
    await eventually('both orders', () => (orders.includes(mine) && orders.includes(theirs)) || undefined)
    const seen = new Set(received.map((each) => JSON.stringify(each)))
    assert.equal(seen.size, received.length, 'each message arrives once, however many users are subscribed')
    await venue.control('POST', '/credit', { user: one.user, amount: '7' })
    await venue.control('POST', '/funding')
    const about = (is: UserEvent['type']) => eventually(is, () => first.news.find((each) => each.type === is))
    const [ledger, fundings] = [await about('ledger'), await about('fundings')]
    assert.deepEqual(ledger.type === 'ledger' && ledger.updates.map(({ moves }) => moves), [
      [{ balance: 'perp', amount: '7' }],
    ])
    assert.equal(fundings.type === 'fundings' && fundings.fundings[0]?.symbol, 'BTC')
    for (const { held } of [first, second]) held[Symbol.dispose]()
  })

  test('after a break the stream reconnects by itself, reports a gap, and continues', async () => {
    const trader = await traderAt(venue, 503)
    const { held, cloids, gaps, begun } = follow(trader)
    await begun()
    const before = await buy(trader)
    await eventually('the first fill', () => cloids().length || undefined)
    const { connections } = streams.state()
    await venue.control('POST', '/ws/drop')
    const during = await buy(trader)
    await begun(2)
    const later = await buy(trader)
    await eventually('the last fill', () => cloids().includes(later) || undefined)
    assert.deepEqual(cloids(), [before, later])
    assert.ok(!cloids().includes(during))
    assert.deepEqual([gaps(), streams.state().connections], [2, connections + 1])
    held[Symbol.dispose]()
    await buy(trader)
    await eventually('prices', () => streams.mids())
    assert.equal(cloids().length, 2)
  })

  test('an unreachable venue is retried until it is back', async () => {
    const trader = await traderAt(venue, 504)
    const { held, begun } = follow(trader)
    await begun()
    await venue.restart()
    await begun(2)
    held[Symbol.dispose]()
  })

  test('no more users are subscribed than the venue allows, and an unsubscribed one makes a place free', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `0x${String(i + 1).padStart(40, '0')}`)
    const held = names.map((name) => streams.subscribe(name, () => {}))
    assert.ok(held.every((each) => each !== undefined))
    assert.equal(
      streams.subscribe(`0x${'f'.repeat(40)}`, () => {}),
      undefined,
    )
    held[0]?.[Symbol.dispose]()
    const next = streams.subscribe(`0x${'f'.repeat(40)}`, () => {})
    assert.ok(next)
    for (const each of [...held.slice(1), next]) each?.[Symbol.dispose]()
    assert.equal(streams.state().users, 0)
  })
})
