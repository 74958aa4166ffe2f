import * as amounts from './amounts.ts'
import type { Concept } from './concepts.ts'
import { isPlural, plainWords } from './english/words.ts'
import { dollarSymbol } from './names.ts'
import * as orderTerms from './order-terms.ts'
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
} from './reader.ts'
import { has } from './tag.ts'
import * as times from './times.ts'

/** Each fills some slots from a clause and takes the tokens that it used. */
type SlotReader = (reader: Reader, slots: Slots, nowMs: number) => void

const present = (reader: Reader, ...concepts: readonly Concept[]): boolean =>
  indexOf(reader, ...concepts) >= 0

const sorts: readonly (readonly [concept: Concept, sort: string])[] = [
  ['FUNDING', 'funding'],
  ['INTEREST', 'open_interest'],
  ['VOLUME', 'volume'],
  ['LOSERS', 'losers'],
  ['GAINERS', 'gainers'],
]

const topics: readonly (readonly [concept: Concept, topic: string])[] = [
  ['SLIPPAGE', 'slippage'],
  ['FUNDING', 'funding'],
  ['LIQUIDATION', 'liquidation'],
  ['TRAILING', 'trailing'],
  ['LIMIT', 'limit'],
  ['STOP', 'stop'],
  ['TARGET', 'stop'],
  ['LEVERAGE', 'leverage'],
  ['LONG', 'perp'],
  ['SHORT', 'perp'],
  ['LONG_', 'perp'],
  ['SHORT_', 'perp'],
  ['PERP', 'perp'],
  ['BRIDGE', 'bridge'],
  ['BRIDGE_', 'bridge'],
  ['EARN', 'earn'],
  ['APY', 'earn'],
  ['CREDITS', 'credits'],
  ['GAS', 'gas'],
  ['SCAM', 'security'],
  ['FREEZE', 'kill_switch'],
  ['LIMITS', 'limits'],
  ['SPOT', 'spot'],
  ['SWAP', 'swap'],
  ['SWAP_', 'swap'],
  ['BUY', 'swap'],
  ['SELL', 'swap'],
  ['BUY_', 'swap'],
  ['DEPOSIT', 'deposit'],
  ['ADDRESS', 'deposit'],
  ['WITHDRAW', 'withdraw'],
  ['WITHDRAW_', 'withdraw'],
]
export const helpTopics: readonly string[] = [...new Set(topics.map(([, topic]) => topic))]

const pick = (reader: Reader, table: readonly (readonly [Concept, string])[]): string | undefined =>
  table.find(([concept]) => present(reader, concept))?.[1]

function readVenue(reader: Reader, slots: Slots): void {
  // `perp orders or spot orders` are those of both.
  if (present(reader, 'PERP') && present(reader, 'SPOT')) return
  if (present(reader, 'PERP')) slots.venue = 'perp'
  else if (present(reader, 'SPOT')) slots.venue = 'spot'
  else if (present(reader, 'EARN', 'EARNED')) slots.venue = 'earn'
}

function readOrdersVenue(reader: Reader, slots: Slots): void {
  readVenue(reader, slots)
  if (slots.venue === 'earn') delete slots.venue
  if (slots.venue !== undefined) return
  if (present(reader, 'STOP', 'TARGET', 'TRAILING')) slots.venue = 'hook'
  else if (present(reader, 'LIMIT')) slots.venue = 'limit'
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

const readChain: SlotReader = (reader, slots) => amounts.readChains(reader, slots, { moves: false })

/** A chain that a word names without a preposition: `my solana address`. */
function readAnyChain(reader: Reader, slots: Slots): void {
  amounts.readChains(reader, slots, { moves: false })
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
  const [at] = amounts.assetPositions(reader)
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
  const positions = amounts.assetPositions(reader)
  const symbol = (at: number) => reader.tokens[at]?.asset?.symbol
  const asset = positions.find((at) => symbol(at) !== dollarSymbol)
  if (asset !== undefined) {
    slots.asset = symbol(asset) ?? ''
    for (const at of positions) if (symbol(at) === slots.asset) take(reader, at)
  }
  if (amount && amount.kind !== 'number') {
    take(reader, amount.at)
    if (amount.asset >= 0) take(reader, amount.asset)
    slots.amount = amount.text
  }
  // The dollars for which something is sold.
  for (const at of amounts.assetPositions(reader))
    if (symbol(at) === dollarSymbol && slots.side === 'sell') take(reader, at)
  if (slots.price !== undefined && slots.condition === undefined && slots.side !== undefined)
    slots.condition = slots.side === 'buy' ? 'lte' : 'gte'
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

/** `the eth order` is one order: where several wait, the user is asked. */
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
  const [first] = amounts.assetPositions(reader)
  const asset = amount && amount.asset >= 0 ? amount.asset : first
  if (asset !== undefined && assetAt(reader, asset)) {
    slots.asset = reader.tokens[asset]?.asset?.symbol ?? ''
    for (const at of amounts.assetPositions(reader))
      if (reader.tokens[at]?.asset?.symbol === slots.asset) take(reader, at)
  }
  if (!amount || amount.kind === 'number') return
  take(reader, amount.at)
  slots.amount = amount.text
}

/** `move` between chains: the chain to which the margin goes is where it is received. */
function readChainsBack(reader: Reader, slots: Slots): void {
  amounts.readChains(reader, slots, { moves: true })
  if (slots.chain_out === undefined) return
  slots.chain = slots.chain_out
  delete slots.chain_out
}

const plain = new Set(plainWords)
/** A word that names nothing here, where an asset is counted: `any pepe`, `how much pepe`, `my pepe`. */
const unlistedWord = ({ tokens }: Reader): string | undefined =>
  tokens.find((token, at) => {
    const before = tokens[at - 1]
    const isCounted = has(before, 'MINE') || isCounting(before)
    const isUnknown = token.kind === 'word' && token.concepts.length === 0 && !token.asset && !token.chain
    return isCounted && isUnknown && !plain.has(token.words)
  })?.text

export const slotReaders = {
  assets: amounts.readAssets,
  asset: amounts.readAsset,
  token: readToken,
  address_token: (reader, slots) => amounts.readAddress(reader, slots, 'token'),
  pair: amounts.readPair,
  sized: amounts.readSized,
  dollars: amounts.readDollars,
  bridge_amount: readBridgeAmount,
  close_amount: readCloseAmount,
  order_side: readOrderSide,
  side: readSide,
  chain: readAnyChain,
  chains: (reader, slots) => amounts.readChains(reader, slots, { moves: true }),
  chains_same: readChain,
  moving_chains: (reader, slots) => amounts.readChains(reader, slots, { moves: true }),
  moving_chains_back: readChainsBack,
  id: amounts.readId,
  leverage: orderTerms.readLeverage,
  margin: orderTerms.readMargin,
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
  sort: (reader, slots) => {
    const sort = pick(reader, sorts)
    if (sort !== undefined) slots.sort = sort
  },
  unlisted: (reader, slots) => {
    const word = unlistedWord(reader)
    if (word !== undefined && slots.asset === undefined) slots.unlisted = word
  },
  topic: (reader, slots) => {
    const topic = pick(reader, topics)
    if (topic !== undefined) slots.topic = topic
  },
  portfolio_venue: (reader, slots) => {
    const isBoth = present(reader, 'PERP') && present(reader, 'SPOT')
    if (isBoth) slots.venue = 'all'
    else if (present(reader, 'PERP')) slots.venue = 'perp'
    else if (present(reader, 'SPOT')) slots.venue = 'spot'
    else if (present(reader, 'PORTFOLIO')) slots.venue = 'all'
  },
  limit_field: (reader, slots) => {
    if (present(reader, 'APPROVALABOVE')) slots.field = 'approval_above'
    else if (present(reader, 'PERTX')) slots.field = 'per_transaction'
    else if (present(reader, 'DAILY')) slots.field = 'per_day'
  },
  task_kind: (reader, slots) => {
    if (present(reader, 'SWAP', 'BRIDGE')) slots.kind = 'swap'
  },
  task_status: (reader, slots) => {
    if (present(reader, 'FAILED')) slots.status = 'failed'
    else if (present(reader, 'RUNNING')) slots.status = 'running'
    else if (present(reader, 'COMPLETED')) slots.status = 'completed'
  },
  sell_share: (reader, slots) => {
    const at = indexWhere(reader, (token) => token.quantity?.unit === 'share' || has(token, 'ALL'))
    const quantity = quantityAt(reader, at)
    if (at < 0) return
    take(reader, at)
    if (quantity) slots.share = quantity.value
  },
  all_margin: (reader, slots) => {
    if (slots.amount === undefined && present(reader, 'ALL')) slots.amount = 'all'
  },
} satisfies Record<string, SlotReader>
export type ReaderName = keyof typeof slotReaders
