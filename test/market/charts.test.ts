import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inflateSync } from 'node:zlib'
import { type CandleChart, candleChartAlt, candleChartSvg } from '#market/candle-chart.ts'
import { renderPng } from '#market/chart-png.ts'
import { ticksOf, timeTicks } from '#market/chart-scale.ts'
import { indicatorAt } from '#market/indicator-list.ts'
import { computeIndicators } from '#market/indicators.ts'
import { levelsOf } from '#market/levels.ts'
import { performanceChartSvg } from '#market/performance-chart.ts'
import { palette } from '#market/svg.ts'
import { priceWalk } from './price-walk.ts'

const candles = priceWalk({ seed: 3, count: 1_100, timeframe: '4h', price: 26 })
const set = computeIndicators(candles)
const last = candles.at(-1)!
const chart: CandleChart = {
  asset: 'HYPE',
  timeframe: '4h',
  candles,
  set,
  levels: levelsOf(candles, indicatorAt(set, 'atr_14', candles.length - 1)!),
  readAtMs: last.endMs + 720_000,
}

/** The pixels of an image with 8 bits of red, green, blue and opacity. */
function pixelsOf(png: Uint8Array): { width: number; height: number; colors: Map<string, number> } {
  const bytes = Buffer.from(png)
  const data: Buffer[] = []
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    if (bytes.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(bytes.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
  assert.deepEqual([bytes[24], bytes[25]], [8, 6])
  const lines = inflateSync(Buffer.concat(data))
  const stride = width * 4
  const rows = Buffer.alloc(stride * height)
  const paeth = (a: number, b: number, c: number) => {
    const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)]
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c
  }
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (stride + 1)]!
    for (let x = 0; x < stride; x++) {
      const left = x < 4 ? 0 : rows[y * stride + x - 4]!
      const above = y === 0 ? 0 : rows[(y - 1) * stride + x]!
      const corner = y === 0 || x < 4 ? 0 : rows[(y - 1) * stride + x - 4]!
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter]!
      rows[y * stride + x] = lines[y * (stride + 1) + 1 + x]! + guess
    }
  }
  const colors = new Map<string, number>()
  for (let at = 0; at < rows.length; at += 4) {
    const color = `#${rows.toString('hex', at, at + 3)}`
    colors.set(color, (colors.get(color) ?? 0) + 1)
  }
  return { width, height, colors }
}

test('a chart has candles, averages, levels, volume and RSI, and repeats to the byte', async () => {
  const svg = candleChartSvg(chart)
  const png = await renderPng(svg)
  assert.deepEqual(Buffer.from(png), Buffer.from(await renderPng(svg)))
  const { width, height, colors } = pixelsOf(png)
  assert.deepEqual([width, height], [1_200, 675])
  for (const color of [palette.up, palette.down, palette.blue, palette.orange, palette.violet, palette.grey])
    assert.ok((colors.get(color) ?? 0) > 300, `${colors.get(color)} pixels of ${color}`)
  assert.ok((colors.get(palette.background) ?? 0) > 500_000)
})

test('text of a chart is drawn with the font that comes with the gateway', async () => {
  const ink = (text: string) => renderPng(candleChartSvg({ ...chart, asset: text }))
  const [one, other] = await Promise.all([ink('HYPE'), ink('MMMM')])
  const dark = (png: Uint8Array) => pixelsOf(png).colors.get(palette.ink) ?? 0
  assert.ok(dark(one) > 200 && dark(other) > dark(one) + 20, `${dark(one)} and ${dark(other)}`)
})

test('names are escaped, and a market without candles has a chart that says so', async () => {
  const svg = candleChartSvg({ ...chart, asset: '<script>"&' })
  assert.ok(svg.includes('&lt;script&gt;&quot;&amp; perpetual') && !svg.includes('<script'))
  const none: CandleChart = { ...chart, candles: [], set: computeIndicators([]), levels: [] }
  assert.ok(candleChartSvg(none).includes('No closed candle exists.'))
  assert.equal(candleChartAlt(none), 'Chart of HYPE: no closed candle exists.')
  assert.ok((await renderPng(candleChartSvg(none))).length > 1_000)
  assert.ok(
    (await renderPng(performanceChartSvg({ asset: 'HYPE', candles: [], readAtMs: 0 }))).length > 1_000,
  )
})

test('the description of a chart has the values that are drawn', () => {
  const svg = candleChartSvg(chart)
  const alt = candleChartAlt(chart)
  const drawn = [...svg.matchAll(/>([\d,]+\.\d+)</g)].map(([, text]) => text)
  assert.match(
    alt,
    /^120 4h candles of HYPE until 2026-\d\d-\d\d \d\d:\d\d UTC, last close [\d.]+ USD\. EMA 12/,
  )
  for (const { price } of chart.levels.slice(0, 2))
    assert.ok(alt.includes(`at ${price.toFixed(2)} USD`), `${price} in ${alt}`)
  for (const [, text] of alt.matchAll(/(?:last close|support at|resistance at) ([\d.,]+) USD/g))
    if (drawn.includes(text)) return
  assert.fail(`none of ${alt} in ${drawn.join(' ')}`)
})

test('a market beside another has two lines', async () => {
  const own = priceWalk({ seed: 21, count: 180, timeframe: '1d' })
  const benchmark = {
    asset: 'BTC',
    candles: priceWalk({ seed: 2, count: 180, timeframe: '1d', drift: 0.001 }),
  }
  const readAtMs = own.at(-1)!.endMs
  const { colors } = pixelsOf(
    await renderPng(performanceChartSvg({ asset: 'HYPE', candles: own, benchmark, readAtMs })),
  )
  for (const color of [palette.blue, palette.orange, palette.down])
    assert.ok((colors.get(color) ?? 0) > 200, `${colors.get(color)} pixels of ${color}`)
})

test('axes have round values within their range', () => {
  for (const [from, to] of [
    [0.0000221, 0.0000239],
    [17.2, 23.1],
    [88_000, 104_000],
    [-31, 64],
  ] as const) {
    const { values } = ticksOf({ from, to }, 7)
    assert.ok(values.length >= 3 && values.length <= 8, `${values}`)
    assert.ok(values.every((value) => value >= from && value <= to))
  }
  const from = Date.UTC(2026, 1, 27, 20)
  const labels = timeTicks({ from, to: from + 2 * 86_400_000 }, 10).map(({ label }) => label)
  assert.deepEqual(labels.slice(0, 3), ['28 Feb', '06:00', '12:00'])
})
