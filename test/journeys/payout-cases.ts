/** What a provider does instead of paying as it quoted, and how a swap and a stop end with it. */

export type Step = {
  type: 'fill' | 'refund'
  shareBps: number
  afterMs: number
  status: 'pending' | 'success' | 'refund' | 'failure'
  names: 'all' | 'last' | 'none'
  currency?: string
  foreignTx?: string
  failReason?: string
  refundFailReason?: string
}
export type Random = (below: number) => number
export type Payer = {
  random: Random
  /** A token that nobody asked for, with as many decimals. */
  otherToken: string
  /** It has paid another swap, of the same user or of somebody else. */
  foreignTx: string
}
export type Case = {
  name: string
  steps: (payer: Payer) => Step[]
  ends: string
  /** What a payment after the end makes of it. */
  later?: readonly ('fill' | 'refund')[]
  /** What a stop becomes with its sale: by default filled where that is completed, and else failed. */
  stop?: 'sells again'
}

export const randomOf = (seed: number): Random => {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

const pay = (
  type: Step['type'],
  shareBps: number,
  status: Step['status'],
  rest: Partial<Step> = {},
): Step => ({ type, shareBps, status, afterMs: 100, names: 'all', ...rest })
/** What a provider says without a payment. It goes on naming what it has paid: a word that nobody asked for is lost. */
const say = (status: Step['status'], rest: Partial<Step> = {}) => pay('fill', 0, status, rest)

/** The refund would cost more than the deposit, says the provider: the swap ends within seconds. */
const hopeless = { failReason: 'SLIPPAGE', refundFailReason: 'AMOUNT_TOO_LOW_TO_REFUND' }
/** One unit of a deposit or a quote. */
const dustBps = 0.01

/** Without a failure that lasts, what is short ends after ten minutes: here the rest or a failure follows before. */
export const cases: readonly Case[] = [
  { name: 'as quoted', steps: () => [pay('fill', 10_000, 'success')], ends: 'completed executed' },
  {
    name: 'in parts',
    steps({ random }) {
      const first = 1_000 + random(5_000)
      const pause = { afterMs: 500 + random(2_000) }
      return [pay('fill', first, 'success'), pay('fill', 10_000 - first, 'success', pause)]
    },
    ends: 'completed executed',
  },
  {
    name: 'twice',
    steps: () => [pay('fill', 10_000, 'pending', { names: 'none' }), pay('fill', 10_000, 'success')],
    ends: 'completed executed',
  },
  {
    name: 'a little, and the rest back',
    steps({ random }) {
      const share = 500 + random(4_000)
      return [pay('fill', share, 'success'), pay('refund', 9_980 - share, 'refund', { afterMs: 800 })]
    },
    ends: 'failed partial refunded',
  },
  {
    name: 'too little, and a failure',
    steps: ({ random }) => [
      pay('fill', 1_000 + random(8_000), 'success'),
      say('failure', { ...hopeless, afterMs: 1_000 + random(2_000) }),
    ],
    ends: 'failed partial tx_failed',
  },
  {
    name: 'dust back, and then the rest',
    steps: () => [pay('refund', dustBps, 'refund'), pay('refund', 9_990, 'refund', { afterMs: 900 })],
    ends: 'failed partial refunded',
    stop: 'sells again',
  },
  {
    name: 'dust back, and a failure',
    steps: ({ random }) => [
      pay('refund', dustBps, 'refund'),
      say('failure', { ...hopeless, afterMs: 500 + random(1_500) }),
    ],
    ends: 'failed partial tx_failed',
  },
  {
    name: 'one unit, and everything back',
    steps: () => [pay('fill', dustBps, 'success'), pay('refund', 10_000, 'refund', { afterMs: 4_000 })],
    ends: 'failed partial refunded',
    stop: 'sells again',
  },
  {
    name: 'the payment of another swap, and everything back',
    steps: ({ foreignTx }) => [
      say('success', { foreignTx }),
      pay('refund', 10_000, 'refund', { afterMs: 1_500 }),
    ],
    ends: 'failed not_executed refunded',
    stop: 'sells again',
  },
  {
    name: 'in another token, as a refund',
    steps: ({ otherToken }) => [pay('fill', 9_990, 'refund', { currency: otherToken })],
    ends: 'failed partial refunded',
  },
  {
    name: 'in another token, and a failure',
    steps: ({ otherToken }) => [
      pay('fill', 9_990, 'success', { currency: otherToken }),
      say('failure', { ...hopeless, afterMs: 1_000 }),
    ],
    ends: 'failed partial refunded',
  },
  {
    name: 'late, after a failure',
    steps: () => [say('failure', hopeless), pay('fill', 10_000, 'success', { afterMs: 6_000 })],
    ends: 'failed partial tx_failed',
    later: ['fill'],
  },
  {
    name: 'in parts of both, after a failure',
    steps: () => [
      say('failure', hopeless),
      pay('fill', 4_000, 'success', { afterMs: 6_000 }),
      pay('refund', 3_000, 'refund', { afterMs: 4_000 }),
    ],
    ends: 'failed partial tx_failed',
    later: ['fill', 'refund'],
  },
]

/** They end after ten minutes. */
export const slowCases: readonly Case[] = [
  {
    name: 'too little, for ten minutes',
    steps: ({ random }) => [pay('fill', 1_000 + random(8_000), 'success')],
    ends: 'failed partial slippage',
  },
  {
    name: 'dust back, for ten minutes',
    steps: () => [pay('refund', dustBps, 'refund')],
    ends: 'failed partial tx_failed',
  },
]
