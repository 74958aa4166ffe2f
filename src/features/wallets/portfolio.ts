import type { VenueWorth } from '#engines/venue/records/account-worth.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addDecimals } from '#kernel/money/money.ts'
import type { HoldingView, PortfolioView } from './contract.ts'
import type { Holdings } from './holdings.ts'

export type PortfolioDeps = {
  holdings: Holdings
  /** Reads what a user's accounts at the venue are worth; the function is undefined where there is no venue. */
  venueWorth: () => ((userId: string) => Promise<VenueWorth>) | undefined
  clock: Clock
}
type Place = PortfolioView['places'][number]

const placeOf = ({ kind, protocol }: HoldingView): Place['place'] => {
  if (kind === 'earn_share') return 'vault'
  return protocol === null ? 'wallets' : 'predictions'
}
const sum = (values: readonly (string | null)[]): string =>
  values.reduce<string>((all, value) => (value === null ? all : addDecimals(all, value)), '0')

/** Money on its way between two places is in neither of them. */
export const createPortfolio =
  ({ holdings, venueWorth, clock }: PortfolioDeps) =>
  async (_input: unknown, { userId }: { userId: string }): Promise<PortfolioView> => {
    const read = venueWorth()
    const [held, venue] = await Promise.all([
      holdings.forUser(userId, { force: false }),
      read?.(userId).catch((error: unknown) => {
        if (error instanceof Fault) return { perp: null, spot: null }
        throw error
      }),
    ])
    const inWallets = (['wallets', 'vault', 'predictions'] as const).map((place): Place => {
      const values = held.holdings.filter((each) => placeOf(each) === place).map(({ value_usd }) => value_usd)
      return { place, value_usd: sum(values) }
    })
    const atVenue: Place[] = venue
      ? [
          { place: 'perp', value_usd: venue.perp },
          { place: 'spot_venue', value_usd: venue.spot },
        ]
      : []
    const places = [...inWallets, ...atVenue]
    return {
      total_value_usd: sum(places.map(({ value_usd }) => value_usd)),
      places,
      complete: held.complete && atVenue.every(({ value_usd }) => value_usd !== null),
      as_of: clock.now().toISOString(),
    }
  }
