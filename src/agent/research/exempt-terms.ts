import { timeframeMs } from '#market/candle.ts'
import { indicatorList } from '#market/indicator-list.ts'
import { orderLadder } from './order-ladder.ts'

/** Phrases whose digits are no figures: they name what is measured, and over which time. */
const phrases = [
  '24 hours',
  '1 day',
  '7 days',
  '30 days',
  '90 days',
  '180 days',
  '365 days',
  '95 % interval',
  '1.5 ATR',
  '2.5 ATR',
]

export const fixedTerms: readonly string[] = [
  ...phrases,
  ...orderLadder.map(({ label }) => label),
  ...Object.values(indicatorList).map(({ label }) => label),
  ...Object.keys(timeframeMs),
]
