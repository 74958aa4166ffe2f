import { between, type Random } from './random.ts'
import type { Color } from './raster.ts'

/** What a prompt asks for, by its words. What it does not say is drawn by the seed. */

export type Motif = {
  subject: 'rocket' | 'coin' | 'candles' | 'bull' | 'bear' | 'whale' | 'portrait' | 'none'
  backdrop: 'mountain' | 'city' | 'ocean' | 'space'
  time: 'dawn' | 'day' | 'dusk' | 'night'
  style: 'pixel' | 'low-poly' | 'line' | 'poster' | 'painted'
  tint: Color | undefined
  /** What is on a coin. */
  symbol: 'bitcoin' | 'ether' | undefined
  flagged: boolean
}

type Lexicon<Name extends string> = Readonly<Record<Name, readonly string[]>>

const subjects: Lexicon<Exclude<Motif['subject'], 'none'>> = {
  rocket: ['rocket', 'rockets', 'spaceship', 'launch', 'moonshot'],
  coin: ['coin', 'coins', 'token', 'bitcoin', 'btc', 'ethereum', 'eth', 'ether', 'money', 'gold'],
  candles: ['candles', 'candle', 'candlestick', 'candlesticks', 'chart', 'market', 'trading'],
  bull: ['bull', 'bulls', 'bullish', 'ox'],
  bear: ['bear', 'bears', 'bearish'],
  whale: ['whale', 'whales'],
  portrait: ['portrait', 'person', 'woman', 'man', 'face', 'trader', 'child'],
}
const backdrops: Lexicon<Motif['backdrop']> = {
  mountain: ['mountain', 'mountains', 'hill', 'hills', 'valley', 'alps', 'forest', 'meadow'],
  city: ['city', 'skyline', 'street', 'tower', 'towers', 'skyscrapers', 'downtown'],
  ocean: ['ocean', 'sea', 'beach', 'lake', 'waves', 'water', 'coast'],
  space: ['space', 'stars', 'galaxy', 'orbit', 'planet', 'cosmos'],
}
const times: Lexicon<Motif['time']> = {
  dawn: ['dawn', 'sunrise', 'morning'],
  day: ['day', 'noon', 'sunny', 'daylight', 'afternoon'],
  dusk: ['dusk', 'sunset', 'evening', 'twilight'],
  night: ['night', 'midnight', 'moonlight', 'moon', 'dark'],
}
const styles: Lexicon<Exclude<Motif['style'], 'painted'>> = {
  pixel: ['pixel', 'pixels', '8-bit', '16-bit', 'retro'],
  'low-poly': ['low-poly', 'lowpoly', 'polygonal', 'faceted'],
  line: ['line', 'sketch', 'ink', 'drawing', 'outline', 'pencil'],
  poster: ['poster', 'flat', 'screenprint', 'vector', 'minimal'],
}
const tints: Readonly<Record<string, Color>> = {
  red: [214, 48, 49],
  orange: [242, 140, 40],
  golden: [236, 186, 60],
  green: [46, 160, 96],
  teal: [32, 160, 160],
  blue: [46, 104, 214],
  purple: [126, 72, 196],
  pink: [236, 110, 170],
  neon: [240, 40, 200],
  pastel: [246, 216, 226],
}
/** Words for which the safety checker of the service flags a picture. */
const flaggedWords = ['nsfw', 'nude', 'naked', 'gore', 'explicit', 'porn']

const wordsOf = (prompt: string): ReadonlySet<string> =>
  new Set(prompt.toLowerCase().match(/[a-z0-9]+(?:-[a-z0-9]+)*/g) ?? [])

const symbolOf = (words: ReadonlySet<string>): Motif['symbol'] => {
  if (words.has('bitcoin') || words.has('btc')) return 'bitcoin'
  return words.has('ethereum') || words.has('eth') || words.has('ether') ? 'ether' : undefined
}

export const motifOf = (prompt: string, random: Random): Motif => {
  const words = wordsOf(prompt)
  const named = <Name extends string>(lexicon: Lexicon<Name>): Name | undefined =>
    (Object.keys(lexicon) as Name[]).find((name) => lexicon[name].some((word) => words.has(word)))
  const drawn = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(between(random, 0, values.length))]!
  // Drawn in any case, so that a word changes what it names and nothing else.
  const backdrop = drawn(['mountain', 'city', 'ocean'] as const)
  const time = drawn(['dawn', 'day', 'dusk', 'night'] as const)
  const subject = named(subjects) ?? 'none'
  const tint = Object.keys(tints).find((word) => words.has(word))
  return {
    subject,
    backdrop: named(backdrops) ?? (subject === 'whale' ? 'ocean' : backdrop),
    time: named(times) ?? time,
    style: named(styles) ?? 'painted',
    tint: tint === undefined ? undefined : tints[tint],
    symbol: symbolOf(words),
    flagged: flaggedWords.some((word) => words.has(word)),
  }
}
