import { nextInteger, nextNormal, nextRandom } from '#world/venue-core/random.ts'
import { one } from './decimal.ts'
import { setOracle } from './mark.ts'
import { type Market, markets, perps } from './markets.ts'
import { tickAt, toTick } from './ticks.ts'
import { bookOf, flowAddress, makerAddress, stateOf, type Venue } from './venue.ts'

const levels = 12
const firstLevelUsd = 40_000

/** One step of the price process. Perpetual and spot of the same coin move together. */
const sigma = 0.000_12
const meanReversion = 0.000_002

export const walkPrices = (venue: Venue, seconds: number): void => {
  const { random, settings } = venue.state
  if (!settings.walking) return
  const scale = sigma * Math.sqrt(Math.min(seconds, 3_600))
  for (const market of perps) {
    const state = stateOf(venue, market.asset)
    const drift = meanReversion * seconds * (Math.round(market.startUsd * one) / state.oracle - 1)
    const factor = 1 + nextNormal(random) * scale + Math.max(-0.01, Math.min(0.01, drift))
    if (!state.pinned && !market.delisted) setOracle(state, toTick(Math.round(state.oracle * factor), market))
  }
  for (const market of markets) {
    if (market.kind !== 'spot') continue
    const state = stateOf(venue, market.asset)
    const step = nextNormal(random) * scale
    if (state.pinned) continue
    const pairedState = perps.find(({ coin }) => coin === market.base.name || `U${coin}` === market.base.name)
    const free = Math.round(state.oracle * (1 + step))
    setOracle(state, toTick(pairedState ? stateOf(venue, pairedState.asset).oracle : free, market))
  }
}

type Quote = { price: number; size: number }

/** A ladder on both sides: a tight spread, growing sizes, wider steps further out. */
const ladder = (market: Market, oracle: number, { buy }: { buy: boolean }): Quote[] => {
  const quotes: Quote[] = []
  let before = oracle
  for (let level = 0; level < levels; level += 1) {
    const away = 0.000_08 * 1.55 ** level
    const tick = tickAt(oracle, market)
    const target = buy ? oracle * (1 - away) : oracle * (1 + away)
    let price = toTick(Math.round(target), market)
    if (buy ? price >= before : price <= before) price = buy ? before - tick : before + tick
    if (price <= 0) break
    before = price
    const usd = firstLevelUsd * (1 + level * 0.8)
    const size = Math.max(1, Math.round((usd / (oracle / one)) * 10 ** market.sizeDecimals))
    quotes.push({ price, size })
  }
  return quotes
}

const cancelQuotes = (venue: Venue, market: Market): void => {
  const book = bookOf(venue, market.asset)
  for (const { id, owner } of book.orders()) if (owner === makerAddress) book.cancel(id)
}

/** Cancels the old ladder and quotes around the oracle price, so that immediate orders fill. */
export const requote = (venue: Venue, market: Market): void => {
  cancelQuotes(venue, market)
  if (market.kind === 'perp' && market.delisted) return
  const book = bookOf(venue, market.asset)
  const { oracle } = stateOf(venue, market.asset)
  const before = venue.takerContext
  venue.takerContext = { systemAddress: makerAddress }
  for (const buy of [true, false])
    for (const { price, size } of ladder(market, oracle, { buy })) {
      const id = venue.state.nextMarketMakerOrderId
      venue.state.nextMarketMakerOrderId -= 1
      book.place({ id, owner: makerAddress, buy, price, size, timeInForce: 'gtc' })
    }
  venue.takerContext = before
  venue.events.push({ kind: 'book', asset: market.asset })
}

/**
 * Small trades of other accounts, so that trades, candles and volumes change. Pinned markets keep the price of the
 * test.
 */
export const tradeRandomly = (venue: Venue): void => {
  const { random, settings } = venue.state
  if (!settings.walking) return
  for (let i = 0; i < 2; i += 1) {
    const market = markets[nextInteger(random, markets.length)] as Market
    const state = stateOf(venue, market.asset)
    const buy = nextRandom(random) < 0.5
    const usd = 20 + nextRandom(random) * 2_000
    if (state.pinned) continue
    const size = Math.max(1, Math.round((usd / (state.oracle / one)) * 10 ** market.sizeDecimals))
    const best = bookOf(venue, market.asset).best({ buy: !buy })
    if (best === undefined) continue
    const id = venue.state.nextMarketMakerOrderId
    venue.state.nextMarketMakerOrderId -= 1
    venue.takerContext = { systemAddress: flowAddress }
    bookOf(venue, market.asset).place({ id, owner: flowAddress, buy, price: best, size, timeInForce: 'ioc' })
    venue.takerContext = undefined
    venue.events.push({ kind: 'book', asset: market.asset })
  }
}
