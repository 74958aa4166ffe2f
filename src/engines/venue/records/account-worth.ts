import {
  addDecimals,
  fixedPointDecimals,
  fixedPointOne,
  fromUnits,
  mulDiv,
  toFixedPoint,
} from '#kernel/money/money.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-view-cache.ts'
import type { Hyperliquid, SpotBalance, SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { isUnified } from './account-mode.ts'

type WorthDeps = {
  views: Pick<AccountViews, 'account' | 'spotBalances' | 'mode'>
  venue: Pick<Hyperliquid, 'spots'>
}
/** In USD; `spot` is null where the venue has no price in dollars for a coin of the account. */
export type VenueWorth = { perp: string; spot: string | null }

const cash = 'USDC'
const pricesMaxAgeMs = 15_000

function worthOf({ coin, total }: SpotBalance, markets: readonly SpotMarket[]): string | null {
  if (coin === cash) return total
  const mark = markets.find(({ base, quote }) => base === coin && quote === cash)?.markPrice
  if (mark === undefined || mark === null) return /[1-9]/.test(total) ? null : '0'
  return fromUnits(mulDiv(toFixedPoint(total), toFixedPoint(mark), fixedPointOne), fixedPointDecimals)
}

/** Reads what an account at the venue is worth at mark prices. */
export async function readVenueWorth({ views, venue }: WorthDeps, account: string): Promise<VenueWorth> {
  const [{ value: state }, { value: spot }, { markets }] = await Promise.all([
    views.account(account),
    views.spotBalances(account),
    venue.spots(pricesMaxAgeMs),
  ])
  const values = spot.map((balance) => worthOf(balance, markets))
  const sum = values.reduce<string | null>(
    (all, value) => (all === null || value === null ? null : addDecimals(all, value)),
    '0',
  )
  const reportsMarginOnly = state.withdrawableUsd === '0' && state.accountValueUsd === state.marginUsedUsd
  // With one balance for both sides, the cash is on the spot side, and its margin must not be counted twice.
  const isShared = reportsMarginOnly && spot.length > 0 && isUnified((await views.mode(account)).value)
  return { perp: isShared ? '0' : state.accountValueUsd, spot: sum }
}
