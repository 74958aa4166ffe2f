import { knownUnified } from '#engines/venue/records/account-mode.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { toMicros, usdcDecimals } from '#kernel/money/money.ts'
import type { Hyperliquid, SpotBalance } from '#upstreams/hyperliquid/hyperliquid.ts'
import { noTransfer, type Shortfall, type TransferAmount, transferable } from './collateral-transfer.ts'
import { assertShown, type PendingSpend, SpendingNotShown, type Spendings } from './pending-spends.ts'

/** Decides what follows if an order lacks USDC on its side: a transfer from the other side, a retry, or a refusal. */

export const spotCashMicros = async (
  venue: Pick<Hyperliquid, 'spotBalances'>,
  account: string,
): Promise<bigint> => freeCashOf(await venue.spotBalances(account, ['USDC']))

function freeCashOf(balances: readonly SpotBalance[]): bigint {
  const usdc = balances.find(({ coin }) => coin === 'USDC')
  if (!usdc) return 0n
  const free = toMicros(usdc.total) - toMicros(usdc.hold)
  return free > 0n ? free : 0n
}

/** Returns the transfer that covers a shortfall of the perp side; `transfer` is undefined if funds are missing. */
export async function collateralFor(
  venue: Pick<Hyperliquid, 'spotBalances' | 'accountMode'>,
  account: string,
  shortfall: Shortfall,
  spendings: Spendings,
): Promise<{ transfer: TransferAmount | undefined; otherMicros: bigint; pendingSpend: PendingSpend }> {
  const [balances, mode] = await Promise.all([
    venue.spotBalances(account, ['USDC']),
    venue.accountMode(account),
  ])
  const otherMicros = freeCashOf(balances)
  const pendingSpend = spendings.spotCash(balances)
  const availableMicros = otherMicros - pendingSpend.amount
  const transfer = knownUnified(mode)
    ? availableMicros >= shortfall.shortfallMicros && noTransfer
    : transferable(availableMicros, shortfall)
  return { transfer: transfer || undefined, otherMicros, pendingSpend }
}

type FundsRequest = {
  /** The micro-dollars that the order needs; `available` is the free amount on the order's side at the last read. */
  required: bigint
  available: bigint
  pendingSpend: PendingSpend
  spareMicros?: bigint
  /** Whether this is the last attempt, on which pending spends count as spent. */
  isLast: boolean
  /** An exit is never refused for a pending spend, because the venue itself rejects an amount that is too high. */
  isExit?: boolean
  what: string
}
type FromOtherSide = (
  shortfall: Shortfall,
) => Promise<{ transfer: TransferAmount | undefined; otherMicros: bigint; pendingSpend: PendingSpend }>

/** Returns the transfer that an order needs from the other side. Throws if funds are missing, or may be missing. */
export async function transferFor(
  { required, available, pendingSpend, spareMicros, isLast, isExit = false, what }: FundsRequest,
  from: FromOtherSide,
): Promise<TransferAmount | { transfer_usd: null }> {
  // A read that shows less than the pending spend already includes a part of that spend.
  const availableMin = available > pendingSpend.amount ? available - pendingSpend.amount : 0n
  if (availableMin >= required || (isExit && isLast && available >= required)) return { transfer_usd: null }
  assertShown(pendingSpend, { isLast })
  const shortfall = {
    shortfallMicros: required - availableMin,
    ...(spareMicros !== undefined && { spareMicros }),
  }
  const other = await from(shortfall)
  if (other.transfer) return other.transfer
  assertShown(other.pendingSpend, { isLast })
  if (available + other.otherMicros >= required && pendingSpend.amount + other.pendingSpend.amount > 0n)
    throw new SpendingNotShown()
  throw shortage({ what, required, available: available + other.otherMicros })
}

const dollar = { symbol: 'USDC', decimals: usdcDecimals }
type Shortage = { what: string; required: bigint; available: bigint }

/** Returns the fault for missing funds; the amounts are in micro-dollars. */
export const shortage = ({ what, required, available }: Shortage): Fault =>
  insufficientBalance(dollar, { what, requiredUnits: required, availableUnits: available })
