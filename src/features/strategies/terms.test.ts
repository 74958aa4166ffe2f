import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
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
