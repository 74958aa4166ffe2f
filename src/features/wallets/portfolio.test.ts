import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { HoldingView } from './contract.ts'
import type { HoldingsAnswer } from './holdings.ts'
import { createPortfolio } from './portfolio.ts'

const now = new Date('2026-01-01T00:00:00.000Z')
const held = (kind: HoldingView['kind'], value_usd: string | null, protocol: string | null = null) =>
  ({ kind, value_usd, protocol }) as HoldingView
const portfolioOf = (
  holdings: HoldingView[],
  venueWorth: Parameters<typeof createPortfolio>[0]['venueWorth'],
  { complete = true } = {},
) =>
  createPortfolio({
    holdings: { forUser: async () => ({ holdings, complete }) as HoldingsAnswer, invalidate: () => {} },
    venueWorth,
    clock: { now: () => now },
  })(undefined, { userId: 'u' })

const all = [
  held('token', '10.5'),
  held('native', '0.25'),
  held('earn_share', '5', 'erc4626'),
  held('token', '3', 'polymarket'),
  held('outcome_token', '1.5', 'polymarket'),
]

test('each place has its own money, and the sum has all of it', async () => {
  assert.deepEqual(await portfolioOf(all, () => async () => ({ perp: '300.1', spot: '20' })), {
    total_value_usd: '340.35',
    places: [
      { place: 'wallets', value_usd: '10.75' },
      { place: 'vault', value_usd: '5' },
      { place: 'predictions', value_usd: '4.5' },
      { place: 'perp', value_usd: '300.1' },
      { place: 'spot_venue', value_usd: '20' },
    ],
    complete: true,
    as_of: now.toISOString(),
  })
})

test('a venue that does not answer is not known and not nothing, and hides no other money', async () => {
  const away = async () => {
    throw new Fault('unavailable', 'The venue does not answer')
  }
  const { total_value_usd, places, complete } = await portfolioOf(all, () => away)
  assert.deepEqual([total_value_usd, complete], ['20.25', false])
  assert.deepEqual(
    places.slice(3).map(({ value_usd }) => value_usd),
    [null, null],
  )
  const broken = async () => {
    throw new TypeError('a bug')
  }
  await assert.rejects(
    portfolioOf(all, () => broken),
    TypeError,
  )
})

test('a gateway without a venue has no places there, and a price that is not known leaves the sum incomplete', async () => {
  const { places, complete } = await portfolioOf([held('token', null)], () => undefined, { complete: false })
  assert.deepEqual(
    places.map(({ place }) => place),
    ['wallets', 'vault', 'predictions'],
  )
  assert.equal(complete, false)
  const unpriced = await portfolioOf(all, () => async () => ({ perp: '0', spot: null }))
  assert.deepEqual([unpriced.total_value_usd, unpriced.complete], ['20.25', false])
})
