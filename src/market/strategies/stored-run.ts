import type { JsonObject } from '#kernel/wire/json.ts'
import type { OpenPosition, Protective } from './account.ts'
import type { GuardState } from './guards.ts'
import type { OrderIntent } from './strategy.ts'
import type { StrategyRun } from './strategy-run.ts'

/** The account of a strategy as JSON, in which every amount is decimal text, and back. */

type StoredProtective = { price: string; is_market: boolean }
type StoredPosition = Pick<OpenPosition, 'leverage'> & {
  is_long: boolean
  size: string
  cost: string
  is_cross: boolean
  opened_ms: number
  target_from_ms: number
  fees: string
  funding: string
  stop?: StoredProtective
  target?: StoredProtective
}
type StoredGuards = Omit<GuardState, 'startMicros' | 'peakMicros' | 'dayStartMicros'> & {
  start: string
  peak: string
  day_start: string
}
export type StoredRun = {
  cash: string
  fees: string
  funding: string
  spent: string
  positions: Record<string, StoredPosition>
  guards: StoredGuards
  marks: Record<string, string>
  pending: OrderIntent[]
  resting: OrderIntent[]
}

const storedProtective = ({ priceUnits, isMarket }: Protective): StoredProtective => ({
  price: String(priceUnits),
  is_market: isMarket,
})
const protectiveOf = ({ price, is_market }: StoredProtective): Protective => ({
  priceUnits: BigInt(price),
  isMarket: is_market,
})

const storedPosition = (position: OpenPosition): StoredPosition => ({
  is_long: position.isLong,
  size: String(position.sizeUnits),
  cost: String(position.costMicros),
  leverage: position.leverage,
  is_cross: position.isCross,
  opened_ms: position.openedMs,
  target_from_ms: position.targetFromMs,
  fees: String(position.feesMicros),
  funding: String(position.fundingMicros),
  ...(position.stop && { stop: storedProtective(position.stop) }),
  ...(position.target && { target: storedProtective(position.target) }),
})
const positionOf = (stored: StoredPosition): OpenPosition => ({
  isLong: stored.is_long,
  sizeUnits: BigInt(stored.size),
  costMicros: BigInt(stored.cost),
  leverage: stored.leverage,
  isCross: stored.is_cross,
  openedMs: stored.opened_ms,
  targetFromMs: stored.target_from_ms,
  feesMicros: BigInt(stored.fees),
  fundingMicros: BigInt(stored.funding),
  ...(stored.stop && { stop: protectiveOf(stored.stop) }),
  ...(stored.target && { target: protectiveOf(stored.target) }),
})

export function toStoredRun({
  account,
  guards,
  marks,
  pending,
  resting,
}: StrategyRun): StoredRun & JsonObject {
  const { startMicros, peakMicros, dayStartMicros, ...rest } = guards
  const stored: StoredRun = {
    cash: String(account.cashMicros),
    fees: String(account.feesMicros),
    funding: String(account.fundingMicros),
    spent: String(account.spentMicros),
    positions: Object.fromEntries(
      [...account.positions].map(([asset, position]) => [asset, storedPosition(position)]),
    ),
    guards: {
      ...rest,
      start: String(startMicros),
      peak: String(peakMicros),
      day_start: String(dayStartMicros),
    },
    marks: Object.fromEntries([...marks].map(([asset, units]) => [asset, String(units)])),
    pending: [...pending],
    resting: [...resting],
  }
  return stored as StoredRun & JsonObject
}

export function fromStoredRun(stored: StoredRun): StrategyRun {
  const { start, peak, day_start, ...guards } = stored.guards
  return {
    account: {
      cashMicros: BigInt(stored.cash),
      feesMicros: BigInt(stored.fees),
      fundingMicros: BigInt(stored.funding),
      spentMicros: BigInt(stored.spent),
      positions: new Map(
        Object.entries(stored.positions).map(([asset, position]) => [asset, positionOf(position)]),
      ),
    },
    guards: {
      ...guards,
      startMicros: BigInt(start),
      peakMicros: BigInt(peak),
      dayStartMicros: BigInt(day_start),
    },
    marks: new Map(Object.entries(stored.marks).map(([asset, units]) => [asset, BigInt(units)])),
    pending: stored.pending,
    resting: stored.resting,
  }
}
