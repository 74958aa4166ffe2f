import { ageText } from '#kernel/money/figure-format.ts'
import type { Candle } from './candle.ts'
import {
  axisLabel,
  drawTag,
  footerOf,
  gridOf,
  headerOf,
  labelAt,
  type Pane,
  placedTags,
  plot,
  timeAxis,
  timeScale,
} from './chart-frame.ts'
import { linearScale, type Range, rangeOf, type Scale } from './chart-scale.ts'
import { documentOf, element, lineBetween, palette, pathThrough } from './svg.ts'

/**
 * A chart of the returns of a market and of a benchmark since the same close, and of how far the market was below
 * its high.
 */

export type PerformanceChart = {
  asset: string
  candles: readonly Candle[]
  /** The market to compare with; absent if its candles are unknown. */
  benchmark?: { asset: string; candles: readonly Candle[] }
  readAtMs: number
}

const returnsPane: Pane = { top: 100, bottom: 440 }
const drawdownPane: Pane = { top: 466, bottom: 614 }
const axisY = 634

type Line = { label: string; color: string; points: readonly { ms: number; value: number }[] }

const returnsSinceFirst = (candles: readonly Candle[]): Line['points'] => {
  const first = candles[0]?.close ?? Number.NaN
  return candles.map(({ endMs, close }) => ({ ms: endMs, value: (close / first - 1) * 100 }))
}

function drawdownsOf(candles: readonly Candle[]): Line['points'] {
  let peak = 0
  return candles.map(({ endMs, close }) => {
    peak = Math.max(peak, close)
    return { ms: endMs, value: (close / peak - 1) * 100 }
  })
}

const percentLabel = (value: number, places: number): string => `${axisLabel(value, places)} %`

const drawLine = ({ points, color }: Line, x: Scale, y: Scale): string =>
  pathThrough(
    points.map(({ ms, value }) => ({ x: x(ms), y: y(value) })),
    { stroke: color, 'stroke-width': 2, 'stroke-linejoin': 'round' },
  )

function drawReturns(lines: readonly Line[], x: Scale): string[] {
  const range = rangeOf(
    lines.flatMap(({ points }) => points.map(({ value }) => value)),
    0.08,
  )
  const y = linearScale(range, { start: returnsPane.bottom, end: returnsPane.top })
  const ends = lines.flatMap(({ points, color }, at) => {
    const value = points.at(-1)?.value
    if (value === undefined) return []
    const tag = { y: y(value), text: percentLabel(value, 1), color }
    return [at === 0 ? tag : { ...tag, isOutlined: true as const }]
  })
  const tags = placedTags(ends, returnsPane)
  const isZeroInside = range.from < 0 && range.to > 0
  return [
    ...gridOf(returnsPane, range, { scale: y, tags, labelOf: percentLabel }),
    ...(isZeroInside
      ? [lineBetween({ x: plot.left, y: y(0) }, { x: plot.right, y: y(0) }, { stroke: palette.grey })]
      : []),
    ...[...lines].reverse().map((line) => drawLine(line, x, y)),
    ...tags.flatMap(drawTag),
  ]
}

function drawDrawdowns(points: Line['points'], x: Scale): string[] {
  const lowest = Math.min(...points.map(({ value }) => value), -1)
  const range: Range = { from: lowest * 1.08, to: 0 }
  const y = linearScale(range, { start: drawdownPane.bottom, end: drawdownPane.top })
  const outline = points.map(({ ms, value }) => `${x(ms).toFixed(2)},${y(value).toFixed(2)}`)
  const [first, last] = [points[0], points.at(-1)]
  const corners = first && last ? [`${x(last.ms)},${y(0)}`, `${x(first.ms)},${y(0)}`] : []
  return [
    ...gridOf(drawdownPane, range, { scale: y, count: 4, labelOf: percentLabel }),
    element('polygon', {
      points: [...outline, ...corners].join(' '),
      fill: palette.down,
      'fill-opacity': 0.18,
    }),
    drawLine({ label: '', color: palette.down, points }, x, y),
    labelAt({ x: plot.left + 4, y: drawdownPane.bottom - 8 }, 'Below the highest close before'),
  ]
}

export function performanceChartSvg({ asset, candles, benchmark, readAtMs }: PerformanceChart): string {
  const [first, last] = [candles[0], candles.at(-1)]
  const range: Range = { from: first?.endMs ?? 0, to: last?.endMs ?? 1 }
  const x = timeScale(range)
  const others = benchmark?.candles.filter(({ endMs }) => endMs >= range.from && endMs <= range.to) ?? []
  const lines: Line[] = [
    { label: asset, color: palette.blue, points: returnsSinceFirst(candles) },
    ...(benchmark && others.length > 1
      ? [{ label: benchmark.asset, color: palette.orange, points: returnsSinceFirst(others) }]
      : []),
  ]
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  return documentOf([
    ...headerOf({
      title: benchmark ? `${asset} beside ${benchmark.asset}` : `Performance of ${asset}`,
      subtitle: last
        ? `Return since the close of ${day(range.from)}, until ${day(range.to)}, read ${ageText(readAtMs - last.endMs)} after the last close.`
        : 'No closed candle exists.',
      legend: lines.map(({ label, color }) => ({ label, color })),
    }),
    ...timeAxis(range, [returnsPane, drawdownPane], axisY),
    ...drawReturns(lines, x),
    ...drawDrawdowns(drawdownsOf(candles), x),
    ...footerOf('Times in UTC. Without fees and funding.', 'Candles of Hyperliquid'),
  ])
}
