import type { Claim } from './claim.ts'
import { fixedTerms } from './exempt-terms.ts'
import { type Facts, known, say } from './facts.ts'
import { perpFacts } from './market-analysis.ts'
import {
  type Cost,
  costOf,
  derivativeBlocks,
  type Performance,
  performanceOf,
  technicalBlocks,
} from './market-sections.ts'
import type { Block, Report } from './report.ts'
import type { Scope } from './research-scope.ts'
import { exposureBlocks, securityOf, yieldBlocks } from './security-and-holdings-sections.ts'
import {
  type RuleFacts,
  regimeText,
  ruleFacts,
  type TimeframeFacts,
  timeframeFacts,
} from './timeframe-facts.ts'
import type { CriterionId } from './verdict-criteria.ts'

export const reportTimeframes = ['1h', '4h', '1d'] as const
const mainTimeframe = '4h'

type Parts = {
  facts: Facts
  performance: Performance
  perp: ReturnType<typeof perpFacts>
  security: ReturnType<typeof securityOf>
  cost: Cost
  daily: TimeframeFacts | undefined
  main: TimeframeFacts | undefined
  rule: RuleFacts | undefined
}
type Criterion = { id: CriterionId; text: string; figure: Claim; effect: Claim }

const effectWords: Readonly<Record<string, string>> = {
  for: 'for it',
  against: 'against it',
  neutral: 'neither',
  unsafe: 'unsafe',
}

function criteriaOf({ facts, performance, perp, security, cost, daily, main, rule }: Parts): Criterion[] {
  const rows: readonly (readonly [CriterionId, string, Claim | undefined])[] = [
    ['trend', 'Trend of the daily candles', daily?.regime],
    ['timing', 'Trend of the 4h candles', main?.regime],
    ['momentum', 'Return of 30 days', performance.month],
    ['relative', 'Return of 30 days beside the benchmark', performance.relative],
    ['volatility', 'Volatility over a year', performance.volatility],
    ['carry', 'Funding that a long pays in a year', perp.carry],
    ['liquidity', 'Cost of a 10,000 USD order', cost.largest],
    ['safety', 'Security check', security.worst],
    ['edge', 'Test of the rule that fits the regime', rule?.verdict],
  ]
  return rows.flatMap(([id, text, figure]) => {
    const effect =
      figure &&
      facts.derived(`effect of: ${text}`, 'word', {
        formula: 'criterion',
        inputs: [figure, `=${id}`],
        kind: 'opinion',
      })
    return figure && effect ? [{ id, text, figure, effect }] : []
  })
}

const verdictTexts: Readonly<Record<string, string>> = {
  constructive: 'constructive: more speaks for it than against it',
  neutral: 'neutral: what speaks for it and against it is about even',
  cautious: 'cautious: more speaks against it than for it',
  avoid: 'avoid: the security check flagged the token',
}
const readable: Readonly<Record<string, string>> = {
  up: 'rising',
  down: 'falling',
  too_few: 'too few trades',
  no_edge: 'no edge',
  positive: 'an edge',
  negative: 'a loss',
  api_unavailable: 'not proven',
}

/** Prints the value of a claim in plain English if it is a code word, with the mark of the claim. */
const wordCell = (claim: Claim, text: string | undefined): string => {
  const value = text ?? (claim.unit === 'word' ? (readable[claim.value] ?? claim.value) : undefined)
  return value === undefined ? (say`${claim}` ?? '') : `${value} [${claim.id.slice(1)}]`
}

function verdictBlocks(facts: Facts, found: readonly Criterion[], confidence: string): Block[] {
  if (found.length === 0) return []
  const effects = found.map(({ effect }) => effect)
  const verdict = facts.derived('verdict', 'word', { formula: 'weigh', inputs: effects, kind: 'opinion' })
  const tally = (effect: string) =>
    facts.derived(`criteria that are ${effect}`, 'count', {
      formula: 'tally',
      inputs: [`=${effect}`, ...effects],
      kind: 'opinion',
    })
  const sentences = known([
    verdict && say`The verdict is ${verdictTexts[verdict.value] ?? verdict.value} [${verdict.id.slice(1)}].`,
    say`Of the criteria ${tally('for')} speak for it, and ${tally('against')} against it.`,
    `Confidence: ${confidence}.`,
    'The verdict is an opinion by fixed thresholds, which are the same for every asset, and no advice.',
  ])
  const rows = found.map(({ text, figure, effect }) => [
    text,
    wordCell(figure, undefined),
    wordCell(effect, effectWords[effect.value]),
  ])
  return [
    { type: 'text', sentences },
    { type: 'table', head: ['criterion', 'figure', 'speaks'], rows },
  ]
}

function riskItems({ performance, perp, security, cost, daily, facts }: Parts): string[] {
  const isAbove = (claim: Claim | undefined, bound: number) =>
    claim !== undefined && Number(claim.value) > bound
  return known([
    isAbove(performance.volatility, 0.8)
      ? say`Its prices vary widely: ${performance.volatility} over a year.`
      : undefined,
    isAbove(performance.drawdown, 0.25)
      ? say`A fall of ${performance.drawdown} happened within 90 days and can happen again.`
      : undefined,
    isAbove(perp.carry, 0.1)
      ? say`Longs pay: at the mean of 30 days the funding takes ${perp.carry} a year.`
      : undefined,
    isAbove(cost.largest, 0.003)
      ? say`The book is thin: a 10,000 USD order costs ${cost.largest}.`
      : undefined,
    isAbove(performance.beta, 1.2)
      ? say`It amplifies the market: its beta is ${performance.beta}.`
      : undefined,
    security.worst && security.worst.value !== 'passed'
      ? say`The security check did not pass: ${security.worst}.`
      : undefined,
    daily?.regime?.value === 'down'
      ? `The daily trend is down: ${regimeText(daily)} [${daily.regime.id.slice(1)}].`
      : undefined,
    `The history of ${facts.asset} is that of one venue; other venues may differ.`,
    'Past returns, levels and tests bind nothing.',
  ])
}

/** Returns the confidence in the verdict, which depends on the share of the calls that were answered. */
function confidenceOf(facts: Facts, asked: number): string {
  const missing = facts.missing.length / Math.max(1, asked)
  if (missing === 0) return 'high, all that was asked was answered'
  return missing <= 0.25
    ? 'medium, some of what was asked was not answered'
    : 'low, much of what was asked was not answered'
}

const notFound = ({ facts }: Parts, { omitted }: Scope): string[] => [
  ...facts.missing.map(({ about, result }) =>
    result.ok ? about : `Not answered: ${about} (${result.code.replaceAll('_', ' ')}).`,
  ),
  ...omitted,
]

export type ReportImages = Readonly<Record<string, Uint8Array>>
export type Research = {
  report: Report
  facts: Facts
  timeframes: readonly TimeframeFacts[]
}

export function researchReport(scope: Scope, facts: Facts, images: ReportImages): Research {
  const timeframes = known(reportTimeframes.map((timeframe) => timeframeFacts(facts, timeframe)))
  const main = timeframes.find(({ timeframe }) => timeframe === mainTimeframe)
  const daily = timeframes.find(({ timeframe }) => timeframe === '1d')
  const parts: Parts = {
    facts,
    performance: performanceOf(facts, scope.benchmark),
    perp: perpFacts(facts),
    security: securityOf(facts, scope.chainNames),
    cost: costOf(facts),
    daily,
    main,
    rule: main && ruleFacts(facts, main),
  }
  const image = (file: string, alt: readonly (string | undefined)[]): Block[] => {
    return images[file] ? [{ type: 'image', file, alt: known(alt) }] : []
  }
  const verdict = verdictBlocks(facts, criteriaOf(parts), confidenceOf(facts, scope.calls.length))
  const { performance, perp, security, cost, rule } = parts
  const sections = [
    { title: 'Verdict', blocks: verdict },
    {
      title: 'Performance',
      blocks: [
        ...performance.blocks,
        ...image('chart-performance.png', [
          `Returns of ${facts.asset} beside those of ${scope.benchmark}, and the fall from the highest close before.`,
          say`At the end ${facts.asset} stands at ${performance.returns[4]?.own} over 180 days.`,
        ]),
      ],
    },
    {
      title: 'Technical picture',
      blocks: [
        ...technicalBlocks(timeframes, { main, rule }),
        ...image('chart-4h.png', [
          `${mainTimeframe} candles of ${facts.asset} with averages, levels, volume and RSI 14.`,
          say`Last close ${main?.close}, RSI 14 ${main?.indicators.get('rsi_14')}.`,
        ]),
      ],
    },
    { title: 'Cost to enter and to leave', blocks: cost.blocks },
    { title: 'Derivatives', blocks: derivativeBlocks(facts, perp) },
    {
      title: 'Security',
      blocks:
        security.blocks.length > 0
          ? security.blocks
          : [{ type: 'text', sentences: ['No contract was checked.'] } as const],
    },
    { title: 'Yield of dollars instead', blocks: yieldBlocks(facts) },
    { title: 'Your exposure', blocks: exposureBlocks(facts, scope.chainNames) },
    { title: 'Risks', blocks: [{ type: 'list', items: riskItems(parts) } as const] },
    { title: 'What was not found', blocks: [{ type: 'list', items: notFound(parts, scope) } as const] },
  ]
  const asOf = facts.at('candles_1d')
    ? facts.measured('time of the venue', 'time', facts.at('candles_1d', '/as_of'))
    : undefined
  const lead = known([
    say`This report on ${facts.asset} was made from answers of ${asOf}.` ??
      `This report is on ${facts.asset}.`,
    'Each figure has a mark, and the tables at the end say what it is computed from.',
  ])
  return {
    facts,
    timeframes,
    report: {
      title: `${facts.asset}: research report`,
      lead,
      sections,
      claims: facts.book.claims(),
      sources: facts.book.sources(),
      terms: [...fixedTerms, facts.asset, scope.benchmark],
      generatedAt: new Date(facts.newestMs).toISOString(),
    },
  }
}
