import type { Timeframe } from '#market/candle.ts'
import { type IndicatorId, indicatorIds, indicatorList } from '#market/indicator-list.ts'
import type { Regime } from '#market/regime.ts'
import { type RuleId, ruleFor } from '#market/trading-rules.ts'
import type { Claim } from './claim.ts'
import { cellOf, type Facts, known, say } from './facts.ts'

/** The claims about one timeframe: regime, indicators, levels, exits, and the backtest of the rule that fits. */

export type LevelClaim = {
  kind: 'support' | 'resistance'
  price: Claim
  touches: Claim
  distance: Claim | undefined
}
export type TimeframeFacts = {
  timeframe: Timeframe
  call: string
  close: Claim | undefined
  closedAt: Claim | undefined
  regime: Claim | undefined
  indicators: ReadonlyMap<IndicatorId, Claim>
  fromEma50: Claim | undefined
  levels: readonly LevelClaim[]
}

export const callOf = (timeframe: Timeframe): string => `candles_${timeframe}`

function levelsIn(facts: Facts, source: string, close: Claim | undefined): LevelClaim[] {
  return (['resistance', 'support'] as const).flatMap((kind) =>
    [0, 1, 2].flatMap((rank) => {
      const inputs = (field: string) => [source, `=${kind}`, `=${rank}`, `=${field}`]
      const price = facts.derived(`${kind} by turning points`, 'price', {
        formula: 'level',
        inputs: inputs('price'),
      })
      const touches = facts.derived(`turning points within the ${kind}`, 'count', {
        formula: 'level',
        inputs: inputs('touches'),
      })
      if (!price || !touches) return []
      const distance = facts.derived(`distance of the ${kind} from the last close`, 'fraction', {
        formula: 'change',
        inputs: [price, close],
      })
      return [{ kind, price, touches, distance }]
    }),
  )
}

export function timeframeFacts(facts: Facts, timeframe: Timeframe): TimeframeFacts | undefined {
  const call = callOf(timeframe)
  const source = facts.at(call)
  if (source === undefined || !facts.history(call)?.candles.length) return undefined
  const of = (text: string, formula: string, unit: Claim['unit'], parameters: readonly string[] = []) =>
    facts.derived(`${text}, ${timeframe}`, unit, {
      formula,
      inputs: [source, ...parameters.map((each) => `=${each}`)],
    })
  const close = of('last close', 'last_close', 'price')
  const indicators = new Map<IndicatorId, Claim>()
  for (const id of indicatorIds) {
    const { label, unit } = indicatorList[id]
    const claim = of(label, 'indicator', unit, [id])
    if (claim) indicators.set(id, claim)
  }
  const ema = indicators.get('ema_50')
  return {
    timeframe,
    call,
    close,
    closedAt: of('end of the last closed candle', 'closed_at', 'time'),
    regime: of('regime', 'regime', 'word'),
    indicators,
    fromEma50: facts.derived(`last close against EMA 50, ${timeframe}`, 'fraction', {
      formula: 'change',
      inputs: [close, ema],
    }),
    levels: levelsIn(facts, source, close),
  }
}

export const regimeWords: Readonly<Record<Regime, string>> = {
  up: 'a rising trend',
  down: 'a falling trend',
  range: 'a range',
  unknown: 'unknown, for too few candles',
}

export const regimeText = ({ regime }: TimeframeFacts): string =>
  regimeWords[(regime?.value ?? 'unknown') as Regime] ?? regimeWords.unknown

export const timeframeHead = [
  'timeframe',
  'regime',
  'last close',
  'against EMA 50',
  'RSI 14',
  'ADX 14',
  'ATR 14',
]
export function timeframeRow(found: TimeframeFacts): string[] {
  const { timeframe, regime, close, fromEma50, indicators } = found
  const mark = regime ? ` [${regime.id.slice(1)}]` : ''
  return [
    timeframe,
    `${regimeText(found)}${mark}`,
    cellOf(close),
    cellOf(fromEma50),
    cellOf(indicators.get('rsi_14')),
    cellOf(indicators.get('adx_14')),
    cellOf(indicators.get('atr_14')),
  ]
}

export type RuleFacts = {
  id: RuleId
  text: string
  verdict: Claim | undefined
  signal: Claim | undefined
  sentences: string[]
}

const verdictTexts: Readonly<Record<string, string>> = {
  too_few: 'Those are too few trades to judge the rule.',
  no_edge: 'Its expectancy does not differ from zero, so no edge is shown.',
  negative: 'It lost money in this test.',
  positive: 'Its expectancy was above zero throughout the interval; the past binds nothing.',
}

/** Tests the rule that fits the regime on the candles of the timeframe, with the funding that was paid. */
export function ruleFacts(facts: Facts, found: TimeframeFacts): RuleFacts | undefined {
  const rule = ruleFor((found.regime?.value ?? 'unknown') as Regime)
  const source = facts.at(found.call)
  if (!rule || source === undefined) return undefined
  const funding = facts.at('funding') ?? '=none'
  const of = (text: string, unit: Claim['unit'], field: string) =>
    facts.derived(`${text} of the ${rule.id} rule, ${found.timeframe}`, unit, {
      formula: 'backtest',
      inputs: [source, funding, `=${rule.id}`, `=${field}`],
    })
  const verdict = of('verdict', 'word', 'verdict')
  const signal = facts.derived(`signal of the ${rule.id} rule, ${found.timeframe}`, 'word', {
    formula: 'signal',
    inputs: [source, `=${rule.id}`],
  })
  const isJudged = verdict !== undefined && verdict.value !== 'too_few'
  const results = known([
    say`Of them ${of('share of winners', 'fraction', 'win_rate')} won, with a 95 % interval from ${of('lower bound of the share of winners', 'fraction', 'win_rate_low')} to ${of('upper bound of the share of winners', 'fraction', 'win_rate_high')}.`,
    say`A trade brought ${of('expectancy after costs', 'fraction', 'expectancy')} on average after fees, slippage and funding, with a 95 % interval from ${of('lower bound of the expectancy', 'fraction', 'expectancy_low')} to ${of('upper bound of the expectancy', 'fraction', 'expectancy_high')}.`,
  ])
  const sentences = known([
    `The rule for this regime: ${rule.text}, with a stop at 1.5 ATR and a target at 2.5 ATR.`,
    say`Tested on the ${found.timeframe} candles from ${of('begin', 'time', 'from')} to ${of('end', 'time', 'to')}, its trades number ${of('trades', 'count', 'trades')}.`,
    ...(isJudged ? results : []),
    say`In all it returned ${of('return', 'fraction', 'total_return')} after costs, with a drawdown of ${of('drawdown', 'fraction', 'max_drawdown')}.`,
    say`Buying and holding returned ${of('buying and holding beside', 'fraction', 'buy_and_hold')}, with a drawdown of ${of('drawdown of buying and holding beside', 'fraction', 'buy_and_hold_drawdown')}.`,
    verdict && verdictTexts[verdict.value],
  ])
  return { id: rule.id, text: rule.text, verdict, signal, sentences }
}
