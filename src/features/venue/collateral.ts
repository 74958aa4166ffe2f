import type { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import { insufficientBalance } from '#kernel/shortage.ts'
import type { Hyperliquid, SpotBalance } from '#upstreams/hyperliquid/hyperliquid.ts'
import { knownUnified } from './account-mode.ts'
import { type Missing, movable, type Portion, portionNone } from './gather.ts'
import { assertShown, SpendingNotShown, type Spendings, type Unseen } from './spending.ts'

/** Dollars that an account has free, on one side or in one balance for both. */

const scale = 18

const microsOf = (text: string): bigint => toUnits(text, scale) / 10n ** BigInt(scale - usdDecimals)

/** The free dollars of the spot side, in micro-dollars. */
export const spotCashMicros = async (
  venue: Pick<Hyperliquid, 'spotBalances'>,
  account: string,
): Promise<bigint> => freeCashOf(await venue.spotBalances(account, ['USDC']))

function freeCashOf(balances: readonly SpotBalance[]): bigint {
  const usdc = balances.find(({ coin }) => coin === 'USDC')
  if (!usdc) return 0n
  const free = microsOf(usdc.total) - microsOf(usdc.hold)
  return free > 0n ? free : 0n
}

/** How the perpetual side gets what it is missing: `portion` undefined where the account does not have it. */
export async function collateralFor(
  venue: Pick<Hyperliquid, 'spotBalances' | 'accountMode'>,
  account: string,
  missing: Missing,
  spendings: Spendings,
): Promise<{ portion: Portion | undefined; otherMicros: bigint; unseen: Unseen }> {
  const [balances, mode] = await Promise.all([
    venue.spotBalances(account, ['USDC']),
    venue.accountMode(account),
  ])
  const otherMicros = freeCashOf(balances)
  const unseen = spendings.spotCash(balances)
  const leastMicros = otherMicros - unseen.amount
  const portion = knownUnified(mode)
    ? leastMicros >= missing.missingMicros && portionNone
    : movable(leastMicros, missing)
  return { portion: portion || undefined, otherMicros, unseen }
}

type Needed = {
  /** Micro-dollars that the order takes, and those that are free on its side by the last read. */
  required: bigint
  available: bigint
  unseen: Unseen
  spareMicros?: bigint
  /** What is not shown yet counts as spent. */
  isLast: boolean
  /** Money that goes home is never refused for what may be spent already: the venue refuses what is too much. */
  isExit?: boolean
  what: string
}
type FromOtherSide = (
  missing: Missing,
) => Promise<{ portion: Portion | undefined; otherMicros: bigint; unseen: Unseen }>

/** What comes over from the other side for an order; throws where the account does not have it, or may not have it. */
export async function portionFor(
  { required, available, unseen, spareMicros, isLast, isExit = false, what }: Needed,
  from: FromOtherSide,
): Promise<Portion | { gather: null }> {
  // A read that shows less than what is not seen yet shows a part of it already.
  const least = available > unseen.amount ? available - unseen.amount : 0n
  if (least >= required || (isExit && isLast && available >= required)) return { gather: null }
  assertShown(unseen, isLast)
  const missing = { missingMicros: required - least, ...(spareMicros !== undefined && { spareMicros }) }
  const other = await from(missing)
  if (other.portion) return other.portion
  assertShown(other.unseen, isLast)
  if (available + other.otherMicros >= required && unseen.amount + other.unseen.amount > 0n)
    throw new SpendingNotShown()
  throw shortage({ what, required, available: available + other.otherMicros })
}

export const usdText = (micros: bigint): string => fromUnits(micros, usdDecimals)

const dollar = { symbol: 'USDC', decimals: usdDecimals }
type Shortage = { what: string; required: bigint; available: bigint }

/** Amounts in micro-dollars. */
export const shortage = ({ what, required, available }: Shortage): Fault =>
  insufficientBalance(dollar, { what, requiredUnits: required, availableUnits: available })
