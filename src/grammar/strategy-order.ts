import type { Names } from './asset-and-chain-names.ts'
import { readConditions } from './strategy-conditions.ts'
import {
  type Cursor,
  cursorOf,
  fillers,
  isAtEnd,
  skip,
  takeDollars,
  takePerp,
  takePhrase,
  takeQuantity,
  takeSpan,
  unreadOf,
} from './strategy-cursor.ts'

/** Reads a strategy in words: a purchase at times, shares to hold, an entry under a plain condition, or day trades. */

export type WordCondition = {
  left: string
  is: 'above' | 'below' | 'crosses_above' | 'crosses_below'
  right: string
}
export type WordStrategy =
  | {
      type: 'dca'
      config: { asset: string; amount_usd: string; max_price?: string; partial?: boolean }
    }
  | {
      type: 'rebalance'
      config: { targets: { asset: string; share_pct: string }[]; band_pct?: string }
    }
  | {
      type: 'condition'
      config: {
        asset: string
        order_notional_usd: string
        side: 'long' | 'short'
        leverage?: number
        interval?: string
        enter_if: WordCondition[]
        exit_if?: WordCondition[]
      }
    }
  | { type: 'day_trade_farming'; config: { asset: string; order_notional_usd: string; leverage?: number } }
/** A strategy that was understood whole, or the words that were not understood. */
export type WordReading = { strategy: WordStrategy } | { unread: string[] }

type Reader = (cursor: Cursor) => WordStrategy | undefined

const buyWords = [
  'buy',
  'purchase',
  'get',
  'accumulate',
  'stack',
  'dca',
  'invest',
  'put',
  'dollar cost average',
]
const heldWords = ['rebalance', 'hold', 'keep', 'allocate', 'balance']
const dayWords = ['day trade', 'day trades', 'daytrade', 'farm day trades', 'farm']
const entryWords = [
  'buy',
  'long',
  'go long',
  'open a long',
  'short',
  'go short',
  'open a short',
  'sell short',
]

/** Words without which no sentence is a strategy. */
const cues = new RegExp(
  `\\b(?:${[...buyWords, ...heldWords, ...dayWords, 'long', 'short'].join('|')})\\b`,
  'i',
)
export const mayBeStrategy = (text: string): boolean => cues.test(text)

/**
 * Reads a sentence without its times. A strategy with times of its own buys or holds shares; the others decide on
 * closes.
 */
export function readStrategy(text: string, names: Names, { isTimed }: { isTimed: boolean }): WordReading {
  const readers: readonly Reader[] = isTimed ? [readDca, readRebalance] : [readFarming, readCondition]
  let unread: string[] | undefined
  for (const read of readers) {
    const cursor = cursorOf(text, names)
    skip(cursor, fillers)
    const strategy = read(cursor)
    if (strategy && isAtEnd(cursor)) return { strategy }
    const words = unreadOf(cursor)
    if (unread === undefined || lengthOf(words) < lengthOf(unread)) unread = words
  }
  return { unread: unread ?? [] }
}

const lengthOf = (words: readonly string[]): number => words.join(' ').length

type Order = { asset: string; usd: string }

/** Reads `20 dollars of ETH` or `ETH for 20 dollars`. */
function readOrder(cursor: Cursor): Order | undefined {
  skip(cursor, [...fillers, 'into', 'in', 'of'])
  const before = takeDollars(cursor)
  skip(cursor, [...fillers, 'of', 'in', 'into', 'on'])
  const asset = takePerp(cursor)
  if (asset === undefined) return undefined
  if (before !== undefined) return { asset, usd: before }
  skip(cursor, ['for', 'with', 'using', 'a', 'worth', 'of'])
  const usd = takeDollars(cursor)
  return usd === undefined ? undefined : { asset, usd }
}

const belowWords = ['below', 'under', 'less than', 'cheaper than', 'not above', 'no more than', 'at most']

/** Reads the highest price of a purchase: `if the price is below 3000 dollars`, `but not above $3,000`. */
function readMaxPrice(cursor: Cursor): string | undefined {
  const { at } = cursor
  skip(cursor, [
    ',',
    'but',
    'and',
    'only',
    'if',
    'when',
    'while',
    'as long as',
    'the',
    'its',
    'it',
    'price',
    'of',
  ])
  takePerp(cursor)
  skip(cursor, ['price', 'is', 'stays', 'trades', 'costs'])
  const isBelow = takePhrase(cursor, belowWords) !== undefined
  const price = isBelow ? (takeDollars(cursor) ?? takeQuantity(cursor, ['number'])) : undefined
  if (price === undefined) cursor.at = at
  return price
}

function readDca(cursor: Cursor): WordStrategy | undefined {
  if (takePhrase(cursor, buyWords) === undefined) return undefined
  const order = readOrder(cursor)
  if (!order) return undefined
  const isPartial = takePhrase(cursor, ['or less', 'or what is left', 'or whatever is left']) !== undefined
  const maxPrice = readMaxPrice(cursor)
  return {
    type: 'dca',
    config: {
      asset: order.asset,
      amount_usd: order.usd,
      ...(maxPrice !== undefined && { max_price: maxPrice }),
      ...(isPartial && { partial: true }),
    },
  }
}

const targetsMax = 10

function readTarget(cursor: Cursor): { asset: string; share_pct: string } | undefined {
  const before = takeQuantity(cursor, ['percent'])
  skip(cursor, ['of', 'in', 'into', 'the'])
  const asset = takePerp(cursor)
  if (asset === undefined) return undefined
  skip(cursor, ['to', 'at', 'with'])
  const share = before ?? takeQuantity(cursor, ['percent'])
  return share === undefined ? undefined : { asset, share_pct: share }
}

function readRebalance(cursor: Cursor): WordStrategy | undefined {
  if (takePhrase(cursor, heldWords) === undefined) return undefined
  skip(cursor, ['my', 'the', 'portfolio', 'everything', 'it', 'to', 'into', 'at', 'between', 'among', ':'])
  const targets: { asset: string; share_pct: string }[] = []
  for (let target = readTarget(cursor); target; target = readTarget(cursor)) {
    targets.push(target)
    if (targets.length > targetsMax) return undefined
    const { at } = cursor
    skip(cursor, [',', 'and'])
    if (cursor.at === at) break
  }
  if (targets.length === 0) return undefined
  const band = readBand(cursor)
  return { type: 'rebalance', config: { targets, ...(band !== undefined && { band_pct: band }) } }
}

/** Reads by how much a share may be off: `when one is off by 5 percent`, `with a band of 5 percent`. */
function readBand(cursor: Cursor): string | undefined {
  skip(cursor, [',', 'and'])
  const isOff = takePhrase(cursor, ['when', 'if', 'once', 'whenever']) !== undefined
  if (isOff) {
    skip(cursor, ['one', 'an', 'asset', 'a', 'share', 'it', 'any', 'of', 'them', 'is', 'are', 'they'])
    if (takePhrase(cursor, ['off by', 'off', 'away by']) === undefined) return undefined
    skip(cursor, ['more than', 'over', 'at least'])
  } else if (takePhrase(cursor, ['with a band of', 'band', 'within', 'give or take']) === undefined)
    return undefined
  return takeQuantity(cursor, ['percent'])
}

function readLeverage(cursor: Cursor): number | undefined {
  const { at } = cursor
  skip(cursor, ['at', 'with', 'using', 'and'])
  const times = takeQuantity(cursor, ['times'])
  if (times !== undefined && /^\d{1,2}$/.test(times)) {
    skip(cursor, ['leverage'])
    return Number(times)
  }
  cursor.at = at
  return undefined
}

function readFarming(cursor: Cursor): WordStrategy | undefined {
  if (takePhrase(cursor, dayWords) === undefined) return undefined
  const order = readOrder(cursor)
  if (!order) return undefined
  skip(cursor, ['a trade', 'per trade', 'each', 'each time', 'a time'])
  const leverage = readLeverage(cursor)
  return {
    type: 'day_trade_farming',
    config: {
      asset: order.asset,
      order_notional_usd: order.usd,
      ...(leverage !== undefined && { leverage }),
    },
  }
}

/** Reads the candles that decide: `on the 4 hour chart`, `on 15m candles`. */
function readInterval(cursor: Cursor): string | undefined {
  const { at } = cursor
  skip(cursor, ['on', 'the', 'a'])
  const span = takeSpan(cursor)
  if (span !== undefined) {
    skip(cursor, ['chart', 'candles', 'candle', 'close', 'closes'])
    return span
  }
  cursor.at = at
  return undefined
}

function readCondition(cursor: Cursor): WordStrategy | undefined {
  const verb = takePhrase(cursor, entryWords)
  if (verb === undefined) return undefined
  const order = readOrder(cursor)
  if (!order) return undefined
  const leverage = readLeverage(cursor)
  const interval = readInterval(cursor)
  const enter = readConditions(cursor, order.asset)
  if (!enter) return undefined
  skip(cursor, [',', 'and', 'then'])
  const isLeaving = takePhrase(cursor, ['sell', 'close', 'exit', 'get out', 'leave']) !== undefined
  if (isLeaving) skip(cursor, ['it', 'the', 'position', 'again'])
  const exit = isLeaving ? readConditions(cursor, order.asset) : undefined
  if (isLeaving && !exit) return undefined
  return {
    type: 'condition',
    config: {
      asset: order.asset,
      order_notional_usd: order.usd,
      side: verb.includes('short') ? 'short' : 'long',
      ...(leverage !== undefined && { leverage }),
      ...(interval !== undefined && { interval }),
      enter_if: enter,
      ...(exit && { exit_if: exit }),
    },
  }
}
