import type { AccountCursor, StrategyAccount } from './account-store.ts'

/** Up to where the fills and the funding of a live account have been applied. */

export type LiveCursor = {
  /** Fills before this time have all been applied. */
  fills_from_ms: number
  funding_ms: number
  /** The orders that have counted as an entry or a trade. */
  counted: string[]
  /** Positions of which the record has less than the account, since when; the first look may be of a moment between two fills. */
  less: Record<string, { units: string; since_ms: number }>
  /** Parts that are too small to be closed beside another position, by market, since when. */
  left?: Record<string, { units: string; since_ms: number }>
  /** The last run that has placed orders. */
  run?: string
}

/** A fill may be imported this much later than the time up to which the record has been compared with the venue. */
const importMsMax = 6 * 3_600_000

/** Returns the cursor of an account; what an account does not have yet begins now. */
export function liveCursorOf(stored: AccountCursor, nowMs: number): LiveCursor {
  const { fills_from_ms, funding_ms, counted = [], less = {}, left, run } = stored as Partial<LiveCursor>
  return {
    fills_from_ms: fills_from_ms ?? nowMs - 60_000,
    funding_ms: funding_ms ?? nowMs,
    counted,
    less,
    ...(left && { left }),
    ...(run !== undefined && { run }),
  }
}

/** A part too small to be closed is tried again after this time: its price may have risen meanwhile. */
const leftMs = 24 * 3_600_000

/** Returns the markets whose part cannot be closed now; a part that has changed since may be. */
export function leftAssets(
  { cursor, run }: Pick<StrategyAccount, 'cursor' | 'run'>,
  nowMs: number,
): string[] {
  const { left = {} } = cursor as Partial<LiveCursor>
  return Object.entries(left).flatMap(([asset, { units, since_ms: sinceMs }]) => {
    const held = run.account.positions.get(asset)?.sizeUnits
    return held !== undefined && String(held) === units && nowMs - sinceMs < leftMs ? [asset] : []
  })
}

/** Notes that the present parts in some markets cannot be closed. */
export function withLeft(
  account: StrategyAccount,
  assets: readonly string[],
  nowMs: number,
): StrategyAccount {
  const left = Object.fromEntries(
    assets.flatMap((asset) => {
      const held = account.run.account.positions.get(asset)
      return held ? [[asset, { units: String(held.sizeUnits), since_ms: nowMs }]] : []
    }),
  )
  return { ...account, cursor: storedCursor({ ...liveCursorOf(account.cursor, nowMs), left }) }
}

export const storedCursor = (cursor: LiveCursor): AccountCursor => ({ ...cursor })

/** Returns from when on fills are looked for next; `comparedMs` is 0 if the record was never compared with the venue. */
export const fillsFromMs = (
  { fills_from_ms: beforeMs }: Pick<LiveCursor, 'fills_from_ms'>,
  { nowMs, comparedMs }: { nowMs: number; comparedMs: number },
): number => Math.max(beforeMs, Math.min(nowMs, comparedMs) - importMsMax)
