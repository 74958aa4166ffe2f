import { notional, one, roundMicro } from './decimal.ts'
import { type Perp, perps } from './markets.ts'
import { bookOf, stateOf, type Venue } from './venue.ts'

/** Rates and premiums are integers of 1e-10. */
export const rateOne = 10_000_000_000n
const interest = 1_000_000n
const band = 5_000_000n
const cap = 400_000_000n
export const hourMs = 3_600_000
export const sampleEveryMs = 5_000

const clamp = (value: bigint, low: bigint, high: bigint): bigint =>
  value < low ? low : value > high ? high : value

/** The hourly rate from the average premium: an eighth of the eight-hour rate, truncated to ten decimals. */
export const fundingRate = (premium: bigint): bigint =>
  clamp((premium + clamp(interest - premium, -band, band)) / 8n, -cap, cap)

/** The payment of a position, at the oracle price and not at the mark. */
export const fundingPayment = (size: number, oracle: number, rate: bigint, sizeDecimals: number): bigint =>
  roundMicro((notional(oracle, size, sizeDecimals) * rate) / rateOne)

const impactUsd = (coin: string): number => (coin === 'BTC' || coin === 'ETH' ? 20_000 : 6_000)

/** Average price of trading the impact notional at once, or undefined when the book is too thin. */
export const impactPrice = (venue: Venue, market: Perp, { buy }: { buy: boolean }): number | undefined => {
  let leftUsd = impactUsd(market.coin)
  let lots = 0
  let spent = 0
  for (const { price, size } of bookOf(venue, market.asset).depth({ buy: !buy }, 50)) {
    const unit = price / one
    const levelUsd = unit * (size / 10 ** market.sizeDecimals)
    const taken = Math.min(leftUsd, levelUsd)
    lots += taken / unit
    spent += taken
    leftUsd -= taken
    if (leftUsd <= 0) return (spent / lots) * one
  }
  return undefined
}

/** (max(impact bid - oracle, 0) - max(oracle - impact ask, 0)) / oracle. */
export const premiumNow = (venue: Venue, market: Perp): bigint => {
  const { oracle } = stateOf(venue, market.asset)
  const bid = impactPrice(venue, market, { buy: false })
  const ask = impactPrice(venue, market, { buy: true })
  if (bid === undefined || ask === undefined) return 0n
  const gap = Math.max(bid - oracle, 0) - Math.max(oracle - ask, 0)
  return BigInt(Math.round((gap / oracle) * Number(rateOne)))
}

export const samplePremiums = (venue: Venue): void => {
  for (const market of perps) {
    const state = stateOf(venue, market.asset)
    const sample = premiumNow(venue, market)
    state.premium.sum += sample
    state.premium.count += 1
    state.premium.last = sample
    state.rate = fundingRate(state.premium.sum / BigInt(state.premium.count))
  }
}

const ratesMax = 5_000
const fundingsMax = 20_000

/** Longs pay shorts exactly; the remainder of rounding is credited to the venue's own account. */
export const payFunding = (venue: Venue, timeMs: number): void => {
  for (const market of perps) {
    const state = stateOf(venue, market.asset)
    const { sum, count } = state.premium
    const premium = count === 0 ? premiumNow(venue, market) : sum / BigInt(count)
    const rate = fundingRate(premium)
    state.rate = rate
    state.rates.push({ timeMs, rate, premium })
    if (state.rates.length > ratesMax) state.rates.shift()
    state.premium = { sum: 0n, count: 0, last: premium }
    for (const account of venue.state.accounts.values()) {
      const position = account.positions.get(market.asset)
      if (!position) continue
      const paid = fundingPayment(position.size, state.oracle, rate, market.sizeDecimals)
      if (position.leverage.cross) account.raw -= paid
      else position.raw -= paid
      venue.state.fees.rounding += paid
      position.funding.allTime += paid
      position.funding.sinceOpen += paid
      position.funding.sinceChange += paid
      if (account.isMarketMaker) continue
      const funding = { timeMs, asset: market.asset, usd: -paid, size: position.size, rate }
      account.fundings.push(funding)
      if (account.fundings.length > fundingsMax) account.fundings.shift()
      venue.events.push({ kind: 'funding', user: account.address, funding })
    }
  }
}
