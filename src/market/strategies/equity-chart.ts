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
} from '#market/chart-frame.ts'
import { linearScale, type Range, rangeOf, type Scale } from '#market/chart-scale.ts'
import { documentOf, element, lineBetween, type Point, palette, pathThrough } from '#market/svg.ts'
import type { ClosedTrade } from './account.ts'

/** The worth of a strategy over time with the ends of its trades, and how far it was below its highest worth. */

export type EquityChart = {
  title: string
  subtitle: string
  initialUsd: number
  equity: { atMs: Float64Array; usd: Float64Array }
  trades: readonly Pick<ClosedTrade, 'closedMs' | 'netMicros'>[]
  /** What opened or increased a position; a backtest shows the ends of its trades alone. */
  entries?: readonly EntryMark[]
}
export type EntryMark = { atMs: number; isBuy: boolean }

const worthPane: Pane = { top: 100, bottom: 440 }
const drawdownPane: Pane = { top: 466, bottom: 614 }
const axisY = 634
/** A picture has fewer columns than that. */
const pointsMax = 1_500
const marksMax = 400
/** How far below the line the mark of an entry is. */
const markDistance = 13

type Sample = { ms: number; usd: number; fall: number }

function samplesOf({ equity: { atMs, usd }, initialUsd }: EquityChart): Sample[] {
  const step = Math.max(1, Math.ceil(usd.length / pointsMax))
  const samples: Sample[] = []
  let peak = initialUsd
  let deepest = 0
  for (const [at, value] of usd.entries()) {
    peak = Math.max(peak, value)
    deepest = Math.min(deepest, value / peak - 1)
    if (at % step !== 0 && at !== usd.length - 1) continue
    samples.push({ ms: atMs[at] ?? 0, usd: value, fall: deepest * 100 })
    deepest = 0
  }
  return samples
}

const usdLabel = (value: number, places: number): string => axisLabel(value, places)

/** Draws an entry as a triangle below the line: its tip is up for a purchase, and down for a sale. */
function entryMark({ x, y }: Point, { isBuy }: EntryMark): string {
  const [tip, base] = isBuy
    ? [y + markDistance - 5, y + markDistance + 4]
    : [y + markDistance + 5, y + markDistance - 4]
  const corners = [
    { x, y: tip },
    { x: x - 5, y: base },
    { x: x + 5, y: base },
  ]
  return pathThrough(corners, { fill: palette.violet })
}

function drawWorth(samples: readonly Sample[], chart: EquityChart, x: Scale): string[] {
  const { trades, entries = [], initialUsd } = chart
  const range = rangeOf([initialUsd, ...samples.map(({ usd }) => usd)], 0.08)
  const y = linearScale(range, { start: worthPane.bottom, end: worthPane.top })
  const last = samples.at(-1)
  const sampleAt = (atMs: number) => samples.find(({ ms }) => ms >= atMs) ?? last
  const tags = last
    ? placedTags([{ y: y(last.usd), text: usdLabel(last.usd, 2), color: palette.blue }], worthPane)
    : []
  const start = { stroke: palette.grey, 'stroke-dasharray': '4 3' }
  return [
    ...gridOf(worthPane, range, { scale: y, tags, labelOf: usdLabel }),
    lineBetween({ x: plot.left, y: y(initialUsd) }, { x: plot.right, y: y(initialUsd) }, start),
    pathThrough(
      samples.map(({ ms, usd }) => ({ x: x(ms), y: y(usd) })),
      { stroke: palette.blue, 'stroke-width': 2, 'stroke-linejoin': 'round' },
    ),
    ...entries.slice(-marksMax).map((entry) => {
      const near = sampleAt(entry.atMs)
      return near ? entryMark({ x: x(entry.atMs), y: y(near.usd) }, entry) : ''
    }),
    ...trades.slice(-marksMax).map(({ closedMs, netMicros }) => {
      const near = sampleAt(closedMs)
      const fill = netMicros > 0n ? palette.up : palette.down
      return near
        ? element('circle', { cx: x(closedMs), cy: y(near.usd), r: 4, fill, stroke: palette.background })
        : ''
    }),
    ...tags.flatMap(drawTag),
  ]
}

function drawFalls(samples: readonly Sample[], x: Scale): string[] {
  const lowest = Math.min(...samples.map(({ fall }) => fall), -1)
  const range: Range = { from: lowest * 1.08, to: 0 }
  const y = linearScale(range, { start: drawdownPane.bottom, end: drawdownPane.top })
  return [
    ...gridOf(drawdownPane, range, {
      scale: y,
      count: 4,
      labelOf: (value, places) => `${axisLabel(value, places)} %`,
    }),
    pathThrough(
      samples.map(({ ms, fall }) => ({ x: x(ms), y: y(fall) })),
      { stroke: palette.down, 'stroke-width': 1.5 },
    ),
    labelAt({ x: plot.left + 4, y: drawdownPane.bottom - 8 }, 'Below the highest worth before'),
  ]
}

export function equityChartSvg(chart: EquityChart): string {
  const samples = samplesOf(chart)
  const range: Range = { from: samples[0]?.ms ?? 0, to: samples.at(-1)?.ms ?? 1 }
  const x = timeScale(range)
  return documentOf([
    ...headerOf({
      title: chart.title,
      subtitle: chart.subtitle,
      legend: [
        { label: 'Worth in USD', color: palette.blue },
        ...(chart.entries ? [{ label: 'Entry', color: palette.violet }] : []),
        { label: 'Trade with a gain', color: palette.up },
        { label: 'Trade with a loss', color: palette.down },
      ],
    }),
    ...timeAxis(range, [worthPane, drawdownPane], axisY),
    ...drawWorth(samples, chart, x),
    ...drawFalls(samples, x),
    ...footerOf('Times in UTC. After fees, funding and slippage.', 'Candles of Hyperliquid'),
  ])
}

type ChartTexts = Omit<EquityChart, 'initialUsd' | 'equity'> & {
  initialUsd: string
  worth: readonly { atMs: number; usd: string }[]
}

/** Draws the worth of an account, whose amounts are decimal text; the oldest comes first. */
export const equityChartOf = ({ initialUsd, worth, ...chart }: ChartTexts): string =>
  equityChartSvg({
    ...chart,
    initialUsd: Number(initialUsd),
    equity: {
      atMs: Float64Array.from(worth, ({ atMs }) => atMs),
      usd: Float64Array.from(worth, ({ usd }) => Number(usd)),
    },
  })
