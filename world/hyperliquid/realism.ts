import { nextRandom, type RandomState } from '#world/venue-core/random.ts'
import { RequestError } from './errors.ts'
import type { Account } from './state.ts'

/** Delays a share of the answers: `rate` of them by `minMs` to `maxMs`. */
export type Lag = { rate: number; minMs: number; maxMs: number }

/** How far the venue's answers lag behind its state. Applies to reads only: no write is affected. */
export type Realism = {
  seed: number
  /** `orderStatus` and `historicalOrders`: a new order is `unknownOid` until the lag has passed. */
  statusLag: Lag
  /** Probability that `orderStatus` answers `unknownOid` for an order younger than `forMs`. */
  statusBlind: { rate: number; forMs: number }
  /** `userFills`, `userFillsByTime`, and fills on streams. */
  fillsLag: Lag
  openOrdersLag: Lag
  clearinghouseLag: Lag
  spotLag: Lag
  /** Funding and other ledger records. */
  ledgerLag: Lag
  /** Mode of accounts that open from now on. */
  accountMode: Account['abstraction']
  /** Adds records of kinds, coins and orders that this client did not make to lists. */
  foreignRecords: boolean
  /** Share of ended orders whose status is `word` instead of the documented one. */
  unknownStatus: { rate: number; word: string }
  /** Share of ledger records whose amounts carry the error of a binary float. */
  printedFloats: number
  /** Request weight per address; 0 means no limit. */
  weightPerMinute: number
  /** Mean life of a stream; 0 means that none is dropped. */
  streamDropMs: number
  /**
   * Network whose signatures are valid. `both` serves clients that sign for the test network wherever the URL is not
   * the public one.
   */
  network: 'both' | 'mainnet' | 'testnet'
}

type SettingName = Exclude<keyof Realism, 'seed'>
export type LagSetting = {
  [K in SettingName]: Realism[K] extends Lag ? K : never
}[SettingName]

const none: Lag = { rate: 0, minMs: 0, maxMs: 0 }
const often: Lag = { rate: 0.5, minMs: 0, maxMs: 800 }

export const quiet: Realism = {
  seed: 1,
  statusLag: none,
  statusBlind: { rate: 0, forMs: 0 },
  fillsLag: none,
  openOrdersLag: none,
  clearinghouseLag: none,
  spotLag: none,
  ledgerLag: none,
  accountMode: 'default',
  foreignRecords: false,
  unknownStatus: { rate: 0, word: 'unlistedCancel' },
  printedFloats: 0,
  weightPerMinute: 0,
  streamDropMs: 0,
  network: 'both',
}

/** Deviations that users of the real venue report, all at once. */
export const realistic: Realism = {
  ...quiet,
  statusLag: often,
  statusBlind: { rate: 0.1, forMs: 1_000 },
  fillsLag: often,
  openOrdersLag: often,
  clearinghouseLag: often,
  spotLag: often,
  ledgerLag: often,
  foreignRecords: true,
  printedFloats: 0.5,
  weightPerMinute: 1_200,
  streamDropMs: 30_000,
}

export const presets: Readonly<Record<string, Realism>> = { quiet, realistic }

const rejectSetting = (name: string, wants: string): never => {
  throw new RequestError(`${name} must be ${wants}`)
}

const numberIn = (name: string, value: unknown, low: number, high: number): number =>
  typeof value === 'number' && value >= low && value <= high
    ? value
    : rejectSetting(name, `a number from ${low} to ${high}`)

const longestMs = 600_000

const fieldsOf = (name: string, value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)
    : rejectSetting(name, 'an object')

/** A number is a lag of exactly that many milliseconds on every answer. */
const lagOf = (name: string, value: unknown): Lag => {
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

const blindOf = (name: string, value: unknown): Realism['statusBlind'] => {
  const { rate = 1, forMs } = fieldsOf(name, value)
  return {
    rate: numberIn(`${name}.rate`, rate, 0, 1),
    forMs: numberIn(`${name}.forMs`, forMs, 0, longestMs),
  }
}

const wordOf = (name: string, value: unknown): Realism['unknownStatus'] => {
  const { rate = 1, word } = fieldsOf(name, value)
  if (typeof word !== 'string' || !/^[a-zA-Z]{1,40}$/.test(word))
    return rejectSetting(`${name}.word`, 'one word')
  return { rate: numberIn(`${name}.rate`, rate, 0, 1), word }
}

const modes = ['default', 'disabled', 'unifiedAccount', 'portfolioMargin'] as const

export const modeOf = (name: string, value: unknown): Account['abstraction'] =>
  modes.find((mode) => mode === value) ?? rejectSetting(name, `one of ${modes.join(', ')}`)

const parsers: { [K in keyof Realism]: (name: string, value: unknown) => Realism[K] } = {
  seed: (name, value) => Math.trunc(numberIn(name, value, 0, 2_147_483_647)),
  statusLag: lagOf,
  statusBlind: blindOf,
  fillsLag: lagOf,
  openOrdersLag: lagOf,
  clearinghouseLag: lagOf,
  spotLag: lagOf,
  ledgerLag: lagOf,
  accountMode: modeOf,
  foreignRecords: (name, value) =>
    typeof value === 'boolean' ? value : rejectSetting(name, 'true or false'),
  unknownStatus: wordOf,
  printedFloats: (name, value) => numberIn(name, value, 0, 1),
  weightPerMinute: (name, value) => numberIn(name, value, 0, 1_000_000_000),
  streamDropMs: (name, value) => numberIn(name, value, 0, longestMs),
  network: (name, value) =>
    (['both', 'mainnet', 'testnet'] as const).find((each) => each === value) ??
    rejectSetting(name, 'both, mainnet or testnet'),
}

/** Applies settings to `preset`, or to the current settings. */
export const readRealism = (body: Record<string, unknown>, now: Realism): Realism => {
  const { preset, ...fields } = body
  const from =
    preset === undefined ? now : (presets[String(preset)] ?? rejectSetting('preset', 'quiet or realistic'))
  const seed = preset === undefined ? now.seed : from.seed
  const set: Record<string, unknown> = { ...from, seed }
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(parsers, name)) throw new RequestError(`There is no setting ${name}`)
    set[name] = parsers[name as keyof Realism](name, value)
  }
  return set as Realism
}

export const longestLagMs = (realism: Realism): number =>
  Math.max(
    realism.statusLag.maxMs,
    realism.fillsLag.maxMs,
    realism.openOrdersLag.maxMs,
    realism.clearinghouseLag.maxMs,
    realism.spotLag.maxMs,
    realism.ledgerLag.maxMs,
  )

/** Stable share of records: the same record is picked at every read, and by every instance with the same seed. */
export const isPicked = (seed: number, key: string, rate: number): boolean => {
  if (rate <= 0) return false
  let at = seed | 0
  for (let i = 0; i < key.length; i += 1) at = (Math.imul(at, 31) + key.charCodeAt(i)) | 0
  return nextRandom({ at }) < rate
}

export type RealismControl = {
  current: () => Realism
  /** False while every setting is that of `quiet`, so that an undisturbed read costs nothing. */
  isSet: () => boolean
  set: (realism: Realism) => void
  /** One draw; each setting has its own sequence of random numbers, so that one does not shift another. */
  lagMs: (setting: LagSetting) => number
  isHit: (setting: SettingName, rate: number) => boolean
}

export const createRealismControl = (
  initial: Realism,
  onChange: (realism: Realism, before: Realism) => void,
): RealismControl => {
  let realism = initial
  let random = new Map<SettingName, RandomState>()
  const draw = (setting: SettingName): number => {
    const known = random.get(setting) ?? {
      at: realism.seed ^ (Object.keys(parsers).indexOf(setting) * 0x9e3779b1),
    }
    random.set(setting, known)
    return nextRandom(known)
  }
  const isHit = (setting: SettingName, rate: number): boolean => rate > 0 && draw(setting) < rate
  return {
    current: () => realism,
    isSet: () => JSON.stringify({ ...realism, seed: 0 }) !== JSON.stringify({ ...quiet, seed: 0 }),
    set: (next) => {
      const before = realism
      realism = next
      random = new Map()
      onChange(next, before)
    },
    lagMs: (setting) => {
      const { rate, minMs, maxMs } = realism[setting]
      return isHit(setting, rate) ? minMs + draw(setting) * (maxMs - minMs) : 0
    },
    isHit,
  }
}
