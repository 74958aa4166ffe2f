import { type Asset, assetNamed, dollarSymbol, type Names, sharedChains } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { isShare, parseAmount } from './parse-amount-text.ts'

/** A condition on the slots, under which a step is part of a plan. */
type Condition = (slots: Slots, names: Names) => boolean

const listed = (slots: Slots, names: Names): Asset[] =>
  (slots.assets ?? '').split(',').flatMap((symbol) => assetNamed(symbol, names) ?? [])

/** Returns the sold and the bought asset of a swap, a bridge or a limit order. */
export function sidesOf(slots: Slots): { in: string | undefined; out: string | undefined } {
  if (slots.side === 'buy') return { in: dollarSymbol, out: slots.asset }
  if (slots.side === 'sell') return { in: slots.asset, out: dollarSymbol }
  if (slots.asset !== undefined) return { in: slots.asset, out: slots.asset }
  return { in: slots.asset_in, out: slots.asset_out }
}

/** Returns the chains on which an order could begin. */
export function startChains(slots: Slots, names: Names): string[] {
  if (slots.chain !== undefined) return [slots.chain]
  const sides = sidesOf(slots)
  const from = assetNamed(sides.in, names)
  const to = assetNamed(sides.out, names)
  if (!from || !to) return []
  const shared =
    slots.chain_out === undefined ? sharedChains([from, to]) : from.tokens.map(({ chainId }) => chainId)
  return shared.filter((chainId) => chainId !== slots.chain_out)
}

const countsOut = (slots: Slots): boolean => {
  const amount = parseAmount(slots.amount)
  const { in: paid, out } = sidesOf(slots)
  return amount?.kind === 'token' && amount.symbol === out && out !== paid
}
const venueIs =
  (...venues: readonly (string | undefined)[]): Condition =>
  ({ venue }) =>
    venues.includes(venue)

const isOnlyAtSpot = (symbol: string | undefined, names: Names): boolean => {
  const asset = assetNamed(symbol, names)
  return asset?.spot === true && asset.tokens.length === 0
}

const cancels = (slots: Slots, names: Names): { chain: boolean; perp: boolean; spot: boolean } => {
  if (slots.id !== undefined) return { chain: slots.id.includes('-'), perp: false, spot: false }
  if (slots.venue === 'perp' || slots.venue === 'spot')
    return { chain: false, perp: slots.venue === 'perp', spot: slots.venue === 'spot' }
  if (slots.venue !== undefined) return { chain: true, perp: false, spot: false }
  const asset = assetNamed(slots.asset, names)
  return { chain: !asset || asset.tokens.length > 0, perp: !asset || asset.perp, spot: !asset || asset.spot }
}
const isVenueId = ({ id }: Slots): boolean => id !== undefined && !id.includes('-')
/**
 * Whether the waiting orders of an asset are read before a cancel: the plan then cancels only at venues where orders
 * wait, and asks the user if the message means one order and several wait.
 */
const isOfAsset = ({ asset, venue, id, one }: Slots): boolean =>
  asset !== undefined && (venue === undefined || one !== undefined) && id === undefined

export const conditions = {
  some_perp: (slots, names) => listed(slots, names).some(({ perp }) => perp),
  some_spot_alone: (slots, names) => listed(slots, names).some(({ perp, spot }) => spot && !perp),
  some_unlisted: (slots, names) => listed(slots, names).some(({ perp, spot }) => !spot && !perp),
  needs_holdings: (slots, names) => isShare(slots.amount) || startChains(slots, names).length !== 1,
  needs_perp_price: (slots, names) =>
    countsOut(slots) && assetNamed(sidesOf(slots).out, names)?.perp === true,
  needs_spot_price: (slots, names) => {
    const asset = assetNamed(sidesOf(slots).out, names)
    return countsOut(slots) && asset?.perp === false && asset.spot
  },
  needs_hook_chain: (slots, names) =>
    slots.chain === undefined && assetNamed(slots.asset, names)?.tokens.length !== 1,
  spot_venue: venueIs('spot'),
  not_spot_venue: ({ venue }) => venue !== 'spot',
  perp_venue: venueIs('perp'),
  earn_venue: venueIs('earn'),
  not_earn_venue: ({ venue }) => venue !== 'earn',
  limit_venue: venueIs('limit'),
  no_venue: venueIs(undefined),
  wallet_venue: ({ venue, asset }, names) =>
    venue === 'all' || (venue === undefined && !isOnlyAtSpot(asset, names)),
  perp_or_all_venue: venueIs('perp', 'all'),
  spot_or_all_venue: ({ venue, asset }, names) =>
    venue === 'spot' || venue === 'all' || (venue === undefined && isOnlyAtSpot(asset, names)),
  perp_or_no_venue: venueIs('perp', undefined),
  spot_or_no_venue: venueIs('spot', undefined),
  hook_or_no_venue: venueIs('hook', undefined),
  amount_is_share: ({ amount }) => isShare(amount),
  amount_is_part: ({ amount }) => isShare(amount) && amount !== 'rest' && amount !== 'all',
  amount_is_share_now: ({ amount }) => isShare(amount) && amount !== 'rest',
  has_id: ({ id }) => id !== undefined,
  has_no_id: ({ id }) => id === undefined,
  cancels_outstanding: (slots, names) => cancels(slots, names).chain,
  cancels_some_outstanding: (slots, names) =>
    cancels(slots, names).chain &&
    slots.id === undefined &&
    (slots.asset !== undefined || slots.venue !== undefined),
  cancels_perp: (slots, names) => cancels(slots, names).perp,
  cancels_spot: (slots, names) => cancels(slots, names).spot,
  cancels_perp_of_asset: (slots, names) =>
    (isOfAsset(slots) && cancels(slots, names).perp) || (isVenueId(slots) && slots.venue === undefined),
  cancels_spot_of_asset: (slots, names) =>
    (isOfAsset(slots) && cancels(slots, names).spot) || (isVenueId(slots) && slots.venue === undefined),
  cancels_perp_id: (slots) => isVenueId(slots) && slots.venue !== 'spot',
  cancels_spot_id: (slots) => isVenueId(slots) && slots.venue !== 'perp',
} satisfies Record<string, Condition>
export type ConditionName = keyof typeof conditions
