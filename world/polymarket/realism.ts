import {
  createSettingsControl,
  fieldsOf,
  type Lag,
  lagOf,
  longestMs,
  noLag,
  numberIn,
  type Parsers,
  readSettings,
  rejectSetting,
  type SettingsControl,
} from '#world/venue-core/realism-settings.ts'
import type { TradePlan } from './state.ts'
import { plainPlan } from './trades.ts'

/** How unpleasant the venue is. A rate is a share from 0 to 1. */
export type Realism = {
  seed: number
  /** Reads of open orders and of one order show them as they were so long ago. */
  ordersLag: Lag
  tradesLag: Lag
  /** Balances and allowances that orders are checked with. */
  balanceLag: Lag
  dataLag: Lag
  gammaLag: Lag
  relayerLag: Lag
  /** Frames of both sockets. */
  socketLag: Lag
  /** Time between a match and its transaction, and between its block and CONFIRMED. */
  settleDelay: Lag
  confirmDelay: Lag
  /** Share of trades that fail, that are sent again under another hash, and that first show as not broadcast. */
  failRate: number
  retryRate: number
  unbroadcastRate: number
  /** Share of fills of market orders to buy that stay in the "sum of matched orders" for ever. */
  phantomRate: number
  /** Queueing before a request is served, as upstream throttles. */
  queue: Lag
  /** Share of requests: refused with 429, replies lost or late, pages of a proxy in place of JSON. */
  busyRate: number
  lostReplyRate: number
  lateReply: Lag
  htmlRate: number
  /** Tokens per second and signer; 0 means that the buckets only count. */
  ordersPerSecond: number
  cancelsPerSecond: number
  /** Whether the budget that headers state is a fraction with a time far away, as no server should state it. */
  limitHeaders: 'plain' | 'odd'
  /** Mean life of a socket; 0 means that none is dropped. */
  streamDropMs: number
  /** A socket on which a client sends nothing for so long ends; 0 means that none does. */
  socketSilenceMs: number
  /** Share of `/neg-risk` answers that contradict Gamma. */
  negRiskContradictionRate: number
  /** Share of orders that are refused with `order_version_mismatch`. */
  versionMismatchRate: number
  /** Share of Gamma's markets whose `version` contradicts their ids. */
  versionContradictionRate: number
  geoblock: 'open' | 'blocked' | 'closeOnly'
  /** Whether an ordinary account may be the maker of orders. */
  eoaMakers: 'allowed' | 'refused'
  /** How far ahead a good-til-date order must end at least. */
  gtdMinMs: number
  /** Whether a balance and its approvals that the venue knows stay as they are until a client asks for an update. */
  balanceReads: 'lagging' | 'untilUpdate'
  relayer: {
    /** Transactions a day; 0 means no quota. */
    dailyQuota: number
    busyRate: number
    nonceMismatchRate: number
    precheckRate: number
    /** Targets and spenders that are refused although the list has them. */
    refusedTargets: string[]
  }
  /** Share of wallets with open winnings that the operator redeems by itself, and how late. */
  autoRedeem: { rate: number; delayMs: number }
}

export const quiet: Realism = {
  seed: 1,
  ordersLag: noLag,
  tradesLag: noLag,
  balanceLag: noLag,
  dataLag: noLag,
  gammaLag: noLag,
  relayerLag: noLag,
  socketLag: noLag,
  settleDelay: noLag,
  confirmDelay: noLag,
  failRate: 0,
  retryRate: 0,
  unbroadcastRate: 0,
  phantomRate: 0,
  queue: noLag,
  busyRate: 0,
  lostReplyRate: 0,
  lateReply: noLag,
  htmlRate: 0,
  ordersPerSecond: 0,
  cancelsPerSecond: 0,
  limitHeaders: 'plain',
  streamDropMs: 0,
  socketSilenceMs: 0,
  negRiskContradictionRate: 0,
  versionMismatchRate: 0,
  versionContradictionRate: 0,
  geoblock: 'open',
  eoaMakers: 'allowed',
  gtdMinMs: 180_000,
  balanceReads: 'lagging',
  relayer: { dailyQuota: 0, busyRate: 0, nonceMismatchRate: 0, precheckRate: 0, refusedTargets: [] },
  autoRedeem: { rate: 0, delayMs: 0 },
}

const late: Lag = { rate: 0.5, minMs: 0, maxMs: 5_000 }
const short: Lag = { rate: 0.5, minMs: 0, maxMs: 1_500 }

/** What users of the real venue report of an ordinary day. */
export const realistic: Realism = {
  ...quiet,
  ordersLag: short,
  tradesLag: short,
  balanceLag: short,
  dataLag: late,
  gammaLag: late,
  relayerLag: short,
  socketLag: { rate: 0.3, minMs: 0, maxMs: 800 },
  settleDelay: { rate: 1, minMs: 0, maxMs: 1_500 },
  confirmDelay: { rate: 1, minMs: 0, maxMs: 1_500 },
  failRate: 0.02,
  retryRate: 0.03,
  unbroadcastRate: 0.1,
  busyRate: 0.01,
  lostReplyRate: 0.003,
  htmlRate: 0.005,
  ordersPerSecond: 40,
  cancelsPerSecond: 80,
  streamDropMs: 60_000,
  socketSilenceMs: 30_000,
  relayer: { dailyQuota: 0, busyRate: 0.02, nonceMismatchRate: 0.01, precheckRate: 0.01, refusedTargets: [] },
  autoRedeem: { rate: 0.3, delayMs: 10_000 },
  eoaMakers: 'refused',
}

/** A bad day: settlement late and unsure, reads stale, replies lost. */
export const stormy: Realism = {
  ...realistic,
  ordersLag: late,
  tradesLag: late,
  balanceLag: late,
  relayerLag: late,
  settleDelay: { rate: 1, minMs: 500, maxMs: 5_000 },
  confirmDelay: { rate: 1, minMs: 500, maxMs: 5_000 },
  failRate: 0.15,
  retryRate: 0.2,
  unbroadcastRate: 0.3,
  phantomRate: 0.05,
  queue: { rate: 0.05, minMs: 500, maxMs: 20_000 },
  busyRate: 0.05,
  lostReplyRate: 0.02,
  lateReply: { rate: 0.05, minMs: 1_000, maxMs: 15_000 },
  htmlRate: 0.02,
  streamDropMs: 15_000,
  negRiskContradictionRate: 0.02,
  versionMismatchRate: 0.02,
  versionContradictionRate: 0.02,
}

/** One trouble each, on every occasion. */
const troubles: Readonly<Record<string, Partial<Realism>>> = {
  laggingReads: Object.fromEntries(
    ['orders', 'trades', 'balance', 'data', 'gamma', 'relayer'].map((server) => [`${server}Lag`, late]),
  ),
  failedMatches: { settleDelay: { rate: 1, minMs: 200, maxMs: 2_000 }, failRate: 1 },
  replacedHashes: { retryRate: 1, unbroadcastRate: 1 },
  phantomLocks: { phantomRate: 1 },
  geoblocked: { geoblock: 'blocked' },
  closeOnly: { geoblock: 'closeOnly' },
  staleBalances: { balanceReads: 'untilUpdate' },
  depositWalletsOnly: { eoaMakers: 'refused' },
  throttled: { ordersPerSecond: 2, cancelsPerSecond: 4 },
  busy: { busyRate: 1 },
  queued: { queue: { rate: 1, minMs: 500, maxMs: 20_000 } },
  lostReplies: { lostReplyRate: 1 },
  lateReplies: { lateReply: { rate: 1, minMs: 1_000, maxMs: 15_000 } },
  proxyPages: { htmlRate: 1 },
  droppedSockets: { streamDropMs: 1_000 },
  silentSockets: { socketSilenceMs: 30_000 },
  busyRelayer: { relayer: { ...quiet.relayer, busyRate: 1 } },
  staleNonces: { relayer: { ...quiet.relayer, nonceMismatchRate: 1 } },
  skippedRedeems: { relayer: { ...quiet.relayer, precheckRate: 1 } },
  relayerQuota: { relayer: { ...quiet.relayer, dailyQuota: 1 } },
  contradictoryNegRisk: { negRiskContradictionRate: 1 },
  versionMismatches: { versionMismatchRate: 1 },
  contradictoryVersions: { versionContradictionRate: 1 },
}

export const presets: Readonly<Record<string, Realism>> = {
  quiet,
  realistic,
  stormy,
  ...Object.fromEntries(
    Object.entries(troubles).map(([name, settings]) => [name, { ...quiet, ...settings }]),
  ),
}

const rate = (name: string, value: unknown): number => numberIn(name, value, 0, 1)

const oneOf =
  <T extends string>(...words: readonly T[]) =>
  (name: string, value: unknown): T =>
    words.find((word) => word === value) ?? rejectSetting(name, `one of ${words.join(', ')}`)

const relayerOf = (name: string, value: unknown): Realism['relayer'] => {
  const given = { ...quiet.relayer, ...fieldsOf(name, value) }
  const { refusedTargets } = given
  if (!Array.isArray(refusedTargets) || refusedTargets.some((each) => typeof each !== 'string'))
    return rejectSetting(`${name}.refusedTargets`, 'a list of addresses')
  return {
    dailyQuota: numberIn(`${name}.dailyQuota`, given.dailyQuota, 0, 1_000_000),
    busyRate: rate(`${name}.busyRate`, given.busyRate),
    nonceMismatchRate: rate(`${name}.nonceMismatchRate`, given.nonceMismatchRate),
    precheckRate: rate(`${name}.precheckRate`, given.precheckRate),
    refusedTargets: refusedTargets.map((target) => target.toLowerCase()),
  }
}

const autoRedeemOf = (name: string, value: unknown): Realism['autoRedeem'] => {
  const given = { ...quiet.autoRedeem, ...fieldsOf(name, value) }
  return {
    rate: rate(`${name}.rate`, given.rate),
    delayMs: numberIn(`${name}.delayMs`, given.delayMs, 0, longestMs),
  }
}

const ofKind = (setting: unknown) => (typeof setting === 'number' ? rate : lagOf)

/** Numbers are rates unless they are named below. */
const parsers = {
  ...Object.fromEntries(Object.entries(quiet).map(([name, setting]) => [name, ofKind(setting)])),
  seed: (name, value) => Math.trunc(numberIn(name, value, 0, 2_147_483_647)),
  ordersPerSecond: (name, value) => numberIn(name, value, 0, 1_000_000),
  cancelsPerSecond: (name, value) => numberIn(name, value, 0, 1_000_000),
  streamDropMs: (name, value) => numberIn(name, value, 0, longestMs),
  socketSilenceMs: (name, value) => numberIn(name, value, 0, longestMs),
  limitHeaders: oneOf('plain', 'odd'),
  geoblock: oneOf('open', 'blocked', 'closeOnly'),
  eoaMakers: oneOf('allowed', 'refused'),
  gtdMinMs: (name, value) => numberIn(name, value, 0, longestMs),
  balanceReads: oneOf('lagging', 'untilUpdate'),
  relayer: relayerOf,
  autoRedeem: autoRedeemOf,
} as Parsers<Realism>

export type RealismControl = SettingsControl<Realism>

export const readRealism = (body: Record<string, unknown>, now: Realism): Realism =>
  readSettings(body, now, { parsers, presets })

export const createRealismControl = (
  initial: Realism,
  onChange: (realism: Realism, before: Realism) => void = () => {},
): RealismControl => createSettingsControl(initial, { quiet, parsers }, onChange)

/** Drawn when an order arrives and stored with it, so that a replay is equal. */
export const drawPlan = (
  control: RealismControl,
  { isMarketOrder }: { isMarketOrder: boolean },
): TradePlan => {
  if (!control.isSet()) return plainPlan
  const { failRate, retryRate, unbroadcastRate, phantomRate } = control.current()
  return {
    delayMs: Math.round(control.lagMs('settleDelay')),
    confirmMs: Math.round(control.lagMs('confirmDelay')),
    fails: control.isHit('failRate', failRate),
    retries: control.isHit('retryRate', retryRate) ? 1 : 0,
    isPhantom: isMarketOrder && control.isHit('phantomRate', phantomRate),
    firstStatus: control.isHit('unbroadcastRate', unbroadcastRate) ? 'MATCHED_NOT_BROADCASTED' : 'MATCHED',
  }
}
