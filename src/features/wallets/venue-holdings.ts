import type { PositionView } from '#features/predmkt/positions.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { HoldingView } from './contract.ts'
import type { HeldToken, WalletReading } from './wallet-reading.ts'

/** What users hold in their wallets at a venue, in the form of their other holdings. */

export type VenueShares = PositionView & { tokenAddress: string }
/** The tokens in the wallet at the venue, and the settled outcome shares there with the venue's prices. */
export type VenueReading = WalletReading & { shares: VenueShares[]; at: Date }
export type VenueHoldings = {
  name: string
  displayName: string
  chain: Chain
  /** Undefined if the user has no wallet at the venue. */
  read(userId: string): Promise<VenueReading | undefined>
}

export const inVenueWallet = (venue: VenueHoldings, holding: HoldingView): HoldingView => ({
  ...holding,
  protocol: venue.name,
})

type Seen = { venue: VenueHoldings; reading: Pick<VenueReading, 'block' | 'at'> }

export function sharesHolding(shares: VenueShares, { venue, reading }: Seen): HoldingView {
  const { chain } = venue
  return {
    chain_id: chain.id,
    chain_name: chain.displayName,
    token_address: shares.tokenAddress,
    symbol: shares.outcome || 'shares',
    name: shares.title || 'Outcome shares',
    decimals: usdcDecimals,
    kind: 'outcome_token',
    amount: String(toUnits(shares.size, usdcDecimals)),
    balance: shares.size,
    price_usd: shares.current_price,
    price_source: shares.current_price === null ? null : venue.name,
    price_as_of: shares.current_price === null ? null : reading.at.toISOString(),
    value_usd: shares.value_usd,
    avg_entry_price_usd: shares.avg_price,
    cost_basis_usd: shares.cost_usd,
    unrealized_pnl_usd: shares.unrealized_usd,
    realized_pnl_usd: shares.cost_usd === null ? null : shares.realized_usd,
    verified: true,
    protocol: venue.name,
    condition_id: shares.condition_id,
    outcome_id: shares.outcome_id,
    negative_risk: shares.neg_risk,
    redeemable: shares.redeemable,
    external_url: `${chain.explorerUrl}/token/${shares.tokenAddress}?a=${shares.outcome_id}`,
    outstanding_orders: [],
    as_of_block: Number(reading.block),
  }
}

export const heldAtVenue = (reading: VenueReading | undefined): HeldToken[] => reading?.held ?? []
