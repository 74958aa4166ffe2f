import { dayMs } from './candle.ts'

export type Scale = (value: number) => number

export const linearScale =
  ({ from, to }: Range, { start, end }: { start: number; end: number }): Scale =>
  (value) =>
    to === from ? (start + end) / 2 : start + ((value - from) / (to - from)) * (end - start)

export type Range = { from: number; to: number }

/** Returns the range from the least to the greatest of the values, with a margin on both sides. */
export function rangeOf(values: readonly number[], margin: number): Range {
  const known = values.filter(Number.isFinite)
  if (known.length === 0) return { from: 0, to: 1 }
  const [low, high] = [Math.min(...known), Math.max(...known)]
  const room = high === low ? Math.abs(high) * 0.01 || 1 : (high - low) * margin
  return { from: low - room, to: high + room }
}

const steps = [1, 2, 2.5, 5, 10]

function powerOfTen(value: number): number {
  let power = 1
  while (power * 10 <= value) power *= 10
  while (power > value) power /= 10
  return power
}

export type Ticks = { values: number[]; places: number }

/** Returns about `count` round values within the range, and the decimal places that distinguish them. */
export function ticksOf({ from, to }: Range, count: number): Ticks {
  const rough = (to - from) / count
  if (!(rough > 0) || !Number.isFinite(rough)) return { values: [from], places: 2 }
  const power = powerOfTen(rough)
  const step = (steps.find((each) => each * power >= rough) ?? 10) * power
  const values: number[] = []
  for (let at = Math.ceil(from / step); at * step <= to; at++) values.push(at * step)
  let places = 0
  while (places < 12 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6) places++
  return { values, places }
}

const hourMs = 3_600_000
const minuteMs = 60_000
const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336, 720, 1_440, 2_160].map((hours) => hours * hourMs),
]
const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

export type TimeTick = { ms: number; label: string; isDay: boolean }

/** Returns times at round minutes, hours or days of UTC; a new day shows its date. */
export function timeTicks({ from, to }: Range, count: number): TimeTick[] {
  const step = timeSteps.find((each) => (to - from) / each <= count) ?? 4_320 * hourMs
  const ticks: TimeTick[] = []
  for (let ms = Math.ceil(from / step) * step; ms <= to; ms += step) {
    const date = new Date(ms)
    const isDay = ms % dayMs === 0
    const label = isDay
      ? `${date.getUTCDate()} ${months[date.getUTCMonth()]}`
      : date.toISOString().slice(11, 16)
    ticks.push({ ms, label, isDay })
  }
  return ticks
}
