import { nextRandom, type RandomState } from './random.ts'
import { RequestError } from './request-error.ts'

/** Delays a share of the answers: `rate` of them by `minMs` to `maxMs`. */
export type Lag = { rate: number; minMs: number; maxMs: number }

export const noLag: Lag = { rate: 0, minMs: 0, maxMs: 0 }

export const longestMs = 600_000

export const rejectSetting = (name: string, wants: string): never => {
  throw new RequestError(`${name} must be ${wants}`)
}

export const numberIn = (name: string, value: unknown, low: number, high: number): number =>
  typeof value === 'number' && value >= low && value <= high
    ? value
    : rejectSetting(name, `a number from ${low} to ${high}`)

export const fieldsOf = (name: string, value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)
    : rejectSetting(name, 'an object')

/** A number is a lag of exactly that many milliseconds on every answer. */
export const lagOf = (name: string, value: unknown): Lag => {
  if (typeof value === 'number') {
    const ms = numberIn(name, value, 0, longestMs)
    return { rate: ms === 0 ? 0 : 1, minMs: ms, maxMs: ms }
  }
  const { rate = 1, minMs = 0, maxMs } = fieldsOf(name, value)
  const from = numberIn(`${name}.minMs`, minMs, 0, longestMs)
  return {
    rate: numberIn(`${name}.rate`, rate, 0, 1),
    minMs: from,
    maxMs: numberIn(`${name}.maxMs`, maxMs, from, longestMs),
  }
}

export type Parsers<Settings> = {
  [K in keyof Settings]: (name: string, value: unknown) => Settings[K]
}

type Seeded = { seed: number }

/** Applies settings to `preset`, or to the current settings. */
export const readSettings = <Settings extends Seeded>(
  body: Record<string, unknown>,
  now: Settings,
  { parsers, presets }: { parsers: Parsers<Settings>; presets: Readonly<Record<string, Settings>> },
): Settings => {
  const { preset, ...fields } = body
  const from =
    preset === undefined
      ? now
      : (presets[String(preset)] ?? rejectSetting('preset', Object.keys(presets).join(' or ')))
  const seed = preset === undefined ? now.seed : from.seed
  const set: Record<string, unknown> = { ...from, seed }
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(parsers, name)) throw new RequestError(`There is no setting ${name}`)
    set[name] = parsers[name as keyof Settings](name, value)
  }
  return set as Settings
}

/** Stable share of records: the same record is picked at every read, and by every instance with the same seed. */
export const isPicked = (seed: number, key: string, rate: number): boolean => {
  if (rate <= 0) return false
  let at = seed | 0
  for (let i = 0; i < key.length; i += 1) at = (Math.imul(at, 31) + key.charCodeAt(i)) | 0
  return nextRandom({ at }) < rate
}

export type LagNames<Settings> = {
  [K in keyof Settings]: Settings[K] extends Lag ? K : never
}[keyof Settings]

export type SettingsControl<Settings> = {
  current: () => Settings
  /** False while every setting is that of `quiet`, so that an undisturbed read costs nothing. */
  isSet: () => boolean
  /** The sequences of random numbers go on, unless the request names a seed. */
  set: (settings: Settings, request: Record<string, unknown>) => void
  /** One draw; each setting has its own sequence of random numbers, so that one does not shift another. */
  lagMs: (setting: LagNames<Settings>) => number
  isHit: (setting: keyof Settings, rate: number) => boolean
}

export const createSettingsControl = <Settings extends Seeded>(
  initial: Settings,
  { quiet, parsers }: { quiet: Settings; parsers: Parsers<Settings> },
  onChange: (settings: Settings, before: Settings) => void,
): SettingsControl<Settings> => {
  let settings = initial
  let random = new Map<keyof Settings, RandomState>()
  const names = Object.keys(parsers) as (keyof Settings)[]
  const draw = (setting: keyof Settings): number => {
    const known = random.get(setting) ?? { at: settings.seed ^ (names.indexOf(setting) * 0x9e3779b1) }
    random.set(setting, known)
    return nextRandom(known)
  }
  const isHit = (setting: keyof Settings, rate: number): boolean => rate > 0 && draw(setting) < rate
  return {
    current: () => settings,
    isSet: () => JSON.stringify({ ...settings, seed: 0 }) !== JSON.stringify({ ...quiet, seed: 0 }),
    set: (next, request) => {
      const before = settings
      settings = next
      if (request.seed !== undefined || next.seed !== before.seed) random = new Map()
      onChange(next, before)
    },
    lagMs: (setting) => {
      const { rate, minMs, maxMs } = settings[setting] as Lag
      return isHit(setting, rate) ? minMs + draw(setting) * (maxMs - minMs) : 0
    },
    isHit,
  }
}
