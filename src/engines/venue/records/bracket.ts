import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, mulDiv, toUnits } from '#kernel/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'

/** What became of an entry and its exits, and what has to be done about it. */

export type ExitLeg = 'tp' | 'sl'
export type Entry = {
  orderId: number | null
  /** `part`: what was not filled has ended. */
  status: 'filled' | 'part' | 'resting' | 'rejected'
  /** As the reply said; null where only the fills tell. */
  filledSize: string | null
  error: { code: string; message: string } | null
}
export type Exit = {
  leg: ExitLeg
  orderId: number | null
  /**
   * `waiting` for its parent, `standing` at the venue, `done`: it has fired, or its sibling has. `gone` by the venue's
   * own word, or by every record of it; `unknown`: no record shows it yet.
   */
  state: 'waiting' | 'standing' | 'done' | 'gone' | 'unknown'
  error: string | null
}

const scale = 18
const units = (text: string) => toUnits(text, scale)

export type FillSum = { size: string; averagePrice: string | null; fee: string; feeToken: string }

export function sumFills(fills: readonly Fill[]): FillSum {
  let [size, value, fee] = [0n, 0n, 0n]
  for (const each of fills) {
    size += units(each.size)
    value += units(each.size) * units(each.price)
    fee += units(each.feeUsd)
  }
  return {
    size: fromUnits(size, scale),
    averagePrice: size === 0n ? null : fromUnits(mulDiv(value, 1n, size), scale),
    fee: fromUnits(fee, scale),
    feeToken: fills[0]?.feeToken ?? 'USDC',
  }
}

export type BracketEvaluation = 'stands' | 'repair' | 'unwind' | 'nothing'

/**
 * A position without the stop that was asked for is put right: the exits are placed again, and where that cannot be
 * the position goes. While the entry still rests there is no position that an exit could reduce, so the entry goes.
 */
export function evaluateBracket(entry: Entry, filled: string, exits: readonly Exit[]): BracketEvaluation {
  const missing = exits.some(({ state }) => state === 'gone')
  const none = compareDecimals(filled, '0') === 0
  if (none && entry.status !== 'resting') return 'nothing'
  if (!missing) return 'stands'
  return entry.status === 'resting' ? 'unwind' : 'repair'
}

/** What an order does, or how it ended. */
export type Phase = 'open' | 'triggered' | 'filled' | 'cancelled' | 'rejected'

/** Undefined for a word that is not known: nothing may be concluded from it. */
export function phaseOf(status: string): Phase | undefined {
  if (status === 'open' || status === 'triggered' || status === 'filled') return status
  if (/cancel(l?ed)?$/i.test(status)) return 'cancelled'
  return /reject(ed)?$/i.test(status) ? 'rejected' : undefined
}

/** Throws where the word is not known: the order exists, and somebody has to look. */
export function requirePhase(status: string): Phase {
  const phase = phaseOf(status)
  if (phase) return phase
  throw new Fault('upstream_changed', `Hyperliquid gives an order a status that is not known: ${status}`)
}

export const isEnding = (status: string): boolean => ['cancelled', 'rejected'].includes(phaseOf(status) ?? '')

/** Cancelled because there is nothing left to protect. */
const obsoleteStatuses = ['siblingFilledCanceled', 'reduceOnlyCanceled']

/** Whether an exit still protects. The venue calls an exit open while its entry rests, too. */
export function exitStateOf(status: string, entryRests = false): Exit['state'] {
  const phase = requirePhase(status)
  if (phase === 'open') return entryRests ? 'waiting' : 'standing'
  if (phase === 'triggered' || phase === 'filled' || obsoleteStatuses.includes(status)) return 'done'
  return 'gone'
}
