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

const isVenueId = ({ id }: Slots): boolean => id !== undefined && !id.includes('-')
const isOfVenue = ({ venue }: Slots): boolean => venue === 'perp' || venue === 'spot'
/** Whether a cancel means only limit orders or only stops, which are then cancelled one by one. */
const isOfKind = ({ venue }: Slots): boolean => venue === 'limit' || venue === 'hook'

/**
 * The places whose waiting orders are read before a cancel. It then cancels only where orders wait, names the places where
 * none does, and asks if the message means one order and several wait.
 */
const looks = (slots: Slots): { chain: boolean; perp: boolean; spot: boolean } => {
  if (slots.id !== undefined) {
    const isAtVenue = isVenueId(slots) && slots.venue === undefined
    return { chain: false, perp: isAtVenue, spot: isAtVenue }
  }
  const isAtVenue = slots.chain === undefined
  return {
    chain: !isOfVenue(slots),
    perp: isAtVenue && slots.venue !== 'spot',
    spot: isAtVenue && slots.venue !== 'perp',
  }
}

/** Whether the user said a time: profit of a time is what was realised in it. */
const isBounded = ({ period }: Slots): boolean => period !== undefined && period !== 'all'

export const conditions = {
  some_perp: (slots, names) => listed(slots, names).some(({ perp }) => perp),
  some_spot_alone: (slots, names) =>
    listed(slots, names).some(({ perp, spot }) => spot && (!perp || slots.venue === 'spot')),
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
  spot_venue: venueIs('spot', 'fills'),
  not_spot_venue: ({ venue }) => venue !== 'spot',
  perp_venue: venueIs('perp', 'fills'),
  earn_venue: venueIs('earn'),
  not_earn_venue: ({ venue }) => venue !== 'earn',
  limit_venue: venueIs('limit'),
  no_venue: venueIs(undefined),
  unbounded_no_venue: (slots) => slots.venue === undefined && !isBounded(slots),
  unbounded_not_earn_venue: (slots) => slots.venue !== 'earn' && slots.venue !== 'fills' && !isBounded(slots),
  bounded_perp: (slots) => isBounded(slots) && (slots.venue === undefined || slots.venue === 'perp'),
  bounded_spot: (slots) => isBounded(slots) && (slots.venue === undefined || slots.venue === 'spot'),
  wallet_venue: ({ venue, asset }, names) =>
    venue === 'all' || (venue === undefined && !isOnlyAtSpot(asset, names)),
  perp_or_all_venue: venueIs('perp', 'all'),
  spot_or_all_venue: ({ venue, asset }, names) =>
    venue === 'spot' || venue === 'all' || (venue === undefined && isOnlyAtSpot(asset, names)),
  perp_or_no_venue: venueIs('perp', 'limit', 'hook', undefined),
  spot_or_no_venue: venueIs('spot', 'limit', 'hook', undefined),
  hook_or_no_venue: venueIs('hook', undefined),
  amount_is_share: ({ amount }) => isShare(amount),
  amount_is_part: ({ amount }) => isShare(amount) && amount !== 'rest' && amount !== 'all',
  amount_is_share_now: ({ amount }) => isShare(amount) && amount !== 'rest',
  has_id: ({ id }) => id !== undefined,
  has_no_id: ({ id }) => id === undefined,
  looks_on_chains: (slots) => looks(slots).chain,
  looks_at_perps: (slots) => looks(slots).perp,
  looks_at_spot: (slots) => looks(slots).spot,
  cancels_outstanding: (slots) => looks(slots).chain || slots.id?.includes('-') === true,
  cancels_perp: (slots) => looks(slots).perp && slots.id === undefined && !isOfKind(slots),
  cancels_spot: (slots) => looks(slots).spot && slots.id === undefined && !isOfKind(slots),
  cancels_perp_of_kind: (slots) => looks(slots).perp && slots.id === undefined && isOfKind(slots),
  cancels_spot_of_kind: (slots) => looks(slots).spot && slots.id === undefined && isOfKind(slots),
  cancels_perp_id: (slots) => isVenueId(slots) && slots.venue !== 'spot',
  cancels_spot_id: (slots) => isVenueId(slots) && slots.venue !== 'perp',
} satisfies Record<string, Condition>
export type ConditionName = keyof typeof conditions
