import { Fault } from '#kernel/contract/fault.ts'
import { fixedPointOne, fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  cashBalanceKey,
  compareBalances,
  describeDifferences,
  type FillRow,
  fillRow,
  fundingRow,
  ledgerUpdateRows,
  type VenueLedgerEntryRow,
} from './expected-balances.ts'

export type CashSource = Pick<
  Hyperliquid,
  'account' | 'spotBalances' | 'fillsSince' | 'fundingSince' | 'ledgerSince' | 'spots'
>
/** `balanceKey` is the perp side or the USDC of the spot side; `total` is its balance at the venue's time `sinceMs`. */
export type CashSnapshot = { balanceKey: string; total: string; sinceMs: number }

/** The venue may have truncated a list of this length or more. */
const fullPage = 500

export const recordsDisagree = (what: string): Fault =>
  new Fault('unavailable', `The records of the venue are inconsistent: ${what}`)

/** Returns the change of the USDC balance by a fill. */
function paidBy(fill: FillRow, { isPerp }: { isPerp: boolean }): bigint {
  if ((fill.base === null) !== isPerp || (!isPerp && fill.quote !== 'USDC')) return 0n
  const worth = (toFixedPoint(fill.signed_size) * toFixedPoint(fill.price)) / fixedPointOne
  return -worth - (isPerp || fill.fee_token === 'USDC' ? toFixedPoint(fill.fee) : 0n)
}

/** Returns the expected cash: the snapshot's total plus every fill and ledger entry after its time. */
export function expectedCash(
  { balanceKey, total, sinceMs }: CashSnapshot,
  fills: readonly FillRow[],
  changes: readonly VenueLedgerEntryRow[],
): { total: string; entries: number } {
  const isLater = ({ at_ms }: { at_ms: number }) => at_ms > sinceMs
  const paid = fills.filter(isLater).map((fill) => paidBy(fill, { isPerp: balanceKey === cashBalanceKey }))
  const moved = changes
    .filter((change) => isLater(change) && change.balance_key === balanceKey)
    .map(({ amount }) => toFixedPoint(amount ?? '0'))
  const sum = [...paid, ...moved].reduce((a, b) => a + b, toFixedPoint(total))
  return { total: fromFixedPoint(sum), entries: paid.length + moved.length }
}

/** Returns an account's transfers since a snapshot. Throws while balance and lists disagree, as one is stale. */
export async function reconciledTransfers(
  venue: CashSource,
  account: string,
  before: CashSnapshot,
): Promise<LedgerUpdate[]> {
  const { balanceKey, sinceMs } = before
  const isPerp = balanceKey === cashBalanceKey
  const [seen, fills, fundings, updates, { markets }] = await Promise.all([
    isPerp ? venue.account(account).then(({ cashUsd }) => cashUsd) : spotUsdc(venue, account),
    venue.fillsSince(account, sinceMs),
    isPerp ? venue.fundingSince(account, sinceMs) : [],
    venue.ledgerSince(account, sinceMs),
    venue.spots(),
  ])
  if ([fills, fundings, updates].some(({ length }) => length >= fullPage))
    throw recordsDisagree('the account has too many recent fills, funding payments or transfers to check')
  const spots = new Map(markets.map((market) => [market.coin, market]))
  const changes = [...fundings.map(fundingRow), ...updates.flatMap(ledgerUpdateRows)]
  const { total, entries } = expectedCash(
    before,
    fills.map((fill) => fillRow(fill, spots)),
    changes,
  )
  // Both balances are rounded, so each adds one rounding error.
  const found = compareBalances(new Map([[balanceKey, total]]), new Map([[balanceKey, seen]]), entries + 2)
  if (found.length > 0) throw recordsDisagree(describeDifferences(found))
  return updates
}

async function spotUsdc(venue: Pick<Hyperliquid, 'spotBalances'>, account: string): Promise<string> {
  return (await venue.spotBalances(account, ['USDC'])).find(({ coin }) => coin === 'USDC')?.total ?? '0'
}
