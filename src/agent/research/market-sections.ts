import type { Claim } from './claim.ts'
import { cellOf, type Facts, known, rowPointer, say } from './facts.ts'
import { fundingHours, levelText, type PerpFacts } from './market-analysis.ts'
import { orderLadder } from './order-ladder.ts'
import type { Block } from './report.ts'
import { type RuleFacts, type TimeframeFacts, timeframeHead, timeframeRow } from './timeframe-facts.ts'

/** The periods of returns; a return over so many days needs one more close. */
const periods = [
  { days: 1, label: '1 day' },
  { days: 7, label: '7 days' },
  { days: 30, label: '30 days' },
  { days: 90, label: '90 days' },
  { days: 180, label: '180 days' },
  { days: 365, label: '365 days' },
] as const

export type Performance = {
  returns: readonly { label: string; own: Claim | undefined; other: Claim | undefined }[]
  month: Claim | undefined
  relative: Claim | undefined
  volatility: Claim | undefined
  drawdown: Claim | undefined
  beta: Claim | undefined
  blocks: readonly Block[]
}

export function performanceOf(facts: Facts, benchmark: string): Performance {
  const [own, other] = [facts.at('candles_1d'), facts.at('benchmark')]
  const of = (source: string | undefined, text: string, formula: string, count: number) =>
    facts.derived(text, 'fraction', { formula, inputs: [source, `=${count}`] })
  const returns = periods.map(({ days, label }) => ({
    label,
    own: of(own, `return of ${label}`, 'period_return', days + 1),
    other: of(other, `return of ${benchmark} in ${label}`, 'period_return', days + 1),
  }))
  const month = returns[2]?.own
  const relative = facts.derived(`return of 30 days less that of ${benchmark}`, 'fraction', {
    formula: 'difference',
    inputs: [month, returns[2]?.other],
  })
  const volatility = of(own, 'volatility of 30 days, over a year', 'volatility', 31)
  const drawdown = of(own, 'deepest fall within 90 days', 'max_drawdown', 91)
  const pair = (text: string, formula: string) =>
    facts.derived(text, 'ratio', { formula, inputs: [own, other, '=91'] })
  const beta = pair(`beta to ${benchmark}, 90 days`, 'beta')
  const price = (text: string, formula: string) =>
    facts.derived(text, 'price', { formula, inputs: [own, '=90'] })
  const sentences = known([
    say`Its daily returns of 30 days vary by ${volatility} over a year; those of 90 days by ${of(own, 'volatility of 90 days, over a year', 'volatility', 91)}.`,
    say`The deepest fall from a close within 90 days was ${drawdown}.`,
    say`Within 90 days it traded between ${price('lowest price of 90 days', 'lowest')} and ${price('highest price of 90 days', 'highest')}.`,
    say`Against ${benchmark} its beta of 90 days is ${beta}, and the correlation of daily returns ${pair(`correlation with ${benchmark}, 90 days`, 'correlation')}.`,
    say`Its return of 30 days less that of ${benchmark} is ${relative}.`,
  ])
  const rows = returns
    .filter((each) => each.own)
    .map((each) => [each.label, cellOf(each.own), cellOf(each.other)])
  const table: Block = { type: 'table', head: ['period', facts.asset, benchmark], rows }
  return {
    returns,
    month,
    relative,
    volatility,
    drawdown,
    beta,
    blocks: [...(rows.length > 0 ? [table] : []), { type: 'text', sentences }],
  }
}

export function technicalBlocks(
  timeframes: readonly TimeframeFacts[],
  { main, rule }: { main: TimeframeFacts | undefined; rule: RuleFacts | undefined },
): Block[] {
  if (timeframes.length === 0) return []
  const levels = main && levelText(main)
  return [
    { type: 'table', head: timeframeHead, rows: timeframes.map(timeframeRow) },
    ...(levels ? [{ type: 'text', sentences: [levels] } as const] : []),
    ...(rule ? [{ type: 'text', sentences: rule.sentences } as const] : []),
  ]
}

export function derivativeBlocks(facts: Facts, perp: PerpFacts): Block[] {
  const funding = facts.at('funding')
  const of = (text: string, unit: Claim['unit'], formula: string, count: number) =>
    facts.derived(text, unit, { formula, inputs: [funding, `=${count}`] })
  const week = of('mean hourly funding of 7 days', 'hourly', 'mean_rate', 168)
  const turnover = facts.derived('volume of 24 hours against the open interest', 'ratio', {
    formula: 'ratio',
    inputs: [perp.volume, perp.openInterest],
  })
  const row = rowPointer(facts.output('spot'), { list: 'markets', field: 'symbol', value: facts.asset })
  const spot = (text: string, unit: Claim['unit'], field: string) =>
    row === undefined ? undefined : facts.measured(text, unit, facts.at('spot', `${row}/${field}`))
  const sentences = known([
    say`The mark price is ${perp.mark}, ${perp.change} in 24 hours.`,
    say`Funding is ${perp.funding} now; its mean was ${week} in 7 days and ${perp.meanFunding} in 30 days.`,
    say`At the mean of 30 days a long pays ${perp.carry} of its worth in a year; where the figure is negative, it receives it.`,
    say`In ${of('share of hours of 30 days in which longs paid', 'fraction', 'positive_share', fundingHours)} of the hours longs paid shorts.`,
    say`The open interest is ${perp.openInterest}. The volume of 24 hours is ${perp.volume}, ${turnover} times as much.`,
    say`The venue allows a leverage of ${perp.leverage}.`,
    say`On the spot market of the venue it costs ${spot('spot price', 'price', 'price')}, with a volume of ${spot('spot volume of 24 hours', 'volume', 'volume_24h_usd')} in 24 hours.`,
  ])
  return sentences.length > 0 ? [{ type: 'text', sentences }] : []
}

export type Cost = { largest: Claim | undefined; blocks: readonly Block[] }

/** Compares what a market order loses in the venue's book with what a swap from dollars loses on its chain. */
export function costOf(facts: Facts): Cost {
  const book = facts.at('book')
  const cost = (side: 'buy' | 'sell', usd: string) =>
    facts.derived(`cost to ${side} ${usd} USD in the book`, 'fraction', {
      formula: 'book_cost',
      inputs: [book, `=${side}`, `=${usd}`],
    })
  const swapCost = (usd: string) => {
    const of = (text: string, field: string) =>
      facts.measured(text, 'usd', facts.at(`quote_${usd}`, `/quote/${field}`))
    return facts.derived(`value change of a swap of ${usd} USD, all fees included`, 'fraction', {
      formula: 'change',
      inputs: [
        of('worth that a swap brings', 'amount_out_usd'),
        of('worth that a swap takes', 'amount_in_usd'),
      ],
    })
  }
  const rows = orderLadder.map(({ usd, label }) => {
    const [buy, sell, swap] = [cost('buy', usd), cost('sell', usd), swapCost(usd)]
    return { buy, cells: [label, cellOf(buy), cellOf(sell), cellOf(swap)] }
  })
  const spread = facts.derived('spread of the book', 'fraction', { formula: 'spread', inputs: [book] })
  const depth = facts.derived('worth of the nearest levels on both sides', 'volume', {
    formula: 'book_depth',
    inputs: [book],
  })
  const sentences = known([
    say`The spread at the venue is ${spread}, and the nearest levels on both sides hold ${depth}.`,
    book === undefined
      ? undefined
      : 'Costs in the book are against its middle, before the fee of the venue; a buy and a later sale pay both.',
  ])
  const isKnown = rows.some(({ cells }) => cells.slice(1).some((cell) => cell !== 'unknown'))
  return {
    largest: rows.at(-1)?.buy,
    blocks: [
      ...(isKnown
        ? [
            {
              type: 'table',
              head: ['order', 'buy in the book', 'sell in the book', 'swap with USDC on its chain'],
              rows: rows.map(({ cells }) => cells),
            } as const,
          ]
        : []),
      ...(sentences.length > 0 ? [{ type: 'text', sentences } as const] : []),
    ],
  }
}
