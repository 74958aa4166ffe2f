import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import * as T from '#kernel/contract/schema.ts'
import { parseJson } from '#kernel/wire/json.ts'
import { decimalPattern } from './decimals.ts'
import {
  blankInvalid,
  filterField,
  filterList,
  filterNamedField,
  filterValid,
  filterValues,
  getField,
  mapField,
  type OnSkipped,
  type RecordFilter,
} from './invalid-record-filters.ts'

export type { OnSkipped }

/** The schemas of the venue's replies. The venue's field names are used only here and in the parser. */

const text = T.String()
const decimal = T.String({ pattern: decimalPattern })
const whole = T.Integer()
const orNull = <S extends T.TSchema>(schema: S) => T.Union([schema, T.Null()])

const PerpAsset = T.Object({
  name: text,
  szDecimals: whole,
  maxLeverage: whole,
  onlyIsolated: T.Optional(T.Boolean()),
  isDelisted: T.Optional(T.Boolean()),
})
const PerpContext = T.Object({
  funding: decimal,
  openInterest: decimal,
  prevDayPx: decimal,
  dayNtlVlm: decimal,
  oraclePx: decimal,
  markPx: decimal,
  midPx: T.Optional(orNull(decimal)),
})
const SpotContext = T.Object({
  coin: text,
  prevDayPx: decimal,
  dayNtlVlm: decimal,
  markPx: decimal,
  midPx: T.Optional(orNull(decimal)),
})
const SpotPair = T.Object({ tokens: T.Array(whole, { minItems: 2 }), name: text, index: whole })
const Token = T.Object({ name: text, szDecimals: whole, index: whole, tokenId: text })
const SpotMeta = T.Object({ universe: T.Array(SpotPair), tokens: T.Array(Token) })
const Summary = T.Object({
  accountValue: decimal,
  totalMarginUsed: decimal,
  totalNtlPos: decimal,
  totalRawUsd: decimal,
})
const Position = T.Object({
  coin: text,
  szi: decimal,
  leverage: T.Object({ type: text, value: whole }),
  entryPx: orNull(decimal),
  positionValue: decimal,
  unrealizedPnl: decimal,
  liquidationPx: orNull(decimal),
  marginUsed: decimal,
  maxLeverage: whole,
  cumFunding: T.Object({ allTime: decimal, sinceOpen: decimal }),
})
const AssetPosition = T.Object({ position: Position })
const Balance = T.Object({ coin: text, token: whole, total: decimal, hold: decimal, entryNtl: decimal })
const Agent = T.Object({ address: text, name: text, validUntil: whole })
const fundingFields = { coin: text, usdc: decimal, szi: decimal, fundingRate: decimal }
const FundingRecord = T.Object({ time: whole, delta: T.Object(fundingFields) })
const StreamedFunding = T.Object({ time: whole, ...fundingFields })
const orderFields = {
  coin: text,
  side: text,
  limitPx: decimal,
  sz: decimal,
  oid: whole,
  timestamp: whole,
  triggerCondition: text,
  isTrigger: T.Boolean(),
  triggerPx: decimal,
  isPositionTpsl: T.Boolean(),
  reduceOnly: T.Boolean(),
  orderType: text,
  origSz: decimal,
  tif: T.Optional(orNull(text)),
  cloid: T.Optional(orNull(text)),
}
const Child = T.Object(orderFields)
const FrontendOrder = T.Object({ ...orderFields, children: T.Optional(T.Array(Child)) })

const Fill = T.Object({
  coin: text,
  px: decimal,
  sz: decimal,
  side: text,
  time: whole,
  startPosition: decimal,
  dir: text,
  closedPnl: decimal,
  oid: whole,
  fee: decimal,
  feeToken: text,
  tid: whole,
  hash: T.Optional(orNull(text)),
  cloid: T.Optional(orNull(text)),
  liquidation: T.Optional(orNull(T.Object({ liquidatedUser: T.Optional(text) }))),
})
const Candle = T.Object({ t: whole, o: decimal, h: decimal, l: decimal, c: decimal, v: decimal })
const RateOfHour = T.Object({ time: whole, fundingRate: decimal })
/** The names of invalid records; null if the name is invalid too. */
const unread = T.Optional(T.Array(orNull(text)))
/** All ledger updates have only the type in common; the parser reads the fields that it knows. */
const LedgerUpdate = T.Object({
  time: whole,
  hash: text,
  delta: T.Object({ type: text }, { additionalProperties: true }),
})

const schemas = {
  // The index in the list identifies a market, so an invalid record becomes null.
  metaAndAssetCtxs: T.Tuple([
    T.Object({ universe: T.Array(orNull(PerpAsset)) }),
    T.Array(orNull(PerpContext)),
  ]),
  spotMetaAndAssetCtxs: T.Tuple([SpotMeta, T.Array(SpotContext)]),
  allMids: T.Record(text, decimal),
  // The levels are checked where they are read, because the time of a book is also needed without them.
  l2Book: T.Object({ time: whole, levels: T.Optional(T.Unsafe<unknown>({})) }),
  candleSnapshot: T.Array(Candle),
  fundingHistory: T.Array(RateOfHour),
  clearinghouseState: T.Object({
    marginSummary: Summary,
    crossMarginSummary: Summary,
    withdrawable: decimal,
    assetPositions: T.Array(AssetPosition),
    time: whole,
    unread,
  }),
  spotClearinghouseState: T.Object({
    balances: T.Array(Balance),
    unread,
  }),
  activeAssetData: T.Object({
    leverage: T.Object({ type: text, value: whole }),
    availableToTrade: T.Array(decimal, { minItems: 2 }),
    markPx: decimal,
  }),
  frontendOpenOrders: T.Array(FrontendOrder),
  orderStatus: T.Union([
    T.Object({ status: T.Literal('unknownOid') }),
    T.Object({
      status: T.Literal('order'),
      order: T.Object({ order: FrontendOrder, status: text, statusTimestamp: whole }),
    }),
  ]),
  userFillsByTime: T.Array(Fill),
  userFills: T.Array(Fill),
  userFunding: T.Array(FundingRecord),
  extraAgents: T.Array(Agent),
  userRole: T.Object({ role: text, data: T.Optional(T.Object({ user: T.Optional(text) })) }),
  userNonFundingLedgerUpdates: T.Array(LedgerUpdate),
  userAbstraction: text,
  userRateLimit: T.Object({
    cumVlm: decimal,
    nRequestsUsed: whole,
    nRequestsCap: whole,
    nRequestsSurplus: T.Optional(whole),
  }),
} as const
export type InfoType = keyof typeof schemas
export type InfoAnswer<K extends InfoType> = T.Static<(typeof schemas)[K]>

const OrderUpdate = T.Object({
  order: T.Object({ coin: text, oid: whole, cloid: T.Optional(orNull(text)), sz: decimal, origSz: decimal }),
  status: text,
  statusTimestamp: whole,
})

const childrenOf: RecordFilter = (order, skip) =>
  typeof order === 'object' && order !== null && 'children' in order
    ? filterField('children', Child)(order, skip)
    : order

const ordersFilter: RecordFilter = (value, skip) =>
  filterValid(
    Array.isArray(value) ? value.map((order: unknown) => childrenOf(order, skip)) : value,
    FrontendOrder,
    skip,
  )

const positionsFilter = filterNamedField('assetPositions', AssetPosition, (record) =>
  getField(getField(record, 'position'), 'coin'),
)
const balancesFilter = filterNamedField('balances', Balance, (record) => getField(record, 'coin'))

const recordFilters: Partial<Record<InfoType, RecordFilter>> = {
  metaAndAssetCtxs: (value, skip) => {
    if (!Array.isArray(value)) return value
    const [meta, contexts] = value as unknown[]
    return [
      mapField(meta, 'universe', (list) => blankInvalid(list, PerpAsset, skip)),
      blankInvalid(contexts, PerpContext, skip),
    ]
  },
  spotMetaAndAssetCtxs: (value, skip) => {
    if (!Array.isArray(value)) return value
    const [meta, contexts] = value as unknown[]
    const pairs = filterField('universe', SpotPair)(meta, skip)
    return [filterField('tokens', Token)(pairs, skip), filterValid(contexts, SpotContext, skip)]
  },
  allMids: filterValues(decimal),
  clearinghouseState: positionsFilter,
  spotClearinghouseState: balancesFilter,
  frontendOpenOrders: ordersFilter,
  userFillsByTime: filterList(Fill),
  userFills: filterList(Fill),
  userFunding: filterList(FundingRecord),
  userNonFundingLedgerUpdates: filterList(LedgerUpdate),
  extraAgents: filterList(Agent),
  candleSnapshot: filterList(Candle),
  fundingHistory: filterList(RateOfHour),
}
const channelFilters: Partial<Record<Channel, RecordFilter>> = {
  allMids: (value, skip) => mapField(value, 'mids', (mids) => filterValues(decimal)(mids, skip)),
  userFills: filterField('fills', Fill),
  userFundings: filterField('fundings', StreamedFunding),
  userNonFundingLedgerUpdates: filterField('nonFundingLedgerUpdates', LedgerUpdate),
  orderUpdates: filterList(OrderUpdate),
  clearinghouseState: (value, skip) =>
    mapField(value, 'clearinghouseState', (state) => positionsFilter(state, skip)),
  spotState: (value, skip) => mapField(value, 'spotState', (state) => balancesFilter(state, skip)),
  openOrders: (value, skip) => mapField(value, 'orders', (orders) => ordersFilter(orders, skip)),
}

/** Parses a reply. Throws `upstream_changed` for one of another shape, and skips records of another shape. */
export function parseInfo<K extends InfoType>(
  type: K,
  body: string,
  onSkipped: OnSkipped = () => {},
): InfoAnswer<K> {
  const answer = parseJson(body)
  if (answer === undefined)
    throw new Fault('unavailable', `Hyperliquid replied to ${type} with a body that is not JSON`)
  const value = recordFilters[type]?.(answer, (record) => onSkipped(type, record)) ?? answer
  if (fits(schemas[type], value)) return value as InfoAnswer<K>
  throw new Fault('upstream_changed', `Hyperliquid replied to ${type} in an unknown format`)
}

const channels = {
  allMids: T.Object({ mids: T.Record(text, decimal) }),
  userFills: T.Object({ user: text, fills: T.Array(Fill), isSnapshot: T.Optional(T.Boolean()) }),
  userFundings: T.Object({
    user: text,
    fundings: T.Array(StreamedFunding),
    isSnapshot: T.Optional(T.Boolean()),
  }),
  userNonFundingLedgerUpdates: T.Object({
    user: text,
    nonFundingLedgerUpdates: T.Array(LedgerUpdate),
    isSnapshot: T.Optional(T.Boolean()),
  }),
  orderUpdates: T.Array(OrderUpdate),
  clearinghouseState: T.Object({ user: text, clearinghouseState: schemas.clearinghouseState }),
  spotState: T.Object({ user: text, spotState: schemas.spotClearinghouseState }),
  openOrders: T.Object({ user: text, orders: schemas.frontendOpenOrders }),
} as const
export type Channel = keyof typeof channels
export type ChannelMessage<K extends Channel> = T.Static<(typeof channels)[K]>

/** Parses a message of a stream; undefined if it has another shape: the subscriber then reads over HTTP. */
export function parseMessage<K extends Channel>(
  channel: K,
  payload: unknown,
  onSkipped: OnSkipped = () => {},
): ChannelMessage<K> | undefined {
  const message = channelFilters[channel]?.(payload, (record) => onSkipped(channel, record)) ?? payload
  return fits(channels[channel], message) ? (message as ChannelMessage<K>) : undefined
}
