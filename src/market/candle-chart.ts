import { ageText } from '#kernel/money/figure-format.ts'
import type { Series } from './averages.ts'
import type { Candle, Timeframe } from './candle.ts'
import {
  clippedTo,
  drawTag,
  footerOf,
  gridOf,
  headerOf,
  labelAt,
  type Pane,
  placedTags,
  plot,
  priceLabel,
  type Tag,
  timeAxis,
  timeScale,
} from './chart-frame.ts'
import { linearScale, type Range, rangeOf, type Scale } from './chart-scale.ts'
import { decimalText } from './decimal-text.ts'
import { printedValue } from './figure-text.ts'
import { type IndicatorId, indicatorAt, indicatorList } from './indicator-list.ts'
import type { IndicatorSet } from './indicators.ts'
import type { Level } from './levels.ts'
import { documentOf, element, lineBetween, palette, pathThrough, textAt } from './svg.ts'
import type { Exits, Side } from './trading-rules.ts'

export type CandleChart = {
  asset: string
  timeframe: Timeframe
  candles: readonly Candle[]
  set: IndicatorSet
  levels: readonly Level[]
  proposal?: Exits & { side: Side; entry: number }
  readAtMs: number
}

const shownMax = 120
const roomCandles = 5
const pricePane: Pane = { top: 100, bottom: 432 }
const volumePane: Pane = { top: 446, bottom: 520 }
const rsiPane: Pane = { top: 534, bottom: 614 }
const axisY = 634

const averages: readonly { id: IndicatorId; color: string }[] = [
  { id: 'ema_12', color: palette.blue },
  { id: 'ema_26', color: palette.orange },
  { id: 'ema_50', color: palette.violet },
  { id: 'sma_200', color: palette.grey },
]

type Shown = {
  candles: readonly Candle[]
  /** The position of the first shown candle in the whole history. */
  firstAt: number
  range: Range
  x: Scale
  width: number
}

function shownOf({ candles }: CandleChart): Shown {
  const shown = candles.slice(-shownMax)
  const [first, last] = [shown[0], shown.at(-1)]
  const spanMs = last ? last.endMs - last.startMs : 1
  const range = { from: first?.startMs ?? 0, to: (last?.endMs ?? 1) + roomCandles * spanMs }
  const width = Math.max(1, Math.min(14, ((plot.right - plot.left) / (shown.length + roomCandles)) * 0.66))
  return { candles: shown, firstAt: candles.length - shown.length, range, x: timeScale(range), width }
}

const middleOf = ({ startMs, endMs }: Candle): number => (startMs + endMs) / 2

/** Returns an indicator's values at the shown candles, with NaN where too few candles came before. */
const knownSeries = (chart: CandleChart, { firstAt, candles }: Shown, id: IndicatorId): Series =>
  candles.map((_, at) => indicatorAt(chart.set, id, firstAt + at) ?? Number.NaN)

const lineOf = ({ candles, x }: Shown, series: Series, y: Scale, color: string): string =>
  pathThrough(
    candles.map((candle, at) => ({ x: x(middleOf(candle)), y: y(series[at] ?? Number.NaN) })),
    { stroke: color, 'stroke-width': 1.8, 'stroke-linejoin': 'round' },
  )

function drawCandles({ candles, x, width }: Shown, y: Scale): string[] {
  return candles.flatMap((candle) => {
    const { open, high, low, close } = candle
    const color = close >= open ? palette.up : palette.down
    const middle = x(middleOf(candle))
    const top = y(Math.max(open, close))
    return [
      lineBetween({ x: middle, y: y(high) }, { x: middle, y: y(low) }, { stroke: color }),
      element('rect', {
        x: middle - width / 2,
        y: top,
        width,
        height: Math.max(1, y(Math.min(open, close)) - top),
        fill: color,
      }),
    ]
  })
}

function drawVolume({ candles, x, width }: Shown): string[] {
  const most = Math.max(...candles.map(({ volume }) => volume), 0)
  const y = linearScale({ from: 0, to: most * 1.3 || 1 }, { start: volumePane.bottom, end: volumePane.top })
  return candles.map((candle) =>
    element('rect', {
      x: x(middleOf(candle)) - width / 2,
      y: y(candle.volume),
      width,
      height: Math.max(0, volumePane.bottom - y(candle.volume)),
      fill: candle.close >= candle.open ? palette.up : palette.down,
      'fill-opacity': 0.55,
    }),
  )
}

const compact = (value: number): string => {
  const [divisor, word] =
    value >= 1e9 ? [1e9, ' bn'] : value >= 1e6 ? [1e6, ' M'] : value >= 1e3 ? [1e3, ' k'] : [1, '']
  return `${(value / divisor).toFixed(value >= 1e3 ? 2 : 0)}${word}`
}

type LevelLine = { price: number; text: string; color: string; isProposal?: true }

function levelLines({ levels, proposal }: CandleChart): LevelLine[] {
  const found = levels.map(
    ({ kind, price, touches }): LevelLine => ({
      price,
      text: `${kind}, ${touches} touches`,
      color: kind === 'support' ? palette.up : palette.down,
    }),
  )
  if (!proposal) return found
  const { side, stop, target } = proposal
  return [
    { price: stop, text: `stop of the ${side}`, color: palette.down, isProposal: true },
    { price: target, text: `target of the ${side}`, color: palette.up, isProposal: true },
    ...found,
  ]
}

function drawLevels(lines: readonly LevelLine[], y: Scale): string[] {
  return lines.map(({ price, color, isProposal }) =>
    lineBetween(
      { x: plot.left, y: y(price) },
      { x: plot.right, y: y(price) },
      isProposal
        ? { stroke: color, 'stroke-width': 1.8, 'stroke-dasharray': '9 4' }
        : { stroke: color, 'stroke-dasharray': '3 4', 'stroke-opacity': 0.8 },
    ),
  )
}

/** If two labels would overlap, the later one is left out, because its price is at the right edge anyway. */
function levelLabels(lines: readonly LevelLine[], y: Scale): string[] {
  const taken: number[] = []
  return lines.flatMap(({ price, text, color }) => {
    const at = y(price)
    if (taken.some((other) => Math.abs(other - at) < 15)) return []
    taken.push(at)
    return [labelAt({ x: plot.left + 4, y: at - 4 }, text, color)]
  })
}

/** Draws what a trade of the proposal would win and lose, to the right of the last candle. */
function drawProposal({ proposal, candles }: CandleChart, { x }: Shown, y: Scale): string[] {
  const end = candles.at(-1)?.endMs
  if (!proposal || end === undefined) return []
  const box = (price: number, color: string) =>
    element('rect', {
      x: x(end),
      y: Math.min(y(price), y(proposal.entry)),
      width: plot.right - x(end),
      height: Math.abs(y(price) - y(proposal.entry)),
      fill: color,
      'fill-opacity': 0.16,
    })
  return [box(proposal.target, palette.up), box(proposal.stop, palette.down)]
}

function drawRsi(chart: CandleChart, shown: Shown): string[] {
  const y = linearScale({ from: 0, to: 100 }, { start: rsiPane.bottom, end: rsiPane.top })
  const series = knownSeries(chart, shown, 'rsi_14')
  const value = series.at(-1)
  const isKnown = value !== undefined && Number.isFinite(value)
  const tags = placedTags(
    isKnown ? [{ y: y(value), text: value.toFixed(1), color: palette.violet }] : [],
    rsiPane,
  )
  const bound = (level: number) => [
    lineBetween(
      { x: plot.left, y: y(level) },
      { x: plot.right, y: y(level) },
      { stroke: palette.frame, 'stroke-dasharray': '4 4' },
    ),
    ...(tags.every((tag) => Math.abs(tag.y - y(level)) > 16)
      ? [textAt({ x: plot.right + 14, y: y(level) + 4.5 }, String(level))]
      : []),
  ]
  return [
    element('rect', {
      x: plot.left,
      y: y(70),
      width: plot.right - plot.left,
      height: y(30) - y(70),
      fill: palette.violet,
      'fill-opacity': 0.05,
    }),
    ...bound(70),
    ...bound(30),
    lineBetween(
      { x: plot.left, y: rsiPane.bottom },
      { x: plot.right, y: rsiPane.bottom },
      { stroke: palette.frame },
    ),
    lineBetween(
      { x: plot.right, y: rsiPane.top },
      { x: plot.right, y: rsiPane.bottom },
      { stroke: palette.frame },
    ),
    lineOf(shown, series, y, palette.violet),
    labelAt({ x: plot.left + 4, y: rsiPane.top + 12 }, 'RSI 14'),
    ...tags.flatMap(drawTag),
  ]
}

const stamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

export function candleChartSvg(chart: CandleChart): string {
  const shown = shownOf(chart)
  const last = shown.candles.at(-1)
  const lines = averages
    .map((each) => ({ ...each, series: knownSeries(chart, shown, each.id) }))
    .filter(({ series }) => series.some(Number.isFinite))
  const levels = levelLines(chart)
  const prices = shown.candles.flatMap(({ high, low }) => [high, low])
  // A far level would squeeze the candles, so only levels near the prices of the candles widen the range.
  const reach = rangeOf(prices, 0.15)
  const visible = levels.filter(
    ({ price, isProposal }) => isProposal || (price > reach.from && price < reach.to),
  )
  const range = rangeOf([...prices, ...visible.map(({ price }) => price)], 0.05)
  const y = linearScale(range, { start: pricePane.bottom, end: pricePane.top })
  const lastTag: Tag[] = last
    ? [
        {
          y: y(last.close),
          text: priceLabel(last.close),
          color: last.close >= last.open ? palette.up : palette.down,
        },
      ]
    : []
  const tags = placedTags(
    [
      ...lastTag,
      ...visible.map(
        ({ price, color }): Tag => ({ y: y(price), text: priceLabel(price), color, isOutlined: true }),
      ),
    ],
    pricePane,
  )
  return documentOf([
    ...headerOf({
      title: `${chart.asset} perpetual, ${chart.timeframe} candles`,
      subtitle: last
        ? `Last close ${priceLabel(last.close)} USD at ${stamp(last.endMs)}, read ${ageText(chart.readAtMs - last.endMs)} later. Closed candles only.`
        : 'No closed candle exists.',
      legend: lines.map(({ id, color }) => ({ label: indicatorList[id].label, color })),
    }),
    ...gridOf(pricePane, range, { scale: y, tags }),
    ...timeAxis(shown.range, [pricePane, volumePane, rsiPane], axisY),
    ...drawLevels(visible, y),
    ...drawVolume(shown),
    lineBetween(
      { x: plot.left, y: volumePane.bottom },
      { x: plot.right, y: volumePane.bottom },
      { stroke: palette.frame },
    ),
    labelAt(
      { x: plot.left + 4, y: volumePane.top + 10 },
      `Volume in ${chart.asset}, last candle ${compact(last?.volume ?? 0)}`,
    ),
    ...drawProposal(chart, shown, y),
    ...drawCandles(shown, y),
    clippedTo(
      pricePane,
      lines.map(({ series, color }) => lineOf(shown, series, y, color)),
    ),
    ...levelLabels(visible, y),
    ...(last
      ? [
          lineBetween(
            { x: plot.left, y: y(last.close) },
            { x: plot.right, y: y(last.close) },
            { stroke: palette.ink, 'stroke-dasharray': '1 3', 'stroke-opacity': 0.6 },
          ),
        ]
      : []),
    ...tags.flatMap(drawTag),
    ...drawRsi(chart, shown),
    ...footerOf('Times in UTC. Prices in USD.', 'Candles of Hyperliquid'),
  ])
}

export function candleChartAlt(chart: CandleChart): string {
  const shown = shownOf(chart)
  const last = shown.candles.at(-1)
  if (!last) return `Chart of ${chart.asset}: no closed candle exists.`
  const price = (value: number) =>
    printedValue({ value: decimalText(value) ?? '', unit: 'price' }) ?? 'unknown'
  const known = averages.flatMap(({ id }) => {
    const value = indicatorAt(chart.set, id, chart.candles.length - 1)
    return value === undefined ? [] : [`${indicatorList[id].label} ${price(value)}`]
  })
  const strength = indicatorAt(chart.set, 'rsi_14', chart.candles.length - 1)
  const levels = chart.levels.map(({ kind, price: level }) => `${kind} at ${price(level)}`)
  const sentences = [
    `${shown.candles.length} ${chart.timeframe} candles of ${chart.asset} until ${stamp(last.endMs)}, last close ${price(last.close)}`,
    ...(known.length > 0 ? [known.join(', ')] : []),
    ...(strength === undefined ? [] : [`RSI 14 ${strength.toFixed(1)}`]),
    ...(levels.length > 0 ? [levels.join(', ')] : []),
  ]
  return `${sentences.join('. ')}.`
}
