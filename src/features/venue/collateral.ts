import type { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import { insufficientBalance } from '#kernel/shortage.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { isUnified } from './account-mode.ts'
import { type Missing, movable, type Portion, portionNone } from './gather.ts'

/** Dollars that an account has free, on one side or in one balance for both. */

const scale = 18

const microsOf = (text: string): bigint => toUnits(text, scale) / 10n ** BigInt(scale - usdDecimals)

/** The free dollars of the spot side, in micro-dollars. */
export async function spotCashMicros(
  venue: Pick<Hyperliquid, 'spotBalances'>,
  account: string,
): Promise<bigint> {
  const usdc = (await venue.spotBalances(account)).find(({ coin }) => coin === 'USDC')
  if (!usdc) return 0n
  const free = microsOf(usdc.total) - microsOf(usdc.hold)
  return free > 0n ? free : 0n
}

/** How the perpetual side gets what it is missing: `portion` undefined where the account does not have it. */
export async function collateralFor(
  venue: Pick<Hyperliquid, 'spotBalances' | 'accountMode'>,
  account: string,
  missing: Missing,
): Promise<{ portion: Portion | undefined; otherMicros: bigint }> {
  const [otherMicros, mode] = await Promise.all([spotCashMicros(venue, account), venue.accountMode(account)])
  if (isUnified(mode))
    return { portion: otherMicros >= missing.missingMicros ? portionNone : undefined, otherMicros }
  return { portion: movable(otherMicros, missing) ?? undefined, otherMicros }
}

export const usdText = (micros: bigint): string => fromUnits(micros, usdDecimals)

const dollar = { symbol: 'USDC', decimals: usdDecimals }
type Shortage = { what: string; required: bigint; available: bigint }

/** Amounts in micro-dollars. */
export const shortage = ({ what, required, available }: Shortage): Fault =>
  insufficientBalance(dollar, { what, requiredUnits: required, availableUnits: available })
