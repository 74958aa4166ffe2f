import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StrategyFields } from '#engines/strategy-terms/strategy-schemas.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { factsOfStrategy } from './strategy-facts.ts'
import { type TermsKey, termsOf, type VersionRow } from './terms.ts'

const market = (symbol: string, asset: number): PerpMarket => ({
  symbol,
  asset,
  sizeDecimals: 2,
  priceDecimals: 2,
  maxLeverage: 10,
  onlyIsolated: false,
  isDelisted: symbol === 'MATIC',
  markPrice: '1',
  oraclePrice: '1',
  midPrice: '1',
  fundingRate: '0',
  openInterest: '0',
  dayVolumeUsd: '0',
  prevDayPrice: '1',
})
const version: VersionRow = {
  user_id: 'user',
  type: 'rebalance',
  config: {
    targets: [
      { asset: 'ETH', share_pct: '50' },
      { asset: 'MATIC', share_pct: '50' },
    ],
  },
  guards: null,
  calendar: null,
  budget_usd: '100',
  paper_balance_usd: '1000',
}
const key: TermsKey = { strategyId: 'strategy', version: 1, mode: 'live' }
const venue = { markets: [market('ETH', 1), market('MATIC', 2)], minOrderUsd: '10' }

test('a market that is not traded any more refuses a decision, and no guard and no exit', () => {
  assert.throws(
    () => termsOf(version, key, venue),
    (error: unknown) => error instanceof Fault && error.code === 'market_closed',
  )
  const { decision } = termsOf(version, { ...key, allowsDelisted: true }, venue).config
  assert.deepEqual(Object.keys(decision.markets), ['ETH', 'MATIC'])
  const unknown = { ...venue, markets: [market('ETH', 1)] }
  assert.throws(() => termsOf(version, { ...key, allowsDelisted: true }, unknown), Fault)
})

test('a market of isolated margin alone takes no strategy with cross margin, and one that was made before is isolated', async () => {
  const markets = [{ ...market('ETH', 1), onlyIsolated: true }]
  const config: StrategyFields = {
    asset: 'ETH',
    enter_if: [{ left: 'price', is: 'above', right: '1' }],
    order_notional_usd: '100',
  }
  const isCrossBy = async (fields: { is_cross?: boolean }) => {
    const list = { at: 0, markets, isComplete: true }
    const input = { type: 'condition', ...config, ...fields } as const
    const { strategy } = await factsOfStrategy(
      { venue: { perps: async () => list }, minOrderUsd: '10' },
      input,
      'config',
    )
    return 'is_cross' in strategy && strategy.is_cross
  }
  assert.equal(await isCrossBy({}), false)
  assert.equal(await isCrossBy({ is_cross: false }), false)
  await assert.rejects(
    isCrossBy({ is_cross: true }),
    (error: unknown) => error instanceof Fault && error.issues[0]?.path.join('.') === 'config.is_cross',
  )
  const before: VersionRow = { ...version, type: 'condition', config: { ...config, is_cross: true } }
  const { strategy } = termsOf(before, key, { ...venue, markets }).config.decision
  assert.equal('is_cross' in strategy && strategy.is_cross, false)
})
