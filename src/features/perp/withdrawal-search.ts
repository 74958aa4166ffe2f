import { spotCashMicros } from '#engines/venue/orders/collateral-shortfall.ts'
import type { ActionSearch } from '#engines/venue/orders/venue-effect.ts'
import {
  type CashSource,
  reconciledTransfers,
  recordsDisagree,
} from '#engines/venue/records/cash-reconciliation.ts'
import { cashBalanceKey } from '#engines/venue/records/expected-balances.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { createPayoutSearch, PayoutTaskData } from './withdrawal-payout-search.ts'

type SearchDeps = { venue: Pick<Hyperliquid, 'ledgerSince' | 'spotBalances'> & CashSource }
type Searched = PayoutTaskData & {
  /** The cash of the perp side at admission, at the venue's time `since_ms`. */
  cash_before: string
  /** The free USDC at admission in micro-dollars if perp and spot share one balance; otherwise null. */
  unified_free_before: string | null
}

/** The venue lists a withdrawal only after its payout, so before this time its absence proves nothing. */
const graceMs = 15 * 60_000

/**
 * Searches the venue's list of transfers for a withdrawal. Its absence proves something only if the list agrees with
 * the account's balance.
 */
export const withdrawalSearch = (
  { venue }: SearchDeps,
  task: TaskView<Searched>,
  { ownIn, assertNotArrived }: ReturnType<typeof createPayoutSearch>,
): ActionSearch<true> => ({
  graceMs,
  parseReply: () => true,
  async lookUp({ isLast }) {
    if (ownIn(task, await venue.ledgerSince(task.data.account, task.data.since_ms))) return true
    if (!isLast) return undefined
    // The list that agrees with the balance may be newer than the list read above, so it is searched too.
    if (ownIn(task, await consistentTransfers(venue, task))) return true
    await assertNotArrived(task)
    return undefined
  },
})

/** Returns the transfers of the account. Throws if its balance shows a payout that the list does not contain. */
async function consistentTransfers(
  venue: SearchDeps['venue'],
  { data }: TaskView<Searched>,
): Promise<LedgerUpdate[]> {
  const { account, amount_usd, since_ms: sinceMs, cash_before: total, unified_free_before } = data
  if (unified_free_before === null)
    return reconciledTransfers(venue, account, { balanceKey: cashBalanceKey, total, sinceMs })
  // Trades change this balance too, so only the size of the decrease is compared with the withdrawal.
  const lost = BigInt(unified_free_before) - (await spotCashMicros(venue, account))
  if (lost >= toUnits(amount_usd, usdcDecimals))
    throw recordsDisagree('the free balance decreased without a matching transfer')
  return venue.ledgerSince(account, sinceMs)
}
