import type { Static } from '#kernel/contract/schema.ts'
import { mulDiv, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PredictionRedemptionRow } from '#store/tables/predmkt.ts'
import { chainShares } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { afterRelease, type HeldShares } from './held-shares.ts'
import { protocolView, usd } from './market-views.ts'
import type { recordEntries } from './record-contract.ts'
import { accountOf, scheduleRested, walletOfRow } from './store/account-store.ts'
import { type FillSums, fillSums, recentFills } from './store/fill-store.ts'
import { redemptionsOf, transfersOf } from './store/redemption-store.ts'
import { ignoreVenueFault, listPositions, type MarketFacts, type VenueViews } from './venue-views.ts'

/** Positions and profit by the gateway's own record of confirmed trades; the chain says how many shares there are. */

type PositionsView = Static<(typeof recordEntries)['positions']['output']>
export type PositionView = PositionsView['positions'][number]
export type PositionsReader = (userId: string) => Promise<PositionsView>
type ActivityView = Static<(typeof recordEntries)['activity']['output']>

const dollar = 1_000_000n

/** What is held by the record, once its redemption is counted. */
export const heldOf = ({ held, held_cost: cost, realized, redeemed, payout }: FillSums): HeldShares =>
  afterRelease(
    { units: BigInt(held ?? 0), costUnits: BigInt(cost ?? 0), realizedUnits: BigInt(realized ?? 0) },
    BigInt(redeemed),
    BigInt(payout),
  )

export const createPositions =
  (deps: PredmktDeps & { views: VenueViews }): PositionsReader =>
  async (userId) => {
    const { db, venue, views, clock } = deps
    const owner = { userId, venue: venue.name }
    const [sums, account] = await Promise.all([
      fillSums(db, owner),
      accountOf(db, owner),
      scheduleRested(db, owner, clock.now()),
    ])
    const wallet = account && walletOfRow(account).wallet
    const outcomes = wallet ? withListed(deps, sums, await views.positions(userId, wallet)) : sums
    const onChain = wallet ? await chainShares(deps, wallet, outcomes.map(sharesOfRow)) : []
    const held = outcomes
      .map((sum, index) => ({ sum, sizeUnits: onChain[index] ?? heldOf(sum).units }))
      .filter(
        ({ sum, sizeUnits }) => sizeUnits !== 0n || sum.unsettled_buy !== '0' || sum.unsettled_sell !== '0',
      )
    const priced = await pricesOf(views, userId, held)
    const positions = held.map((each) => positionView(each, priced(each.sum)))
    const total = positions.reduce(
      (units, { value_usd }) => units + (value_usd === null ? 0n : toUnits(value_usd, usdcDecimals)),
      0n,
    )
    return { positions, positions_value_usd: usd(total), as_of: clock.now().toISOString() }
  }

export const sharesOfRow = ({ protocol, outcome_id: outcomeId }: FillSums) => ({
  market: { protocol },
  outcomeId,
})

const nothingTraded = {
  held: null,
  held_cost: null,
  realized: null,
  redeemed: '0',
  payout: '0',
  unsettled_buy: '0',
  unsettled_sell: '0',
}

/**
 * Outcomes that the wallet traded here, and those that it has from elsewhere by the venue's public record; the chain
 * says how many shares there are.
 */
export const outcomesOf = async (
  deps: Pick<PredmktDeps, 'venue'>,
  wallet: string,
  sums: readonly FillSums[],
): Promise<FillSums[]> =>
  withListed(deps, sums, await listPositions((cursor) => deps.venue.positions(wallet, cursor)))

function withListed(
  { venue }: Pick<PredmktDeps, 'venue'>,
  sums: readonly FillSums[],
  listed: Awaited<ReturnType<VenueViews['positions']>>,
): FillSums[] {
  const known = new Set(sums.map(({ outcome_id }) => outcome_id))
  const fromElsewhere = listed.flatMap(({ outcomeId, marketId, outcome, title }) => {
    const protocol = venue.protocolOf(outcomeId)
    if (known.has(outcomeId) || protocol === undefined) return []
    known.add(outcomeId)
    return { ...nothingTraded, outcome_id: outcomeId, market_id: marketId, outcome, title, protocol }
  })
  return [...sums, ...fromElsewhere]
}

type Held = { sum: FillSums; sizeUnits: bigint }
type Priced = { market: MarketFacts | undefined; payout: bigint | null; price: bigint | null }

/** Reads the markets of all positions together, and the books of those that have no payout. */
async function pricesOf(
  views: VenueViews,
  userId: string,
  held: readonly Held[],
): Promise<(sum: FillSums) => Priced> {
  const marketIds = held.map(({ sum }) => sum.market_id)
  const markets = await views.marketFacts(userId, marketIds).catch(ignoreVenueFault)
  const payoutOf = ({ market_id, outcome_id }: FillSums): bigint | null => {
    const market = markets?.get(market_id)
    return market?.payoutMicros?.[market.outcomeIds.indexOf(outcome_id)] ?? null
  }
  const open = held.filter(({ sum }) => payoutOf(sum) === null).map(({ sum }) => sum.outcome_id)
  const books = await views.books(userId, open).catch(ignoreVenueFault)
  return (sum) => {
    const payout = payoutOf(sum)
    const price = payout ?? books?.get(sum.outcome_id)?.bids[0]?.priceMicros ?? null
    return { market: markets?.get(sum.market_id), payout, price }
  }
}

function positionView({ sum, sizeUnits }: Held, { market, payout, price }: Priced): PositionView {
  const { units, costUnits, realizedUnits } = heldOf(sum)
  const valueUnits = price === null ? null : mulDiv(sizeUnits, price, dollar)
  // Shares that came from elsewhere have no cost here.
  const isOwn = units > 0n && sizeUnits === units
  return {
    venue: 'polymarket',
    market_id: sum.market_id,
    condition_id: sum.market_id,
    outcome_id: sum.outcome_id,
    outcome: sum.outcome,
    title: sum.title,
    protocol: protocolView(sum.protocol),
    neg_risk: market?.isNegRisk ?? false,
    size: usd(sizeUnits),
    unsettled_buy: usd(BigInt(sum.unsettled_buy)),
    unsettled_sell: usd(BigInt(sum.unsettled_sell)),
    avg_price: units === 0n ? null : usd(mulDiv(costUnits, dollar, units)),
    cost_usd: isOwn ? usd(costUnits) : null,
    current_price: price === null ? null : usd(price),
    value_usd: valueUnits === null ? null : usd(valueUnits),
    unrealized_usd: isOwn && valueUnits !== null ? usd(valueUnits - costUnits) : null,
    realized_usd: usd(realizedUnits),
    redeemable: payout !== null,
    resolves_at: market?.endsAt?.toISOString() ?? null,
  }
}

export const createActivity =
  (deps: PredmktDeps, positions: PositionsReader) =>
  async (userId: string, limit: number): Promise<ActivityView> => {
    const { db, venue, clock } = deps
    const owner = { userId, venue: venue.name }
    const [fills, sums, redemptions, transfers, held] = await Promise.all([
      recentFills(db, owner, limit),
      fillSums(db, owner),
      redemptionsOf(db, owner, limit),
      transfersOf(db, owner, limit),
      positions(userId),
    ])
    const realized = sums.reduce((total, sum) => total + heldOf(sum).realizedUnits, 0n)
    const unrealized = held.positions.reduce(
      (total, { unrealized_usd }) =>
        total + (unrealized_usd === null ? 0n : toUnits(unrealized_usd, usdcDecimals)),
      0n,
    )
    return {
      trades: fills.map((fill) => ({
        id: fill.trade_id,
        order_id: fill.order_id,
        venue: 'polymarket' as const,
        side: fill.side === 'buy' ? ('BUY' as const) : ('SELL' as const),
        role: fill.role,
        asset: fill.outcome_id,
        outcome_id: fill.outcome_id,
        condition_id: fill.market_id,
        outcome: fill.outcome,
        size: usd(BigInt(fill.size)),
        price: usd(fill.price),
        fee: usd(BigInt(fill.fee)),
        title: fill.title,
        tx_hash: fill.tx_hash,
        settlement: fill.settlement,
        task_id: fill.task_id,
        timestamp: fill.matched_at.toISOString(),
      })),
      items: [...redemptions.map(redemptionItem), ...transfers.map(transferItem)]
        .sort((a, b) => b.timestamp.localeCompare(a.timestamp))
        .slice(0, limit),
      pnl: { realized_usd: usd(realized), unrealized_usd: usd(unrealized), as_of: clock.now().toISOString() },
      positions_value_usd: held.positions_value_usd,
    }
  }

const redemptionItem = (row: PredictionRedemptionRow) => ({
  id: `${row.market_id}:${row.outcome_id}:${row.tx_hash}`,
  type: 'redeem' as const,
  condition_id: row.market_id,
  amount_usd: usd(BigInt(row.payout)),
  by: row.redeemed_by,
  tx_hash: row.tx_hash,
  timestamp: row.at.toISOString(),
})
const transferItem = (row: Awaited<ReturnType<typeof transfersOf>>[number]) => ({
  id: row.task_id,
  type: row.type,
  condition_id: null,
  amount_usd: usd(BigInt(row.amount)),
  by: 'us' as const,
  tx_hash: row.tx_hash,
  timestamp: row.at.toISOString(),
})
