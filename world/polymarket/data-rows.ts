import { averagePrice, unitsNumber } from './decimal.ts'
import { marketByCondition, otherOutcome } from './markets.ts'
import type { Position } from './positions.ts'
import type { Activity, Leg, Trade } from './state.ts'
import type { Venue } from './venue.ts'

/** Rows of the Data API with the names of its second version; addresses in lower case, as upstream has them. */

const profile = { name: '', pseudonym: '', bio: '', profile_image: '', profile_image_optimized: '' }

const yearMs = 365 * 86_400_000

export const outcomeRow = (venue: Venue, wallet: string, { market, outcome }: Position) => {
  const other = otherOutcome(outcome)
  return {
    proxy_wallet: wallet,
    token_id: market.tokens[outcome],
    condition_id: market.conditionId,
    title: market.question,
    slug: market.slug,
    icon: '',
    event_slug: market.event.slug,
    outcome: market.outcomes[outcome],
    outcome_index: outcome,
    opposite_outcome: market.outcomes[other],
    opposite_token_id: market.tokens[other],
    end_date: new Date(venue.state.genesisMs + yearMs).toISOString().slice(0, 10),
  }
}

const marketRow = (conditionId: string) => {
  const market = marketByCondition(conditionId)
  return {
    condition_id: conditionId,
    title: market?.question ?? '',
    slug: market?.slug ?? '',
    icon: '',
    event_slug: market?.event.slug ?? '',
  }
}

export const activityRow = (row: Activity) => {
  const market = marketByCondition(row.conditionId)
  const { outcome } = row
  return {
    proxy_wallet: row.wallet,
    timestamp: Math.floor(row.atMs / 1_000),
    type: row.type,
    size: unitsNumber(row.shares),
    usdc_size: unitsNumber(row.cash),
    transaction_hash: row.hash,
    price: row.type === 'TRADE' ? Number(averagePrice(row.cash, row.shares)) : 0,
    token_id: outcome === null || !market ? '' : market.tokens[outcome],
    side: row.type === 'TRADE' ? (row.side ?? '') : '',
    outcome_index: outcome ?? 999,
    outcome: outcome === null || !market ? '' : market.outcomes[outcome],
    ...marketRow(row.conditionId),
    ...profile,
  }
}

/** A trade as the wallet of one leg sees it. */
export type PublicTrade = { trade: Trade; leg: Leg }

export const tradeRow = ({ trade, leg }: PublicTrade) => ({
  proxy_wallet: leg.wallet,
  side: leg.side,
  token_id: leg.signed.tokenId,
  size: unitsNumber(leg.shares),
  price: Number(averagePrice(leg.cash, leg.shares)),
  timestamp: Math.floor(trade.matchMs / 1_000),
  outcome: marketByCondition(trade.conditionId)?.outcomes[leg.outcome] ?? '',
  outcome_index: leg.outcome,
  transaction_hash: trade.hash,
  ...marketRow(trade.conditionId),
  ...profile,
})

/** The names of the first version. */
export const olderNames = (row: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace('token_id', 'asset').replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  )
