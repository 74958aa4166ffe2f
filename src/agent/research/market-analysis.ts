import type { Timeframe } from '#market/candle.ts'
import type { Claim } from './claim.ts'
import type { Collected, Wanted } from './collect-results.ts'
import { fixedTerms } from './exempt-terms.ts'
import { createFacts, type Facts, known, rowPointer, say } from './facts.ts'
import type { Report } from './report.ts'
import {
  callOf,
  type RuleFacts,
  regimeText,
  ruleFacts,
  type TimeframeFacts,
  timeframeFacts,
  timeframeHead,
  timeframeRow,
} from './timeframe-facts.ts'

export const candlesOf: Readonly<Record<Timeframe, number>> = {
  '15m': 1_000,
  '30m': 1_000,
  '1h': 1_000,
  '2h': 800,
  '4h': 600,
  '8h': 500,
  '12h': 500,
  '1d': 400,
}

/** Each timeframe is analysed together with two neighbouring timeframes. */
const besides: Readonly<Record<Timeframe, readonly [Timeframe, Timeframe, Timeframe]>> = {
  '15m': ['15m', '1h', '4h'],
  '30m': ['15m', '30m', '4h'],
  '1h': ['15m', '1h', '4h'],
  '2h': ['30m', '2h', '8h'],
  '4h': ['1h', '4h', '1d'],
  '8h': ['2h', '8h', '1d'],
  '12h': ['2h', '12h', '1d'],
  '1d': ['4h', '12h', '1d'],
}
export const timeframesBeside = (main: Timeframe): readonly Timeframe[] => besides[main]

export const fundingDays = 30
export const fundingHours = fundingDays * 24

export const candlesCall = (asset: string, timeframe: Timeframe): Wanted => ({
  id: callOf(timeframe),
  name: 'market_candles',
  input: { asset, timeframe, count: candlesOf[timeframe] },
  about: `${timeframe} candles`,
})

export const analysisCalls = (asset: string, main: Timeframe): Wanted[] => [
  ...timeframesBeside(main).map((timeframe) => candlesCall(asset, timeframe)),
  { id: 'funding', name: 'market_funding', input: { asset, days: fundingDays }, about: 'hourly funding' },
  { id: 'perp', name: 'perp_markets', input: { search_text: asset }, about: 'the perpetual market' },
  { id: 'positions', name: 'perp_orders', input: {}, about: 'your perpetual account' },
]

export type PerpFacts = {
  mark: Claim | undefined
  change: Claim | undefined
  funding: Claim | undefined
  carry: Claim | undefined
  meanFunding: Claim | undefined
  openInterest: Claim | undefined
  volume: Claim | undefined
  leverage: Claim | undefined
}

export function perpFacts(facts: Facts): PerpFacts {
  const row = rowPointer(facts.output('perp'), { list: 'markets', field: 'symbol', value: facts.asset })
  const of = (text: string, unit: Claim['unit'], field: string) =>
    row === undefined ? undefined : facts.measured(text, unit, facts.at('perp', `${row}/${field}`))
  const mark = of('mark price', 'price', 'mark_price')
  const before = of('mark price a day before', 'price', 'prev_day_price')
  const size = of('open interest', 'size', 'open_interest')
  const funding = of('funding of this hour', 'hourly', 'funding_rate')
  const ratesAt = facts.at('funding')
  const meanFunding = facts.derived('mean hourly funding of 30 days', 'hourly', {
    formula: 'mean_rate',
    inputs: [ratesAt, `=${fundingHours}`],
  })
  return {
    mark,
    change: facts.derived('change of the mark price in 24 hours', 'fraction', {
      formula: 'change',
      inputs: [mark, before],
    }),
    funding,
    carry: facts.derived('mean funding of 30 days over a year', 'fraction', {
      formula: 'carry',
      inputs: [meanFunding],
    }),
    meanFunding,
    openInterest: facts.derived('open interest', 'volume', { formula: 'product', inputs: [size, mark] }),
    volume: of('volume of 24 hours', 'volume', 'volume_24h_usd'),
    leverage: of('maximum leverage', 'count', 'max_leverage'),
  }
}

export const levelText = ({ levels }: TimeframeFacts): string | undefined => {
  const texts = levels.map(({ kind, price, distance }) =>
    distance ? say`${kind} at ${price}, ${distance} away` : say`${kind} at ${price}`,
  )
  return texts.length > 0 ? `Levels: ${known(texts).join('; ')}.` : undefined
}

export type Analysis = {
  facts: Facts
  main: TimeframeFacts | undefined
  timeframes: readonly TimeframeFacts[]
  perp: PerpFacts
  rule: RuleFacts | undefined
  report: Report
}

export function analyse(asset: string, main: Timeframe, collected: readonly Collected[]): Analysis {
  const facts = createFacts(asset, collected)
  const timeframes = known(timeframesBeside(main).map((timeframe) => timeframeFacts(facts, timeframe)))
  const mainFacts = timeframes.find(({ timeframe }) => timeframe === main)
  const perp = perpFacts(facts)
  const rule = mainFacts && ruleFacts(facts, mainFacts)
  const sentences = known([
    mainFacts &&
      say`${facts.asset} closed at ${mainFacts.close} on ${mainFacts.closedAt} (${main} candles): ${regimeText(mainFacts)}.`,
    say`The mark price is ${perp.mark}, ${perp.change} in 24 hours.`,
    say`Funding is ${perp.funding}, and its mean of 30 days costs a long ${perp.carry} a year.`,
    say`The open interest is ${perp.openInterest}, and ${perp.volume} were traded in 24 hours.`,
    mainFacts && levelText(mainFacts),
  ])
  return {
    facts,
    main: mainFacts,
    timeframes,
    perp,
    rule,
    report: {
      title: `Analysis of ${facts.asset}`,
      lead: sentences,
      sections: [
        {
          title: 'Timeframes',
          blocks: [{ type: 'table', head: timeframeHead, rows: timeframes.map(timeframeRow) }],
        },
        { title: 'Rule', blocks: [{ type: 'text', sentences: rule?.sentences ?? [] }] },
      ],
      claims: facts.book.claims(),
      sources: facts.book.sources(),
      terms: [...fixedTerms, facts.asset],
      generatedAt: new Date(facts.newestMs).toISOString(),
    },
  }
}
