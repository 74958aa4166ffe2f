import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromFixedPoint, mulDiv, toFixedPoint } from '#kernel/money/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'

export type ExitLeg = 'tp' | 'sl'
export type Entry = {
  orderId: number | null
  /** `partial` means that the entry was filled in part, and that its remainder has ended. */
  status: 'filled' | 'partial' | 'resting' | 'rejected'
  /** The filled size in the venue's reply; null if only the fills show the size. */
  filledSize: string | null
  error: { code: string; message: string } | null
}
export type Exit = {
  leg: ExitLeg
  orderId: number | null
  /**
   * `waiting` waits for the entry. `open` is active at the venue. `closed` means that the exit or its sibling fired.
   * `missing` means that the venue says so, or that no record will contain the exit. `unknown` means that no record
   * contains the exit yet.
   */
  state: 'waiting' | 'open' | 'closed' | 'missing' | 'unknown'
  error: string | null
}

export type FillSum = { size: string; averagePrice: string | null; fee: string; feeToken: string }

export function sumFills(fills: readonly Fill[]): FillSum {
  let [size, value, fee] = [0n, 0n, 0n]
  for (const each of fills) {
    size += toFixedPoint(each.size)
    value += toFixedPoint(each.size) * toFixedPoint(each.price)
    fee += toFixedPoint(each.feeUsd)
  }
  return {
    size: fromFixedPoint(size),
    averagePrice: size === 0n ? null : fromFixedPoint(mulDiv(value, 1n, size)),
    fee: fromFixedPoint(fee),
    feeToken: fills[0]?.feeToken ?? 'USDC',
  }
}

export type BracketEvaluation = 'complete' | 'repair' | 'unwind' | 'nothing'

/**
 * Evaluates an order with exits. `repair`: a position lacks a requested exit, so the exits are placed again, or the
 * position is closed. `unwind`: the entry still rests, so an exit would reduce nothing, and the entry is cancelled.
 */
export function evaluateBracket(entry: Entry, filled: string, exits: readonly Exit[]): BracketEvaluation {
  const missing = exits.some(({ state }) => state === 'missing')
  const none = compareDecimals(filled, '0') === 0
  if (none && entry.status !== 'resting') return 'nothing'
  if (!missing) return 'complete'
  return entry.status === 'resting' ? 'unwind' : 'repair'
}

export type Phase = 'open' | 'triggered' | 'filled' | 'cancelled' | 'rejected'

/** Returns the phase of an order status; undefined for an unknown status, from which nothing may be concluded. */
export function phaseOf(status: string): Phase | undefined {
  if (status === 'open' || status === 'triggered' || status === 'filled') return status
  if (/cancel(l?ed)?$/i.test(status)) return 'cancelled'
  return /reject(ed)?$/i.test(status) ? 'rejected' : undefined
}

/** Returns the phase of an order status; throws for an unknown one, as the order exists and needs a review. */
export function requirePhase(status: string): Phase {
  const phase = phaseOf(status)
  if (phase) return phase
  throw new Fault('upstream_changed', `Hyperliquid reports an unknown order status: ${status}`)
}

export const isEnding = (status: string): boolean => ['cancelled', 'rejected'].includes(phaseOf(status) ?? '')

/** Statuses of exits that the venue cancelled because nothing was left to protect. */
const obsoleteStatuses = ['siblingFilledCanceled', 'reduceOnlyCanceled']

/** Returns the state of an exit by its status; the venue shows an exit as open even while its entry rests. */
export function exitStateOf(
  status: string,
  { entryRests = false }: { entryRests?: boolean } = {},
): Exit['state'] {
  const phase = requirePhase(status)
  if (phase === 'open') return entryRests ? 'waiting' : 'open'
  if (phase === 'triggered' || phase === 'filled' || obsoleteStatuses.includes(status)) return 'closed'
  return 'missing'
}
