import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { NetReply } from '#kernel/wire/upstream-http.ts'
import { unlimitedBudget } from './rate-budget.ts'
import { createVenueRequests } from './requests.ts'
import type { Urgency } from './urgency.ts'

const venueUrl = 'http://venue'
const nodeUrl = 'http://node'
const nowMs = 1_700_000_000_000
const user = '0xacc'
const page: NetReply = { status: 200, body: '<html><h1>Just a moment</h1></html>' }
const reply = (value: unknown): NetReply => ({ status: 200, body: JSON.stringify(value) })

const summary = { accountValue: '1', totalMarginUsed: '0', totalNtlPos: '0', totalRawUsd: '1' }
const accountAt = (time: number, cash = '1') =>
  reply({
    marginSummary: { ...summary, totalRawUsd: cash },
    crossMarginSummary: summary,
    withdrawable: '1',
    assetPositions: [],
    time,
  })

type Answer = (type: string) => NetReply
/** A venue, and an own node where one is given; `asked` has the host and the type of each request. */
function requestsTo(venue: Answer, node?: Answer) {
  const asked: string[] = []
  let weight = 0
  const added: unknown[] = []
  let timeMs = nowMs
  const requests = createVenueRequests({
    url: venueUrl,
    ...(node && { nodeUrl }),
    nowMs: () => timeMs,
    egress: [
      {
        budget: {
          ...unlimitedBudget,
          async admit(more) {
            weight += more
          },
          add(more, _, account) {
            added.push([account, more])
          },
        },
      },
    ],
    net: {
      async fetch({ url, body }) {
        const { type } = JSON.parse(body!) as { type: string }
        const { host } = new URL(url)
        asked.push(`${host} ${type}`)
        return host === 'node' ? node!(type) : venue(type)
      },
    },
  })
  return {
    ...requests,
    asked,
    added,
    weight: () => weight,
    pass: (ms: number) => {
      timeMs += ms
    },
  }
}
const inTurn = (...replies: NetReply[]): Answer => {
  let at = 0
  return () => replies[Math.min(at++, replies.length - 1)]!
}
const codeOf = (asking: Promise<unknown>) =>
  asking.then(
    () => undefined,
    (fault: unknown) => (fault instanceof Fault ? fault.code : String(fault)),
  )

test('a read whose reply is no answer is repeated within the budget', async () => {
  const whole = reply([])
  const cut = { status: 200, body: '[{"coin":"BT' }
  const repeat = async (odd: NetReply) => {
    const { info, asked, weight } = requestsTo(inTurn(odd, odd, whole))
    assert.deepEqual(await info('frontendOpenOrders', { user }, 'work'), [])
    assert.deepEqual([asked.length, weight()], [3, 60])
  }
  await Promise.all([page, cut, { status: 502, body: '' }].map(repeat))
})

test('a long list is admitted with its items, and what was not expected counts for its account', async () => {
  const rate = { coin: 'BTC', fundingRate: '0.1', premium: '0', time: 1 }
  const { info, weight, added } = requestsTo(() => reply(Array(100).fill(rate)))
  const asked = { coin: 'BTC', startTime: 0 }
  await info('fundingHistory', asked, 'view', { owner: 'one', itemsMax: 100 })
  assert.deepEqual([weight(), added], [25, []])
  await info('fundingHistory', asked, 'view', { owner: 'one', itemsMax: 20 })
  assert.deepEqual([weight(), added], [46, [['one', 4]]])
})

test('a read is repeated thrice for an exit, twice for other work, and never for a view', async () => {
  const times: Record<Urgency, number> = { exit: 4, work: 3, admission: 3, view: 1, background: 1 }
  const repeat = async ([urgency, count]: [string, number]) => {
    const { info, asked } = requestsTo(() => page)
    assert.equal(await codeOf(info('allMids', {}, urgency as Urgency)), 'unavailable')
    assert.equal(asked.length, count)
  }
  await Promise.all(Object.entries(times).map(repeat))
})

test('a rate limit, a requested delay and another format are not answered with a repetition', async () => {
  const refusals: NetReply[] = [
    { status: 429, body: '' },
    { status: 503, body: '', retryAfterMs: 2_000 },
    { status: 422, body: '' },
    reply({ other: 1 }),
  ]
  for (const refusal of refusals) {
    const { info, asked } = requestsTo(() => refusal)
    assert.ok(await codeOf(info('frontendOpenOrders', { user }, 'exit')))
    assert.equal(asked.length, 1)
  }
})

test('an own node that answers with a page is left for the venue, and is not asked again at once', async () => {
  const venue: Answer = (type) => (type === 'clearinghouseState' ? accountAt(nowMs) : reply([]))
  const { info, asked, pass } = requestsTo(venue, () => page)
  assert.equal((await info('clearinghouseState', { user }, 'exit')).time, nowMs)
  assert.deepEqual(await info('frontendOpenOrders', { user }, 'exit'), [])
  assert.deepEqual(asked, ['node clearinghouseState', 'venue clearinghouseState', 'venue frontendOpenOrders'])
  pass(6_000)
  await info('clearinghouseState', { user }, 'exit')
  assert.equal(asked[3], 'node clearinghouseState')
})

test('no answer of an own node counts while its state is older than the read lag', async () => {
  const venue: Answer = (type) => (type === 'clearinghouseState' ? accountAt(nowMs, '7') : reply([]))
  const node: Answer = (type) =>
    type === 'clearinghouseState' ? accountAt(nowMs - 6_000, '9') : reply([{ stale: true }])
  const { info, asked } = requestsTo(venue, node)
  assert.equal((await info('clearinghouseState', { user }, 'exit')).marginSummary.totalRawUsd, '7')
  assert.deepEqual(await info('frontendOpenOrders', { user }, 'exit'), [])
  assert.ok(!asked.includes('node frontendOpenOrders'))
})

test('an own node that follows the venue answers alone, and its time is checked once per second', async () => {
  const node: Answer = (type) => (type === 'clearinghouseState' ? accountAt(nowMs) : reply([]))
  const { info, asked, weight } = requestsTo(() => page, node)
  await info('frontendOpenOrders', { user }, 'work')
  await info('extraAgents', { user }, 'work')
  await info('clearinghouseState', { user }, 'work')
  const expected = ['clearinghouseState', 'frontendOpenOrders', 'extraAgents', 'clearinghouseState']
  assert.deepEqual(
    asked,
    expected.map((type) => `node ${type}`),
  )
  assert.equal(weight(), 0)
})

test('one error for several orders rejects all of them; one for a single order is that of the order', async () => {
  const message = 'Order has invalid price.'
  const { send } = requestsTo(() =>
    reply({ status: 'ok', response: { type: 'order', data: { statuses: [{ error: message }] } } }),
  )
  const bodyOf = (orders: number) =>
    JSON.stringify({ action: { type: 'order', orders: Array.from({ length: orders }, () => ({ r: true })) } })
  assert.deepEqual(await send(bodyOf(2)), { type: 'rejected', message })
  assert.deepEqual(await send(bodyOf(1)), { type: 'ok', legs: [{ type: 'error', message }] })
})
