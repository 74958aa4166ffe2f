import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { type Log, silentLog } from '#kernel/log.ts'
import { openVenueStreams, type UserEvent, type VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { newCloid, traderAt } from '../../world/conformance/venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from '../../world/conformance/venue/venue.ts'
import { streamProxy } from '../harness/stream-proxy.ts'

/**
 * Frames that the venue's web socket may carry at any time. The exception of a listener is an uncaught one, which the
 * runner counts as a failure of the test, and which ends a gateway.
 */

let venue: RunningVenue
let proxy: Awaited<ReturnType<typeof streamProxy>>
let streams: VenueStreams
const errors: unknown[] = []
const log: Log = { ...silentLog, error: (facts) => void errors.push(facts) }

before(async () => {
  venue = await startVenue(['--tick-ms', '100'])
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  proxy = await streamProxy(venue.wsUrl)
  streams = openVenueStreams({ url: proxy.url, clock, random, log })
})
after(async () => {
  await streams?.[Symbol.asyncDispose]()
  await proxy?.[Symbol.asyncDispose]()
  await venue?.close()
})

const errorTexts = [
  'Too many subscriptions {users: 10}',
  'Error parsing JSON into valid websocket request: {"method":"subscribe",...}',
  'x {"a":1} y {"b":2}',
  'Already subscribed: {}',
  'Invalid subscription {"type":"userFills"}',
  'too many pending post requests id=1',
  '',
]
const framesOf = (user: string): (string | Buffer)[] => {
  const pending = JSON.stringify({ method: 'subscribe', subscription: { type: 'userFills', user } })
  const own = `"user":"${user}"`
  return [
    'null',
    '5',
    '[]',
    '{}',
    'no JSON',
    '<html><body>502</body></html>',
    Buffer.from([0, 255, 1]),
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    '{"channel":5}',
    '{"channel":""}',
    '{"channel":"__proto__","data":{}}',
    '{"channel":"pong"}',
    ...['open', 'close', 'message', 'error', 'post', 'subscriptionResponse', 'userEvents'].flatMap(
      (channel) =>
        ['', ',"data":null', ',"data":5', ',"data":"x"', ',"data":[]', ',"data":{}', ',"data":{"id":1}'].map(
          (data) => `{"channel":"${channel}"${data}}`,
        ),
    ),
    '{"channel":"error","data":{"a":1}}',
    ...errorTexts.map((data) => JSON.stringify({ channel: 'error', data })),
    JSON.stringify({ channel: 'post', data: { id: pending } }),
    '{"channel":"subscriptionResponse","data":{"method":"subscribe"}}',
    ...['userFills', 'orderUpdates', 'allMids', 'clearinghouseState', 'openOrders', 'spotState'].flatMap(
      (channel) =>
        ['null', '5', '"x"', '[]', '[null]', '{}', '{"user":5}', `{${own}}`].map(
          (data) => `{"channel":"${channel}","data":${data}}`,
        ),
    ),
    `{"channel":"userFills","data":{${own},"fills":[null,5,{}]}}`,
    '{"channel":"allMids","data":{"mids":{"BTC":null,"ETH":5,"SOL":"x"}}}',
    `{"channel":"userNonFundingLedgerUpdates","data":{${own},"nonFundingLedgerUpdates":[{"time":1,"hash":"x","delta":null}]}}`,
    `{"channel":"userNonFundingLedgerUpdates","data":{${own},"nonFundingLedgerUpdates":[{"time":1,"hash":"x","delta":{"type":"deposit"}}]}}`,
  ]
}

test('no frame of the venue ends the process, and the stream goes on after each of them', async () => {
  const trader = await traderAt(venue, 601)
  const events: UserEvent[] = []
  assert.ok(streams.subscribe(trader.user, (event) => events.push(event)))
  await eventually('the stream', () => streams.mids() && events.some(({ type }) => type === 'gap'))
  for (const frame of framesOf(trader.user)) {
    proxy.inject(frame)
    // The exception of a listener is thrown in a later turn.
    await new Promise(setImmediate)
  }
  const cloid = newCloid()
  const order = { a: 0, b: true, p: '101000', s: '0.001', r: false, t: { limit: { tif: 'Ioc' } } } as const
  await trader.exchange.order({ orders: [{ ...order, c: cloid }], grouping: 'na' })
  await eventually('the fill', () =>
    events.some((event) => event.type === 'fills' && event.fills.some((fill) => fill.cloid === cloid)),
  )
  assert.deepEqual(errors, [])
  assert.equal(streams.state().connections, 1)
})
