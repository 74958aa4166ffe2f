import {
  createSettingsControl,
  fieldsOf,
  type Lag,
  type LagNames,
  lagOf,
  longestMs,
  noLag,
  numberIn,
  type Parsers,
  readSettings,
  rejectSetting,
  type SettingsControl,
} from '#world/venue-core/realism-settings.ts'
import type { Account } from './state.ts'

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

export type LagSetting = LagNames<Realism>

const often: Lag = { rate: 0.5, minMs: 0, maxMs: 800 }

export const quiet: Realism = {
  seed: 1,
  statusLag: noLag,
  statusBlind: { rate: 0, forMs: 0 },
  fillsLag: noLag,
  openOrdersLag: noLag,
  clearinghouseLag: noLag,
  spotLag: noLag,
  ledgerLag: noLag,
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

const parsers: Parsers<Realism> = {
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
export const readRealism = (body: Record<string, unknown>, now: Realism): Realism =>
  readSettings(body, now, { parsers, presets })

export const longestLagMs = (realism: Realism): number =>
  Math.max(
    realism.statusLag.maxMs,
    realism.fillsLag.maxMs,
    realism.openOrdersLag.maxMs,
    realism.clearinghouseLag.maxMs,
    realism.spotLag.maxMs,
    realism.ledgerLag.maxMs,
  )

export type RealismControl = SettingsControl<Realism>

export const createRealismControl = (
  initial: Realism,
  onChange: (realism: Realism, before: Realism) => void,
): RealismControl => createSettingsControl(initial, { quiet, parsers }, onChange)
