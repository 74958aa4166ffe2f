import type { AccountCursor } from './account-store.ts'

/** Up to where the fills and the funding of a live account have been applied. */

export type LiveCursor = {
  /** Fills before this time have all been applied. */
  fills_from_ms: number
  funding_ms: number
  /** The orders that have counted as an entry or a trade. */
  counted: string[]
  /** Positions of which the record has less than the account, since when; the first look may be of a moment between two fills. */
  less: Record<string, { units: string; since_ms: number }>
  /** The last run that has placed orders. */
  run?: string
}

/** A fill is imported at most this much later than it happened, while the gateway runs. */
const importMsMax = 6 * 3_600_000

/** Returns the cursor of an account; what an account does not have yet begins now. */
export function liveCursorOf(stored: AccountCursor, nowMs: number): LiveCursor {
  const { fills_from_ms, funding_ms, counted = [], less = {}, run } = stored as Partial<LiveCursor>
  return {
    fills_from_ms: fills_from_ms ?? nowMs - 60_000,
    funding_ms: funding_ms ?? nowMs,
    counted,
    less,
    ...(run !== undefined && { run }),
  }
}

export const storedCursor = (cursor: LiveCursor): AccountCursor => ({ ...cursor })

export const fillsFromMs = ({ fills_from_ms: beforeMs }: LiveCursor, nowMs: number): number =>
  Math.max(beforeMs, nowMs - importMsMax)
