import type { PlanStep, Source } from './intent-frame.ts'
import { formula, slot, step } from './step-builders.ts'

/** Steps and fields of plans that several intents share. */

export const holdings = step('holdings', 'wallets_holdings')
export const perpOrders = step('orders', 'perp_orders')
export const spotOrders = step('spot', 'spot_venue_orders')
const fills = { asset: slot('asset'), limit: formula('fills_limit') }
export const perpFills = step('fills', 'perp_fills', fills)
export const spotFills = step('spot_fills', 'spot_venue_fills', fills)
export const outstanding = step('outstanding', 'outstanding_orders_list')
export const perpMarkets = step('perp', 'perp_markets')
export const spotMarkets = step('spot', 'spot_venue_markets')
export const perpMarket = (search: Source): PlanStep => step('perp', 'perp_markets', { search_text: search })
export const spotMarket = (search: Source): PlanStep =>
  step('spot', 'spot_venue_markets', { search_text: search })
export const setupStatus = step('status', 'perp_setup_status')
export const vault = step('vault', 'earn_info')
export const vaultPositions = step('earn', 'earn_positions')
export const chains = step('chains', 'chains_list')
export const packs = step('packs', 'credits_packs')
export const policy = step('policy', 'policy_show')

export const venueOrder = {
  order_type: formula('order_type'),
  limit_price: slot('price'),
  slippage_pct: formula('slippage_pct'),
}
