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
  /** `waiting` for its parent, `standing` at the venue, `done`: it has fired, or its sibling has. */
  state: 'waiting' | 'standing' | 'done' | 'gone'
  error: string | null
}

const scale = 18
const units = (text: string) => toUnits(text, scale)

export type FillSum = { size: string; averagePrice: string | null; fee: string; feeToken: string }

export function sumOf(fills: readonly Fill[]): FillSum {
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

export type Judgement = 'stands' | 'repair' | 'unwind' | 'nothing'

/**
 * A position without the stop that was asked for is put right: the exits are placed again, and where that cannot be
 * the position goes. While the entry still rests there is no position that an exit could reduce, so the entry goes.
 */
export function judgeBracket(entry: Entry, filled: string, exits: readonly Exit[]): Judgement {
  const missing = exits.some(({ state }) => state === 'gone')
  const none = compareDecimals(filled, '0') === 0
  if (none && entry.status !== 'resting') return 'nothing'
  if (!missing) return 'stands'
  return entry.status === 'resting' ? 'unwind' : 'repair'
}

const endings = /(^canceled|Canceled|^rejected|Rejected)$/
export const isEnding = (status: string): boolean => endings.test(status)

/** The status of an order, in words that tell whether an exit still protects. */
export function exitStateOf(status: string): Exit['state'] {
  if (status === 'open') return 'standing'
  if (status === 'triggered' || status === 'filled' || status === 'siblingFilledCanceled') return 'done'
  if (isEnding(status)) return 'gone'
  throw new Fault('upstream_changed', `Hyperliquid tells an order status that is not known: ${status}`)
}
