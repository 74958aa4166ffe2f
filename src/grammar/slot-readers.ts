import * as amounts from './amounts.ts'
import { dollarSymbol } from './asset-and-chain-names.ts'
import { readPair } from './asset-pair.ts'
import * as assets from './asset-readers.ts'
import {
  assetAt,
  chainAt,
  indexOf,
  indexWhere,
  isCounting,
  quantityAt,
  type Reader,
  type Slots,
  take,
} from './clause-reader.ts'
import { isPlural, plainWords } from './english/word-lists.ts'
import type { Concept } from './feature-rules.ts'
import { topics } from './help-topics.ts'
import * as orderTerms from './order-terms.ts'
import * as predictions from './prediction-readers.ts'
import { has } from './tag.ts'
import * as times from './times.ts'

/** A reader fills some slots from a clause, and takes the tokens that it used. */
type SlotReader = (reader: Reader, slots: Slots, nowMs: number) => void

const present = (reader: Reader, ...concepts: readonly Concept[]): boolean =>
  indexOf(reader, ...concepts) >= 0

/** Makes a reader that fills a slot with the value of the first concept that the clause has. */
const bySaid =
  (slot: string, values: Readonly<Partial<Record<Concept, string>>>): SlotReader =>
  (reader, slots) => {
    const said = (Object.keys(values) as Concept[]).find((concept) => present(reader, concept))
    const value = said && values[said]
    if (value !== undefined) slots[slot] = value
  }

const readAnyVenue = bySaid('venue', {
  PERP: 'perp',
  SPOT: 'spot',
  EARN: 'earn',
  EARNED: 'earn',
  FILLWORD: 'fills',
})
const saysBothVenues = (reader: Reader): boolean => present(reader, 'PERP') && present(reader, 'SPOT')

/** Reads the venue; `perp orders or spot orders` are the orders of both venues, so that the slot stays empty. */
const readVenue: SlotReader = (reader, slots, nowMs) => {
  if (!saysBothVenues(reader)) readAnyVenue(reader, slots, nowMs)
}

const readOrdersVenue: SlotReader = (reader, slots, nowMs) => {
  readVenue(reader, slots, nowMs)
  if (slots.venue === 'earn') delete slots.venue
  if (slots.venue === undefined)
    bySaid('venue', { STOP: 'hook', TARGET: 'hook', TRAILING: 'hook', LIMIT: 'limit' })(reader, slots, nowMs)
}

function readCount(reader: Reader, slots: Slots): void {
  const at = indexWhere(
    reader,
    ({ quantity }) => quantity?.unit === 'number' && /^[1-9]\d?$/.test(quantity.value),
  )
  const quantity = quantityAt(reader, at)
  if (!quantity) return
  take(reader, at)
  slots.count = quantity.value
}

const readChain: SlotReader = (reader, slots) => assets.readChains(reader, slots, { moves: false })

/** Reads a chain that no coin is called like. */
function readPlainChain(reader: Reader, slots: Slots): void {
  const at = indexWhere(
    reader,
    (token, index) =>
      token.chain !== undefined && token.asset === undefined && chainAt(reader, index) !== undefined,
  )
  const chain = reader.tokens[at]?.chain
  if (!chain) return
  take(reader, at)
  slots.chain = chain.id
}

/** Reads a chain, even if a word names the chain without a preposition, as in `my solana address`. */
function readAnyChain(reader: Reader, slots: Slots): void {
  assets.readChains(reader, slots, { moves: false })
  if (slots.chain !== undefined) return
  const at = indexWhere(
    reader,
    (token, index) =>
      token.chain !== undefined &&
      (token.asset === undefined || chainAt(reader, index, { moves: true }) !== undefined),
  )
  const chain = reader.tokens[at]?.chain
  if (!chain) return
  take(reader, at)
  slots.chain = chain.id
}

function readToken(reader: Reader, slots: Slots): void {
  if (slots.token !== undefined) return
  const [at] = assets.assetPositions(reader)
  if (at === undefined) return
  take(reader, at)
  slots.token = reader.tokens[at]?.asset?.symbol ?? ''
}

function readSide(reader: Reader, slots: Slots): void {
  const isShort = present(reader, 'SHORT', 'SHORT_', 'SELL')
  const isLong = present(reader, 'LONG', 'LONG_', 'BUY')
  if (isShort !== isLong) slots.side = isShort ? 'short' : 'long'
}

function readOrderSide(reader: Reader, slots: Slots): void {
  const isBuy = present(reader, 'BUY')
  const isSell = present(reader, 'SELL')
  if (isBuy !== isSell) slots.side = isBuy ? 'buy' : 'sell'
  const amount = amounts.findAmount(reader)
  const positions = assets.assetPositions(reader)
  const isDollar = (at: number) => reader.tokens[at]?.asset?.symbol === dollarSymbol
  assets.takeAsset(
    reader,
    slots,
    positions.find((at) => !isDollar(at)),
  )
  if (amount && amount.kind !== 'number') {
    take(reader, amount.at)
    if (amount.asset >= 0) take(reader, amount.asset)
    slots.amount = amount.text
  }
  // In a sale, USDC is what the asset is sold for: its tokens count as read and fill no slot.
  for (const at of assets.assetPositions(reader)) if (isDollar(at) && slots.side === 'sell') take(reader, at)
  if (slots.price !== undefined && slots.condition === undefined && slots.side !== undefined)
    slots.condition = slots.side === 'buy' ? 'lte' : 'gte'
}

/** Reads an amount to be valued, of dollars or of the asset behind it. */
function readWorthAmount(reader: Reader, slots: Slots): void {
  const amount = amounts.findAmount(reader)
  if (!amount || (amount.kind !== 'usd' && amount.kind !== 'token')) return
  take(reader, amount.at)
  slots.amount = amount.text.endsWith(` ${dollarSymbol}`)
    ? amount.text.replace(dollarSymbol, 'usd')
    : amount.text
  for (const at of assets.assetPositions(reader))
    if (reader.tokens[at]?.asset?.symbol === dollarSymbol) take(reader, at)
}

function readCloseAmount(reader: Reader, slots: Slots): void {
  amounts.readSized(reader, slots)
  if (slots.amount === 'all' && slots.asset !== undefined) delete slots.amount
  if (slots.amount === undefined && present(reader, 'HALVE')) slots.amount = '1/2'
}

function readIndicators(reader: Reader, slots: Slots): void {
  const found = reader.tokens.flatMap(({ concepts }) => concepts.filter((concept) => concept.startsWith('#')))
  if (found.length > 0) slots.indicators = [...new Set(found)].map((concept) => concept.slice(1)).join(',')
}

/**
 * Reads whether the message means a single order, as `the eth order` does, so that the user is asked if several wait.
 */
function readOne(reader: Reader, slots: Slots): void {
  const order = reader.tokens.find((token) => has(token, 'ORDERS', 'LIMIT', 'STOP', 'TARGET', 'TRAILING'))
  const areSeveral = (order !== undefined && isPlural(order.words)) || slots.all !== undefined
  if (areSeveral && slots.asset === undefined && slots.id === undefined) slots.all = 'yes'
  if (!areSeveral && slots.asset !== undefined && slots.id === undefined) slots.one = 'yes'
}

function readEverything(reader: Reader, slots: Slots): void {
  const at = indexOf(reader, 'ALL')
  if (at < 0) return
  take(reader, at)
  slots.all = 'yes'
}

function readBridgeAmount(reader: Reader, slots: Slots): void {
  const amount = amounts.findAmount(reader)
  const [first] = assets.assetPositions(reader)
  const asset = amount && amount.asset >= 0 ? amount.asset : first
  if (asset !== undefined && assetAt(reader, asset)) assets.takeAsset(reader, slots, asset)
  if (!amount || amount.kind === 'number') return
  take(reader, amount.at)
  slots.amount = amount.text
}

/** Reads the chain that receives withdrawn margin: the chain behind `to` fills the slot `chain`. */
function readChainsBack(reader: Reader, slots: Slots): void {
  assets.readChains(reader, slots, { moves: true })
  if (slots.chain_out === undefined) return
  slots.chain = slots.chain_out
  delete slots.chain_out
}

/**
 * Returns a word that is not a known asset but stands where an asset is expected: `any pepe`, `how much pepe`, `my
 * pepe`.
 */
const unlistedWord = ({ tokens }: Reader): string | undefined =>
  tokens.find((token, at) => {
    const before = tokens[at - 1]
    const isCounted = has(before, 'MINE') || isCounting(before)
    const isUnknown = token.kind === 'word' && token.concepts.length === 0 && !token.asset && !token.chain
    return isCounted && isUnknown && !plainWords.has(token.words)
  })?.text

export const slotReaders = {
  assets: assets.readAssets,
  asset: assets.readAsset,
  token: readToken,
  address_token: (reader, slots) => assets.readAddress(reader, slots, 'token'),
  pair: readPair,
  sized: amounts.readSized,
  dollars: amounts.readDollars,
  bridge_amount: readBridgeAmount,
  close_amount: readCloseAmount,
  order_side: readOrderSide,
  worth_amount: readWorthAmount,
  side: readSide,
  chain: readAnyChain,
  plain_chain: readPlainChain,
  chains: (reader, slots) => assets.readChains(reader, slots, { moves: true }),
  chains_same: readChain,
  moving_chains_back: readChainsBack,
  id: assets.readId,
  leverage: orderTerms.readLeverage,
  margin: bySaid('margin', { ISOLATED: 'isolated', CROSS: 'cross' }),
  slippage: orderTerms.readSlippage,
  legs: orderTerms.readLegs,
  price: orderTerms.readPrice,
  period: times.readPeriod,
  timeframe: times.readTimeframe,
  expiry: times.readExpiry,
  indicators: readIndicators,
  venue: readVenue,
  orders_venue: readOrdersVenue,
  everything: readEverything,
  count: readCount,
  one: readOne,
  spot_said: bySaid('venue', { SPOT: 'spot' }),
  sort: bySaid('sort', {
    FUNDING: 'funding',
    INTEREST: 'open_interest',
    VOLUME: 'volume',
    LOSERS: 'losers',
    GAINERS: 'gainers',
  }),
  unlisted: (reader, slots) => {
    const word = unlistedWord(reader)
    if (word !== undefined && slots.asset === undefined) slots.unlisted = word
  },
  topic: (reader, slots) => {
    const topic = Object.keys(topics).find((name) => present(reader, ...(topics[name]?.concepts ?? [])))
    if (topic !== undefined) slots.topic = topic
  },
  grouping: bySaid('by', {
    TRANSIT: 'pending',
    BYCHAIN: 'chain',
    BYASSET: 'asset',
    STABLES: 'asset',
  }),
  portfolio_venue: (reader, slots, nowMs) => {
    if (saysBothVenues(reader)) slots.venue = 'all'
    else bySaid('venue', { PERP: 'perp', SPOT: 'spot' })(reader, slots, nowMs)
  },
  limit_field: bySaid('field', {
    APPROVALABOVE: 'approval_above',
    PERTX: 'per_transaction',
    DAILY: 'per_day',
  }),
  task_kind: bySaid('kind', { SWAP: 'swap', BRIDGE: 'swap' }),
  task_status: bySaid('status', { FAILED: 'failed', RUNNING: 'running', COMPLETED: 'completed' }),
  sell_share: (reader, slots) => {
    const at = indexWhere(reader, (token) => token.quantity?.unit === 'share' || has(token, 'ALL'))
    const quantity = quantityAt(reader, at)
    if (at < 0) return
    take(reader, at)
    if (quantity) slots.share = quantity.value
  },
  outcome: predictions.readOutcome,
  share_amount: predictions.readShareAmount,
  question: predictions.readQuestion,
  all_margin: (reader, slots) => {
    if (slots.amount === undefined && present(reader, 'ALL')) slots.amount = 'all'
  },
} satisfies Record<string, SlotReader>
export type ReaderName = keyof typeof slotReaders
