import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'
import { dayMs, isTimeframe, timeframeMs } from '#market/candle.ts'
import type { MarketHistory } from '#upstreams/hyperliquid/market-history.ts'
import type { InnerTool } from './inner-tool.ts'

/** These reads of market data are no operations: candles, hourly funding and the book are the same for everybody. */

const countMax = 1_000
const daysMax = 90
const levelsMax = 20
/** BTC trades in every block, so the time of its book is the venue's current time. */
const clockMarket = 'BTC'

const iso = (ms: number): string => new Date(ms).toISOString()

function textOf(input: JsonObject, field: string): string {
  const value = input[field]
  if (typeof value !== 'string' || value === '') throw new Fault('validation', `${field} is missing`)
  return value
}

function countOf(input: JsonObject, field: string, max: number): number {
  const value = input[field]
  if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > max)
    throw new Fault('validation', `${field} is a whole number from 1 to ${max}`)
  return Number(value)
}

async function candles(venue: MarketHistory, input: JsonObject, owner: string): Promise<Json> {
  const asset = textOf(input, 'asset')
  const timeframe = textOf(input, 'timeframe')
  if (!isTimeframe(timeframe)) throw new Fault('validation', 'timeframe is none of the venue')
  const count = countOf(input, 'count', countMax)
  // The venue's time is read before the candles: a candle that had ended by that time is final among them.
  const { timeMs } = await venue.book(clockMarket, owner)
  const spanMs = timeframeMs[timeframe]
  const sinceMs = Math.floor(timeMs / spanMs) * spanMs - count * spanMs
  const rows = await venue.candles(asset, timeframe, { sinceMs, count }, owner)
  return {
    asset,
    timeframe,
    as_of: iso(timeMs),
    candles: rows.slice(-count - 1).map(({ startMs, ...prices }) => ({ start: iso(startMs), ...prices })),
  }
}

async function funding(venue: MarketHistory, input: JsonObject, owner: string): Promise<Json> {
  const asset = textOf(input, 'asset')
  const days = countOf(input, 'days', daysMax)
  const { timeMs } = await venue.book(clockMarket, owner)
  const sinceMs = Math.floor(timeMs / dayMs) * dayMs - days * dayMs
  const rates = await venue.fundingRates(asset, sinceMs, owner)
  return { asset, as_of: iso(timeMs), rates: rates.map(({ atMs, rate }) => ({ at: iso(atMs), rate })) }
}

async function book(venue: MarketHistory, input: JsonObject, owner: string): Promise<Json> {
  const asset = textOf(input, 'asset')
  const { timeMs, bids, asks } = await venue.book(asset, owner)
  return {
    asset,
    as_of: iso(timeMs),
    bids: bids.slice(0, levelsMax),
    asks: asks.slice(0, levelsMax),
  }
}

const attemptsMax = 3
const waitMsMax = 20_000

/** The request budget refills within a minute, so an answer waits up to 20 seconds for its share. */
async function withinBudget<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await read()
    } catch (error) {
      const seconds = error instanceof Fault ? Number(error.extras?.retry_after) : Number.NaN
      const waitMs = seconds * 1_000
      if (attempt >= attemptsMax || !(waitMs <= waitMsMax)) throw error
      await pause(waitMs, undefined, { signal })
    }
}

type MarketRead = {
  read(venue: MarketHistory, input: JsonObject, owner: string): Promise<Json>
  description: string
  properties: JsonObject
}
const assetField = { type: 'string', description: 'Symbol of a perpetual market, for instance ETH' }
const countField = (maximum: number, description: string) => ({
  type: 'integer',
  minimum: 1,
  maximum,
  description,
})
const marketReads: Readonly<Record<string, MarketRead>> = {
  market_candles: {
    read: candles,
    description: 'Candles of a perpetual market, oldest first; the last one may still be open.',
    properties: {
      asset: assetField,
      timeframe: { type: 'string', enum: Object.keys(timeframeMs), description: 'Length of a candle' },
      count: countField(countMax, 'How many closed candles'),
    },
  },
  market_funding: {
    read: funding,
    description: 'Hourly funding rates of a perpetual market, oldest first, as fractions.',
    properties: { asset: assetField, days: countField(daysMax, 'How many days back') },
  },
  market_book: {
    read: book,
    description: 'Best prices and sizes in the order book of a perpetual market.',
    properties: { asset: assetField },
  },
}

export function createMarketTools(venue: MarketHistory | undefined): ReadonlyMap<string, InnerTool> {
  const toolOf = ({ read, description, properties }: MarketRead): InnerTool => ({
    description,
    inputSchema: { type: 'object', properties, required: Object.keys(properties) },
    async call(input, { userId, signal }) {
      if (!venue) throw new Fault('unavailable', 'No venue is configured')
      return withinBudget(() => read(venue, input, userId), signal)
    },
  })
  return new Map(Object.entries(marketReads).map(([name, read]) => [name, toolOf(read)]))
}
