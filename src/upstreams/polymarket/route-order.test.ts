import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { type RoutingFacts, routeOrder } from './route-order.ts'

const v1Id = '45601394554497090173642354630373884477724604907691447337031201817815960365378'
const v2Number = (1n << 248n) | (0xabcdefn << 120n)
const v2Condition = `0x${v2Number.toString(16).padStart(64, '0').slice(0, 62)}`
const v1Condition = `0x${'3d'.repeat(32)}`

type Kind = { protocol?: 'v1' | 'v2'; isNegRisk?: boolean }
function factsOf({ protocol = 'v1', isNegRisk = false }: Kind = {}): RoutingFacts {
  const outcomeId = protocol === 'v1' ? v1Id : String(v2Number)
  const marketId = protocol === 'v1' ? v1Condition : v2Condition
  const listed: PredictionMarket = {
    venue: 'polymarket',
    marketId,
    protocol,
    isNegRisk,
    slug: 's',
    question: 'q',
    description: '',
    category: null,
    image: null,
    eventId: null,
    eventSlug: null,
    eventTitle: null,
    outcomes: [
      { outcomeId, label: 'Yes', priceMicros: null },
      { outcomeId: '7', label: 'No', priceMicros: null },
    ],
    tickMicros: 10_000n,
    minSizeUnits: 5_000_000n,
    acceptsOrders: true,
    isClosed: false,
    matchDelaySeconds: 0,
    fee: null,
    bestBidMicros: null,
    bestAskMicros: null,
    lastPriceMicros: null,
    volumeUnits: 0n,
    volume24hUnits: 0n,
    liquidityUnits: 0n,
    endsAt: null,
    payoutMicros: null,
  }
  return {
    outcomeId,
    listed,
    traded: {
      c: marketId,
      t: [
        { t: outcomeId, o: 'Yes' },
        { t: '7', o: 'No' },
      ],
      mos: 15,
      mts: 0.01,
      nr: isNegRisk,
      ao: true,
      sd: 3,
      fd: { r: 0.04, e: 1 },
    },
    tick: { minimum_tick_size: 0.001 },
    negRisk: { neg_risk: isNegRisk },
  }
}

const faultOf = (facts: RoutingFacts): unknown => {
  try {
    routeOrder(facts)
  } catch (error) {
    assert.ok(error instanceof Fault)
    return error.extras.reason ?? error.code
  }
  return undefined
}

test('protocol and kind of risk choose the exchange', () => {
  for (const [protocol, isNegRisk, exchange] of [
    ['v1', false, 'standard'],
    ['v1', true, 'neg_risk'],
    ['v2', false, 'v3'],
    ['v2', true, 'v3'],
  ] as const)
    assert.equal(routeOrder(factsOf({ protocol, isNegRisk })).exchange, exchange)
})

test('tick, minimum, delay and fee are those of the order book', () => {
  const { tickMicros, minSizeUnits, matchDelaySeconds, fee } = routeOrder(factsOf()).market
  assert.deepEqual(
    [tickMicros, minSizeUnits, matchDelaySeconds, fee],
    [1_000n, 15_000_000n, 3, { rate: '0.04', exponent: '1' }],
  )
})

test('each contradiction of the venue leaves the order unsigned', () => {
  for (const protocol of ['v1', 'v2'] as const) {
    const facts = () => factsOf({ protocol })
    const { listed, traded } = facts()
    const wrong: RoutingFacts[] = [
      { ...facts(), listed: { ...listed, protocol: protocol === 'v1' ? 'v2' : 'v1' } },
      { ...facts(), listed: { ...listed, outcomes: listed.outcomes.slice(1) } },
      { ...facts(), listed: { ...listed, marketId: `0x${'12'.repeat(protocol === 'v1' ? 31 : 32)}` } },
      { ...facts(), traded: { ...traded, c: `0x${'34'.repeat(32)}` } },
      { ...facts(), traded: { ...traded, t: traded.t.slice(1) } },
      { ...facts(), traded: { ...traded, nr: true } },
      { ...facts(), negRisk: { neg_risk: true } },
      { ...facts(), listed: { ...listed, isNegRisk: true } },
    ]
    for (const [index, each] of wrong.entries())
      assert.equal(faultOf(each), 'upstream_inconsistent', `${protocol} ${index}`)
  }
})

test('a market that takes no orders is closed, by the catalogue or by the order book', () => {
  const facts = factsOf()
  assert.equal(faultOf({ ...facts, listed: { ...facts.listed, acceptsOrders: false } }), 'market_closed')
  assert.equal(faultOf({ ...facts, traded: { ...facts.traded, ao: false } }), 'market_closed')
  assert.equal(faultOf({ ...facts, outcomeId: 'x' }), 'not_found')
})
