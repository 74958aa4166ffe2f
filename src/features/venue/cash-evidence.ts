import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  type ChangeRow,
  cashPlace,
  differences,
  type FillRow,
  fillRow,
  fundingRow,
  sentenceOf,
  updateRows,
} from './agreement.ts'

/** Whether the dollars of an account are those that its fills, fundings and transfers add up to. */

export type CashSource = Pick<
  Hyperliquid,
  'account' | 'spotBalances' | 'fillsSince' | 'fundingSince' | 'ledgerSince' | 'spots'
>
/** `place`: the perpetuals side or the USDC of the spot side. `total`: what it held at the venue's time `sinceMs`. */
export type CashBefore = { place: string; total: string; sinceMs: number }

/** The shortest list that the venue may have cut off. */
const fullPage = 500
const scale = 18
const units = (text: string) => toUnits(text, scale)

export const contradiction = (what: string): Fault =>
  new Fault('unavailable', `The records of the venue do not agree: ${what}`)

/** The change of the dollars on the side that the market of the fill is paid from. */
function paidBy(fill: FillRow, isPerp: boolean): bigint {
  if ((fill.base === null) !== isPerp || (!isPerp && fill.quote !== 'USDC')) return 0n
  const worth = (units(fill.signed_size) * units(fill.price)) / 10n ** BigInt(scale)
  return -worth - (isPerp || fill.fee_token === 'USDC' ? units(fill.fee) : 0n)
}

/** What the place should hold: the total before, changed by every entry after that time. */
export function expectedCash(
  { place, total, sinceMs }: CashBefore,
  fills: readonly FillRow[],
  changes: readonly ChangeRow[],
): { total: string; entries: number } {
  const isLater = ({ at_ms }: { at_ms: number }) => at_ms > sinceMs
  const paid = fills.filter(isLater).map((fill) => paidBy(fill, place === cashPlace))
  const moved = changes
    .filter((change) => isLater(change) && change.place === place)
    .map(({ amount }) => units(amount ?? '0'))
  const sum = [...paid, ...moved].reduce((a, b) => a + b, units(total))
  return { total: fromUnits(sum, scale), entries: paid.length + moved.length }
}

/**
 * The transfers of the account since then, as the list that explains its balance shows them. Throws as long as the
 * balance and the lists contradict each other.
 */
export async function explainedTransfers(
  venue: CashSource,
  account: string,
  before: CashBefore,
): Promise<LedgerUpdate[]> {
  const { place, sinceMs } = before
  const isPerp = place === cashPlace
  const [seen, fills, fundings, updates, { markets }] = await Promise.all([
    isPerp ? venue.account(account).then(({ cashUsd }) => cashUsd) : spotUsdc(venue, account),
    venue.fillsSince(account, sinceMs),
    isPerp ? venue.fundingSince(account, sinceMs) : [],
    venue.ledgerSince(account, sinceMs),
    venue.spots(),
  ])
  if ([fills, fundings, updates].some(({ length }) => length >= fullPage))
    throw contradiction('the lists are too long to be read at once')
  const spots = new Map(markets.map((market) => [market.coin, market]))
  const changes = [...fundings.map(fundingRow), ...updates.flatMap(updateRows)]
  const { total, entries } = expectedCash(
    before,
    fills.map((fill) => fillRow(fill, spots)),
    changes,
  )
  // The balance before and the balance now are both rounded.
  const found = differences(new Map([[place, total]]), new Map([[place, seen]]), entries + 2)
  if (found.length > 0) throw contradiction(sentenceOf(found))
  return updates
}

async function spotUsdc(venue: Pick<Hyperliquid, 'spotBalances'>, account: string): Promise<string> {
  return (await venue.spotBalances(account, ['USDC'])).find(({ coin }) => coin === 'USDC')?.total ?? '0'
}
