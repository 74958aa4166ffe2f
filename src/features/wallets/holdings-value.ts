import { type CostBasis, fillPrice } from '#engines/cost-basis/store.ts'
import type { Chain } from '#kernel/money/chains.ts'
import {
  fixedPointDecimals,
  fromFixedPoint,
  fromUnits,
  mulDiv,
  rescale,
  toFixedPoint,
  toUnits,
  usdDecimals,
  valueMicros,
} from '#kernel/money/money.ts'
import type { Price } from '#upstreams/prices/prices.ts'
import type { HoldingView } from './contract.ts'
import type { HeldToken } from './wallet-reading.ts'

/** An unknown value of a holding is null, never zero, and money is never a float. */

/** Returns the token's key at the price source; a vault share is priced by its backing asset. */
export const priceKeyOf = (chain: Chain, { kind, token, backing }: HeldToken): string =>
  kind === 'native' ? chain.native.priceId : `${chain.llamaSlug}:${(backing?.asset ?? token).address}`

/** The price of one held unit; that of a share is the price of its part of the backing asset. */
function unitPrice({ kind, token, amountUnits, backing }: HeldToken, price: string): string | null {
  if (kind !== 'earn_share') return price
  if (!backing) return null
  const scaled = toFixedPoint(price) * backing.amountUnits
  const perShare = mulDiv(
    scaled,
    10n ** BigInt(token.decimals),
    amountUnits * 10n ** BigInt(backing.asset.decimals),
  )
  return fromFixedPoint(perShare)
}

function valueOfHeld({ kind, token, amountUnits, backing }: HeldToken, price: string): bigint | null {
  if (kind !== 'earn_share') return valueMicros(amountUnits, token.decimals, price)
  return backing ? valueMicros(backing.amountUnits, backing.asset.decimals, price) : null
}

type Facts = {
  chain: Chain
  block: bigint
  price: Price | undefined
  source: string
  /** The average cost of the token; undefined if no swap of the gateway has bought the token. */
  basis?: CostBasis | undefined
  orderIds?: readonly string[]
}

const usdOf = (fixed: bigint): string =>
  fromUnits(rescale(fixed, fixedPointDecimals, usdDecimals), usdDecimals)

/** Units that came otherwise than by swaps have no known cost, which makes the cost of the holding unknown as well. */
function costOf({ token, amountUnits }: HeldToken, basis: CostBasis | undefined, micros: bigint | null) {
  if (!basis || basis.units === 0n || basis.cost === 0n)
    return { avg_entry_price_usd: null, cost_basis_usd: null, unrealized_pnl_usd: null }
  const isKnown = amountUnits <= basis.units
  const cost = rescale(mulDiv(basis.cost, amountUnits, basis.units), fixedPointDecimals, usdDecimals)
  return {
    avg_entry_price_usd: fillPrice({ units: basis.units, decimals: token.decimals }, basis.cost),
    cost_basis_usd: isKnown ? fromUnits(cost, usdDecimals) : null,
    unrealized_pnl_usd: isKnown && micros !== null ? fromUnits(micros - cost, usdDecimals) : null,
  }
}

export function holdingOf(
  held: HeldToken,
  { chain, block, price, source, basis, orderIds = [] }: Facts,
): HoldingView {
  const micros = price ? valueOfHeld(held, price.price) : null
  const priceUsd = price ? unitPrice(held, price.price) : null
  const { token, kind } = held
  return {
    chain_id: chain.id,
    chain_name: chain.displayName,
    token_address: token.address,
    symbol: token.symbol,
    name: token.name,
    decimals: token.decimals,
    kind,
    amount: String(held.amountUnits),
    balance: fromUnits(held.amountUnits, token.decimals),
    price_usd: priceUsd,
    price_source: priceUsd === null ? null : source,
    price_as_of: price && priceUsd !== null ? price.at.toISOString() : null,
    value_usd: micros === null ? null : fromUnits(micros, usdDecimals),
    ...costOf(held, basis, micros),
    realized_pnl_usd: basis && basis.realized !== null ? usdOf(basis.realized) : null,
    verified: held.verified,
    protocol: kind === 'earn_share' ? 'erc4626' : null,
    condition_id: null,
    outcome_id: null,
    negative_risk: null,
    redeemable: null,
    external_url: kind === 'native' ? null : `${chain.explorerUrl}/token/${token.address}`,
    outstanding_orders: [...orderIds],
    as_of_block: Number(block),
  }
}

export const totalUsd = (holdings: readonly HoldingView[]): string =>
  fromUnits(
    holdings.reduce(
      (sum, { value_usd }) => sum + (value_usd === null ? 0n : toUnits(value_usd, usdDecimals)),
      0n,
    ),
    usdDecimals,
  )
