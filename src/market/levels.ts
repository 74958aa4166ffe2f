import { meanOf } from './averages.ts'
import type { Candle } from './candle.ts'

/** Levels are prices at which a market has turned, and the pivot points of the day before. */

export type Level = {
  kind: 'support' | 'resistance'
  price: number
  touches: number
  lastMs: number
}
export type Pivots = {
  pivot: number
  resistance1: number
  resistance2: number
  support1: number
  support2: number
}

/** A turning point exceeds this many candles on each side. */
const reach = 5
const levelsMax = 3
/** Turns within this share of the ATR form one level; levels are at least one ATR apart. */
const clusterAtrs = 0.5
const touchesMin = 2

export function pivotsOf({ high, low, close }: Candle): Pivots {
  const pivot = (high + low + close) / 3
  return {
    pivot,
    resistance1: 2 * pivot - low,
    resistance2: pivot + (high - low),
    support1: 2 * pivot - high,
    support2: pivot - (high - low),
  }
}

export type Turn = { price: number; atMs: number; kind: 'high' | 'low' }

/**
 * Returns the turning points: highs and lows that none of the five candles before and after reaches. The last five
 * candles have no turning point.
 */
export function turnsOf(candles: readonly Candle[]): Turn[] {
  const turns: Turn[] = []
  for (let at = reach; at < candles.length - reach; at++) {
    const candle = candles[at]
    if (!candle) continue
    const others = [...candles.slice(at - reach, at), ...candles.slice(at + 1, at + reach + 1)]
    if (others.every(({ high }) => high < candle.high))
      turns.push({ price: candle.high, atMs: candle.startMs, kind: 'high' })
    if (others.every(({ low }) => low > candle.low))
      turns.push({ price: candle.low, atMs: candle.startMs, kind: 'low' })
  }
  return turns
}

export function levelsOf(candles: readonly Candle[], atr: number): Level[] {
  const close = candles.at(-1)?.close
  if (close === undefined || !(atr > 0)) return []
  const sorted = turnsOf(candles).sort((a, b) => a.price - b.price)
  const clusters: Turn[][] = []
  for (const turn of sorted) {
    const cluster = clusters.at(-1)
    const first = cluster?.[0]
    if (cluster && first && turn.price - first.price <= clusterAtrs * atr) cluster.push(turn)
    else clusters.push([turn])
  }
  const levels = clusters.map((cluster): Level => {
    const price = meanOf(cluster.map((turn) => turn.price))
    return {
      kind: price < close ? 'support' : 'resistance',
      price,
      touches: cluster.length,
      lastMs: Math.max(...cluster.map(({ atMs }) => atMs)),
    }
  })
  const distance = ({ price }: Level) => Math.abs(price - close)
  const nearest = (kind: Level['kind']) => {
    const chosen: Level[] = []
    const candidates = levels
      .filter(
        (level) => level.kind === kind && level.touches >= touchesMin && distance(level) > clusterAtrs * atr,
      )
      .sort((a, b) => distance(a) - distance(b))
    for (const level of candidates)
      if (chosen.length < levelsMax && chosen.every(({ price }) => Math.abs(price - level.price) >= atr))
        chosen.push(level)
    return chosen
  }
  return [...nearest('support'), ...nearest('resistance')]
}
