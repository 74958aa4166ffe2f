import { Fault } from '#kernel/contract/fault.ts'
import type { OutcomeOrder, OutcomeTrade, SettlementState } from '#kernel/money/prediction-views.ts'
import { dateOf, requiredUnits, unitsOf } from './decimals.ts'
import { venueName } from './parse-markets.ts'
import type { WireOrder, WireTrade } from './wire-clob.ts'

const changed = (what: string): Fault => new Fault('upstream_changed', `Polymarket named an unknown ${what}`)

function parseSide(side: string): 'buy' | 'sell' {
  const known = side.toLowerCase()
  if (known === 'buy' || known === 'sell') return known
  throw changed(`side: ${side.slice(0, 40)}`)
}

const orderStatuses: Record<string, OutcomeOrder['status']> = {
  LIVE: 'live',
  // An order that was delayed and then rests.
  UNMATCHED: 'live',
  MATCHED: 'matched',
  DELAYED: 'delayed',
  CANCELED: 'canceled',
  CANCELED_MARKET_RESOLVED: 'canceled_market_resolved',
  INVALID: 'invalid',
}
export function parseOrderStatus(status: string): OutcomeOrder['status'] {
  const known = orderStatuses[status.toUpperCase().replace(/^ORDER_STATUS_/, '')]
  if (known === undefined) throw changed(`state of an order: ${status.slice(0, 40)}`)
  return known
}

const settlements: Record<string, SettlementState> = {
  MATCHED_NOT_BROADCASTED: 'matched_not_broadcasted',
  MATCHED: 'matched',
  MINED: 'mined',
  CONFIRMED: 'confirmed',
  RETRYING: 'retrying',
  FAILED: 'failed',
}
/** HTTP writes a prefix before the words that the stream has. */
export function parseSettlement(status: string): SettlementState {
  const known = settlements[status.toUpperCase().replace(/^TRADE_STATUS_/, '')]
  if (known === undefined) throw changed(`state of a trade: ${status.slice(0, 40)}`)
  return known
}

const timesInForce: readonly OutcomeOrder['timeInForce'][] = ['gtc', 'gtd', 'fok', 'fak']
const parseTimeInForce = (type: string | null | undefined): OutcomeOrder['timeInForce'] =>
  timesInForce.find((each) => each === type?.toLowerCase()) ?? 'gtc'

export function parseOrder(order: WireOrder): OutcomeOrder {
  const expiration = unitsOf(order.expiration) ?? 0n
  const createdAt = dateOf(order.created_at)
  if (!createdAt) throw changed('time of an order')
  return {
    venue: venueName,
    marketId: order.market,
    outcomeId: order.asset_id,
    orderId: order.id,
    status: parseOrderStatus(order.status),
    side: parseSide(order.side),
    outcome: order.outcome ?? '',
    sizeUnits: requiredUnits(order.original_size, 'size'),
    matchedUnits: requiredUnits(order.size_matched, 'size'),
    priceMicros: requiredUnits(order.price, 'price'),
    timeInForce: parseTimeInForce(order.order_type),
    expiresAt: expiration === 0n ? null : dateOf(order.expiration),
    createdAt,
    tradeIds: order.associate_trades ?? [],
  }
}

/** The account whose legs are read: its wallet, or its key where a record names no wallet. */
export type Own = { wallet: string; key: string }

const dollar = 1_000_000n
const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
const otherSide = (side: 'buy' | 'sell') => (side === 'buy' ? 'sell' : 'buy')

type MakerOrder = NonNullable<NonNullable<WireTrade['maker_orders']>>[number]

const isOwnMaker = ({ maker_address, owner }: MakerOrder, own: Own): boolean =>
  maker_address ? isSame(maker_address, own.wallet) : owner === own.key

const isOwnTaker = ({ maker_address, trader_side, owner }: WireTrade, own: Own): boolean => {
  if (maker_address) return isSame(maker_address, own.wallet)
  return trader_side ? trader_side === 'TAKER' : owner === own.key
}

/** A maker of the same outcome is on the other side; one of the other outcome is on the same, in a mint or a merge. */
const makerSide = (trade: WireTrade, maker: MakerOrder): 'buy' | 'sell' => {
  if (maker.side) return parseSide(maker.side)
  const side = parseSide(trade.side)
  return maker.asset_id === trade.asset_id ? otherSide(side) : side
}

/** The taker pays its fee for each part, and the venue lists their average price, which is rounded. */
function partsOf(trade: WireTrade, whole: OutcomeTrade['parts'][number]): OutcomeTrade['parts'] {
  const parts = (trade.maker_orders ?? []).map((maker) => {
    const priceMicros = requiredUnits(maker.price, 'price')
    return {
      priceMicros: maker.asset_id === trade.asset_id ? priceMicros : dollar - priceMicros,
      sizeUnits: requiredUnits(maker.matched_amount, 'size'),
    }
  })
  const sum = parts.reduce((total, { sizeUnits }) => total + sizeUnits, 0n)
  return sum === whole.sizeUnits ? parts : [whole]
}

/** Returns the account's own legs. The fields of a trade itself are the taker's, also for a maker who reads it. */
export function parseTrade(trade: WireTrade, own: Own): OutcomeTrade[] {
  const matchedAt = dateOf(trade.match_time_nano) ?? dateOf(trade.match_time)
  if (!matchedAt) throw changed('time of a trade')
  const common = {
    venue: venueName,
    marketId: trade.market,
    tradeId: trade.id,
    settlement: parseSettlement(trade.status),
    txHash: trade.transaction_hash || null,
    matchedAt,
    updatedAt: dateOf(trade.last_update) ?? matchedAt,
  }
  const whole = {
    sizeUnits: requiredUnits(trade.size, 'size'),
    priceMicros: requiredUnits(trade.price, 'price'),
  }
  const taker: OutcomeTrade = {
    ...common,
    outcomeId: trade.asset_id,
    orderId: trade.taker_order_id,
    role: 'taker',
    side: parseSide(trade.side),
    outcome: trade.outcome ?? '',
    ...whole,
    parts: partsOf(trade, whole),
    feeRateBps: String(trade.fee_rate_bps || '0'),
  }
  const makers = (trade.maker_orders ?? [])
    .filter((maker) => isOwnMaker(maker, own))
    .map((maker): OutcomeTrade => {
      const part = {
        sizeUnits: requiredUnits(maker.matched_amount, 'size'),
        priceMicros: requiredUnits(maker.price, 'price'),
      }
      return {
        ...common,
        outcomeId: maker.asset_id,
        orderId: maker.order_id,
        role: 'maker',
        side: makerSide(trade, maker),
        outcome: maker.outcome ?? '',
        ...part,
        parts: [part],
        feeRateBps: String(maker.fee_rate_bps || '0'),
      }
    })
  return isOwnTaker(trade, own) ? [taker, ...makers] : makers
}
