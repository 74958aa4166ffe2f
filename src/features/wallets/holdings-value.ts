import type { Chain } from '#kernel/chains.ts'
import {
  fromFixedPoint,
  fromUnits,
  mulDiv,
  toFixedPoint,
  toUnits,
  usdDecimals,
  valueMicros,
} from '#kernel/money.ts'
import type { Price } from '#upstreams/prices/prices.ts'
import type { HoldingView } from './contract.ts'
import type { HeldToken } from './wallet-reading.ts'

/** Prices and values of holdings. An unknown value is null, never zero; money is never a float. */

/** The token's key at the price source; a vault share is priced by its backing asset. */
export const priceKeyOf = (chain: Chain, { kind, token, backing }: HeldToken): string =>
  kind === 'native' ? chain.native.priceId : `${chain.llamaSlug}:${(backing?.asset ?? token).address}`

/** The price of one held unit: a share has the price of its part of the backing asset. */
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

type Facts = { chain: Chain; block: bigint; price: Price | undefined; source: string }

export function holdingOf(held: HeldToken, { chain, block, price, source }: Facts): HoldingView {
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
    avg_entry_price_usd: null,
    cost_basis_usd: null,
    unrealized_pnl_usd: null,
    realized_pnl_usd: null,
    verified: held.verified,
    protocol: kind === 'earn_share' ? 'erc4626' : null,
    condition_id: null,
    negative_risk: null,
    redeemable: null,
    external_url: kind === 'native' ? null : `${chain.explorerUrl}/token/${token.address}`,
    outstanding_orders: [],
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
