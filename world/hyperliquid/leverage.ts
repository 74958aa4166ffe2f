import { rejectRequest } from '#world/venue-core/request-error.ts'
import { availableMargin, initialMargin, isolatedValue, marginUsed, positionValue } from './margin.ts'
import { marketOf, type Perp } from './markets.ts'
import type { Account } from './state.ts'
import { stateOf, type Venue } from './venue.ts'

const perpNamed = (asset: number): Perp => {
  const market = marketOf(asset)
  return market?.kind === 'perp' ? market : rejectRequest(`Invalid asset: ${asset}`)
}

const marks = (venue: Venue) => (asset: number) => stateOf(venue, asset).mark

export const updateLeverage = (
  venue: Venue,
  account: Account,
  { asset, isCross, leverage }: { asset: number; isCross: boolean; leverage: number },
): void => {
  const market = perpNamed(asset)
  if (leverage < 1 || leverage > market.maxLeverage) rejectRequest('Invalid leverage value')
  if (isCross && market.onlyIsolated) rejectRequest('Cross margin is not allowed for this asset.')
  const position = account.positions.get(asset)
  account.leverage.set(asset, { cross: isCross, value: leverage })
  if (!position) return
  const before = position.leverage
  if (before.cross !== isCross) {
    account.leverage.set(asset, before)
    rejectRequest('Cannot switch leverage type with open position.')
  }
  const mark = stateOf(venue, asset).mark
  const old = initialMargin(positionValue(position, mark), before.value)
  const extra = initialMargin(positionValue(position, mark), leverage) - old
  if (extra > 0n && availableMargin(account, marks(venue)) < extra) {
    account.leverage.set(asset, before)
    rejectRequest(
      isCross
        ? 'Cross position does not have sufficient margin available to decrease leverage. To decrease leverage, deposit more collateral.'
        : 'Isolated position does not have sufficient margin available to decrease leverage. To decrease leverage, add margin to the position.',
    )
  }
  position.leverage = { cross: isCross, value: leverage }
  if (isCross || extra <= 0n) return
  position.raw += extra
  account.raw -= extra
}

/** `ntli` is in micro-dollars, negative to remove margin. */
export const updateIsolatedMargin = (
  venue: Venue,
  account: Account,
  { asset, ntli }: { asset: number; ntli: number },
): void => {
  perpNamed(asset)
  const amount = BigInt(ntli) * 100n
  if (amount === 0n) rejectRequest('Update to isolated margin cannot be zero.')
  const position = account.positions.get(asset) ?? rejectRequest('Cannot update margin for empty position.')
  if (position.leverage.cross) rejectRequest('Position does not use isolated margin.')
  const mark = stateOf(venue, asset).mark
  if (amount > 0n && availableMargin(account, marks(venue)) < amount)
    rejectRequest('Account does not have sufficient margin available for increase.')
  const floor = initialMargin(positionValue(position, mark), position.leverage.value)
  if (amount < 0n && isolatedValue(position, mark) + amount < floor)
    rejectRequest('Position does not have sufficient margin for reduction.')
  position.raw += amount
  account.raw -= amount
}

/** Adds the margin that the requested leverage lacks. */
export const topUpIsolated = (
  venue: Venue,
  account: Account,
  { asset, leverage }: { asset: number; leverage: string },
): void => {
  perpNamed(asset)
  const position = account.positions.get(asset) ?? rejectRequest('Cannot update margin for empty position.')
  const mark = stateOf(venue, asset).mark
  const wanted = BigInt(Math.ceil(Number(positionValue(position, mark)) / Number(leverage)))
  const missing = wanted - marginUsed(position, mark)
  if (missing <= 0n) return
  updateIsolatedMargin(venue, account, { asset, ntli: Number((missing + 99n) / 100n) })
}
