import { seededRandom } from '#world/injected-failures.ts'
import { HttpError } from '#world/router.ts'

/** Delays a share of cases: `rate` of them by `minMs` to `maxMs`. */
export type Lag = { rate: number; minMs: number; maxMs: number }

/** What swaps on one EVM chain call: the pools themselves, or a version of Relay's router. */
export const swapCallForms = ['pool', '2.1', '3', '3.2'] as const
export type SwapCallForm = (typeof swapCallForms)[number]

/** How a deposit on Solana is made: by Relay's program, or by a transfer to the solver with a memo. */
export const solanaDepositForms = ['program', 'transfer'] as const
export type SolanaDepositForm = (typeof solanaDepositForms)[number]

/** How far the solver deviates from one that answers and pays at once. */
export type Realism = {
  seed: number
  /** Reads of a status show what was true this long ago. */
  statusLag: Lag
  /** Share of reads that show the status before the current one. */
  statusBack: number
  /** From the confirmation of a deposit to its fill. */
  fillLag: Lag
  /** A fill that waits longer than this is `delayed`. */
  delayedAfterMs: number
  /** Blocks that contain a deposit or follow it before it is filled; a block counts as two seconds at most. */
  confirmations: number
  /** A deposit that was removed from its chain fails after this time. */
  vanishedMsMax: number
  /** Share of deposits whose success is announced without a fill, and which are then refunded. */
  retracted: number
  retractAfterMs: number
  /** Quotes of the same request differ by up to so many hundredths of a percent. */
  quoteNoiseBps: number
  /** Requests per minute and client; 0 means no limit. */
  quotesPerMinute: number
  readsPerMinute: number
  /** Shares of requests that are answered with 429, with an HTML page, or not at all after they took effect. */
  busy: number
  html: number
  lostReply: number
  /** The solver pays the gas of refunds, so that a refund is the whole deposit. */
  sponsoredRefunds: boolean
  /** Share of refunds in USDC of the origin chain. */
  refundsInUsdc: number
  /** The largest deposit, in dollars, that is filled. */
  capacityUsd: number
  swapCalls: SwapCallForm
  solanaDeposits: SolanaDepositForm
}

const none: Lag = { rate: 0, minMs: 0, maxMs: 0 }

export const quiet: Realism = {
  seed: 1,
  statusLag: none,
  statusBack: 0,
  fillLag: none,
  delayedAfterMs: 10_000,
  confirmations: 1,
  vanishedMsMax: 60_000,
  retracted: 0,
  retractAfterMs: 2_000,
  quoteNoiseBps: 0,
  quotesPerMinute: 0,
  readsPerMinute: 0,
  busy: 0,
  html: 0,
  lostReply: 0,
  sponsoredRefunds: false,
  refundsInUsdc: 0,
  capacityUsd: 1_000_000,
  swapCalls: 'pool',
  solanaDeposits: 'program',
}

export const realistic: Realism = {
  ...quiet,
  statusLag: { rate: 0.5, minMs: 0, maxMs: 1_500 },
  statusBack: 0.05,
  fillLag: { rate: 0.3, minMs: 200, maxMs: 3_000 },
  delayedAfterMs: 1_500,
  confirmations: 2,
  retracted: 0.02,
  quoteNoiseBps: 8,
  quotesPerMinute: 50,
  readsPerMinute: 200,
  busy: 0.02,
  html: 0.01,
  lostReply: 0.01,
  refundsInUsdc: 0.1,
}

const presets: Readonly<Record<string, Realism>> = { quiet, realistic }
const msMax = 600_000

const rejectSetting = (name: string, wants: string): never => {
  throw new HttpError(400, `${name} must be ${wants}.`)
}

const numberIn = (name: string, value: unknown, low: number, high: number): number =>
  typeof value === 'number' && value >= low && value <= high
    ? value
    : rejectSetting(name, `a number from ${low} to ${high}`)

/** A number is a lag of exactly that many milliseconds in every case. */
const lagOf = (name: string, value: unknown): Lag => {
  if (typeof value === 'number') {
    const ms = numberIn(name, value, 0, msMax)
    return { rate: ms === 0 ? 0 : 1, minMs: ms, maxMs: ms }
  }
  if (typeof value !== 'object' || value === null) return rejectSetting(name, 'a number or an object')
  const { rate = 1, minMs = 0, maxMs } = value as Record<string, unknown>
  const from = numberIn(`${name}.minMs`, minMs, 0, msMax)
  return {
    rate: numberIn(`${name}.rate`, rate, 0, 1),
    minMs: from,
    maxMs: numberIn(`${name}.maxMs`, maxMs, from, msMax),
  }
}

const share = (name: string, value: unknown) => numberIn(name, value, 0, 1)
const duration = (name: string, value: unknown) => numberIn(name, value, 0, msMax)
const perMinute = (name: string, value: unknown) => numberIn(name, value, 0, 1_000_000)

const parsers: { [K in keyof Realism]: (name: string, value: unknown) => Realism[K] } = {
  seed: (name, value) => Math.trunc(numberIn(name, value, 0, 2 ** 31)),
  statusLag: lagOf,
  statusBack: share,
  fillLag: lagOf,
  delayedAfterMs: duration,
  confirmations: (name, value) => Math.trunc(numberIn(name, value, 1, 64)),
  vanishedMsMax: duration,
  retracted: share,
  retractAfterMs: duration,
  quoteNoiseBps: (name, value) => numberIn(name, value, 0, 1_000),
  quotesPerMinute: perMinute,
  readsPerMinute: perMinute,
  busy: share,
  html: share,
  lostReply: share,
  sponsoredRefunds: (name, value) =>
    typeof value === 'boolean' ? value : rejectSetting(name, 'true or false'),
  refundsInUsdc: share,
  capacityUsd: (name, value) => numberIn(name, value, 0, 1_000_000_000),
  swapCalls: (name, value) =>
    swapCallForms.find((each) => each === value) ?? rejectSetting(name, `one of ${swapCallForms.join(', ')}`),
  solanaDeposits: (name, value) =>
    solanaDepositForms.find((each) => each === value) ??
    rejectSetting(name, `one of ${solanaDepositForms.join(', ')}`),
}

/** What became of the requests since the settings were applied. */
export type AnswerKind = 'answered' | 'busy' | 'html' | 'lostReply'

export type RealismControl = {
  counts: () => Record<AnswerKind, number>
  count: (kind: AnswerKind) => void
  current: () => Realism
  /** Applies a preset, single settings, or both. */
  apply: (fields: Record<string, unknown>) => Realism
  isHit: (rate: number) => boolean
  lagMs: (lag: Lag) => number
  random: () => number
}

export const createRealismControl = (presetName: string): RealismControl => {
  const presetOf = (name: unknown): Realism =>
    presets[String(name)] ?? rejectSetting('preset', Object.keys(presets).join(' or '))
  let realism = presetOf(presetName)
  let random = seededRandom(realism.seed)
  const counts = { answered: 0, busy: 0, html: 0, lostReply: 0 }
  const isHit = (rate: number) => rate > 0 && random() < rate
  return {
    counts: () => ({ ...counts }),
    count: (kind) => {
      counts[kind] += 1
    },
    current: () => realism,
    apply: (body) => {
      const { preset, ...fields } = body
      const next: Record<string, unknown> = { ...(preset === undefined ? realism : presetOf(preset)) }
      for (const [name, value] of Object.entries(fields)) {
        if (!Object.hasOwn(parsers, name)) throw new HttpError(400, `There is no setting ${name}.`)
        next[name] = parsers[name as keyof Realism](name, value)
      }
      realism = next as Realism
      random = seededRandom(realism.seed)
      Object.assign(counts, { answered: 0, busy: 0, html: 0, lostReply: 0 })
      return realism
    },
    isHit,
    lagMs: ({ rate, minMs, maxMs }) => (isHit(rate) ? minMs + random() * (maxMs - minMs) : 0),
    random: () => random(),
  }
}
