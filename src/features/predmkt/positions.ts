import { Fault } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import { mulDiv, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { VenuePosition } from '#kernel/money/prediction-venue.ts'
import type { PredictionRedemptionRow } from '#store/tables/predmkt.ts'
import { chainShares } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { protocolView, usd } from './market-views.ts'
import type { recordEntries } from './record-contract.ts'
import { accountOf, scheduleRested, walletOfRow } from './store/account-store.ts'
import { type FillSums, fillSums, recentFills } from './store/fill-store.ts'
import { redemptionsOf, transfersOf } from './store/redemption-store.ts'

/** Positions and profit by the gateway's own record of confirmed trades; the chain says how many shares there are. */

type PositionsView = Static<(typeof recordEntries)['positions']['output']>
export type PositionView = PositionsView['positions'][number]
export type PositionsReader = (userId: string) => Promise<PositionsView>
type ActivityView = Static<(typeof recordEntries)['activity']['output']>

const dollar = 1_000_000n
/** The venue's list of positions is read up to so many pages. */
const pagesMax = 4

/** Cost of what is left, and what was earned: sales and redemptions take cost at the average purchase price. */
export function profitOf(
  { bought, bought_cash, sold, sold_cash }: Pick<FillSums, 'bought' | 'bought_cash' | 'sold' | 'sold_cash'>,
  redeemed: { sharesUnits: bigint; payoutUnits: bigint },
) {
  const boughtUnits = BigInt(bought)
  const boughtCash = BigInt(bought_cash)
  const soldUnits = BigInt(sold)
  const goneUnits = soldUnits + redeemed.sharesUnits
  // More may be gone than was bought here, because shares can arrive from elsewhere.
  const ownGone = goneUnits < boughtUnits ? goneUnits : boughtUnits
  const goneCost = boughtUnits === 0n ? 0n : mulDiv(boughtCash, ownGone, boughtUnits)
  return {
    leftUnits: boughtUnits - ownGone,
    costUnits: boughtCash - goneCost,
    averageMicros: boughtUnits === 0n ? null : mulDiv(boughtCash, dollar, boughtUnits),
    realizedUnits: BigInt(sold_cash) + redeemed.payoutUnits - goneCost,
  }
}

const noRedemption = { sharesUnits: 0n, payoutUnits: 0n }
export const redeemedOf = (rows: readonly PredictionRedemptionRow[], outcomeId: string) => {
  const row = rows.find(({ outcome_id }) => outcome_id === outcomeId)
  return row ? { sharesUnits: BigInt(row.shares), payoutUnits: BigInt(row.payout) } : noRedemption
}

export const createPositions =
  (deps: PredmktDeps): PositionsReader =>
  async (userId) => {
    const { db, venue, clock } = deps
    const owner = { userId, venue: venue.name }
    const [sums, redemptions, account] = await Promise.all([
      fillSums(db, owner),
      redemptionsOf(db, owner),
      accountOf(db, owner),
      scheduleRested(db, owner, clock.now()),
    ])
    const wallet = account && walletOfRow(account).wallet
    const outcomes = wallet ? await outcomesOf(deps, wallet, sums) : sums
    const held = wallet ? await chainShares(deps, wallet, outcomes.map(sharesOfRow)) : []
    const views = await Promise.all(
      outcomes.map((sum, index) =>
        positionView(deps, { sum, held: held[index], redeemed: redeemedOf(redemptions, sum.outcome_id) }),
      ),
    )
    const positions = views.filter((view) => view !== undefined)
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
  bought: '0',
  bought_cash: '0',
  sold: '0',
  sold_cash: '0',
  unsettled_buy: '0',
  unsettled_sell: '0',
}

/**
 * Outcomes that the wallet traded here, and those that it has from elsewhere by the venue's public record; the chain
 * says how many shares there are.
 */
export async function outcomesOf(
  { venue }: Pick<PredmktDeps, 'venue'>,
  wallet: string,
  sums: readonly FillSums[],
): Promise<FillSums[]> {
  const listed: VenuePosition[] = []
  let cursor: string | undefined
  for (let page = 0; page < pagesMax; page += 1) {
    const found = await venue.positions(wallet, cursor).catch(ignoreFault)
    listed.push(...(found?.items ?? []))
    cursor = found?.nextCursor ?? undefined
    if (cursor === undefined) break
  }
  const known = new Set(sums.map(({ outcome_id }) => outcome_id))
  const fromElsewhere = listed.flatMap(({ outcomeId, marketId, outcome, title }) => {
    const protocol = venue.protocolOf(outcomeId)
    if (known.has(outcomeId) || protocol === undefined) return []
    return { ...nothingTraded, outcome_id: outcomeId, market_id: marketId, outcome, title, protocol }
  })
  return [...sums, ...fromElsewhere]
}

type Held = {
  sum: FillSums
  held: bigint | undefined
  redeemed: { sharesUnits: bigint; payoutUnits: bigint }
}

async function positionView(
  { venue }: PredmktDeps,
  { sum, held, redeemed }: Held,
): Promise<PositionView | undefined> {
  const { leftUnits, costUnits, averageMicros, realizedUnits } = profitOf(sum, redeemed)
  const sizeUnits = held ?? leftUnits
  if (sizeUnits === 0n && sum.unsettled_buy === '0' && sum.unsettled_sell === '0') return undefined
  const market = await venue.market({ marketId: sum.market_id }).catch(ignoreFault)
  const index = market?.outcomes.findIndex(({ outcomeId }) => outcomeId === sum.outcome_id) ?? -1
  const payout = market?.payoutMicros?.[index] ?? null
  const book = payout === null ? await venue.book(sum.outcome_id).catch(ignoreFault) : undefined
  const price = payout ?? book?.bids[0]?.priceMicros ?? null
  const valueUnits = price === null ? null : mulDiv(sizeUnits, price, dollar)
  // Shares that came from elsewhere have no cost here.
  const isOwn = averageMicros !== null && sizeUnits === leftUnits
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
    avg_price: averageMicros === null ? null : usd(averageMicros),
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
      redemptionsOf(db, owner, 500),
      transfersOf(db, owner, limit),
      positions(userId),
    ])
    const realized = sums.reduce(
      (total, sum) => total + profitOf(sum, redeemedOf(redemptions, sum.outcome_id)).realizedUnits,
      0n,
    )
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
        task_id: null,
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
  id: `${row.market_id}:${row.outcome_id}`,
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

const ignoreFault = (error: unknown): undefined => {
  if (error instanceof Fault) return undefined
  throw error
}
