import * as T from 'typebox'
import { Fault } from '#kernel/fault.ts'
import { decimalPattern } from './decimals.ts'
import {
  emptied,
  fieldIn,
  fieldOf,
  fits,
  inField,
  listOf,
  namedFieldOf,
  type OnSkipped,
  parsed,
  type Sieve,
  understood,
  valuesOf,
} from './records.ts'

export type { OnSkipped }

/** The shapes of the venue's answers. Foreign names end here. */

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
  cloid: T.Optional(orNull(text)),
  liquidation: T.Optional(orNull(T.Object({ liquidatedUser: T.Optional(text) }))),
})
/** Names of records that are not understood; null where not even the name is. */
const unread = T.Optional(T.Array(orNull(text)))
/** Of the forms of a change only the type is sure: each reader takes the fields that it knows. */
const LedgerUpdate = T.Object({
  time: whole,
  hash: text,
  delta: T.Object({ type: text }, { additionalProperties: true }),
})

const schemas = {
  // A market is known by its place in the list: one that is not understood leaves its place empty.
  metaAndAssetCtxs: T.Tuple([
    T.Object({ universe: T.Array(orNull(PerpAsset)) }),
    T.Array(orNull(PerpContext)),
  ]),
  spotMetaAndAssetCtxs: T.Tuple([SpotMeta, T.Array(SpotContext)]),
  allMids: T.Record(text, decimal),
  l2Book: T.Object({ time: whole }),
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

const childrenOf: Sieve = (order, skip) =>
  typeof order === 'object' && order !== null && 'children' in order
    ? fieldOf('children', Child)(order, skip)
    : order

const ordersSieve: Sieve = (value, skip) =>
  understood(
    Array.isArray(value) ? value.map((order: unknown) => childrenOf(order, skip)) : value,
    FrontendOrder,
    skip,
  )

const positionsSieve = namedFieldOf('assetPositions', AssetPosition, (record) =>
  fieldIn(fieldIn(record, 'position'), 'coin'),
)
const balancesSieve = namedFieldOf('balances', Balance, (record) => fieldIn(record, 'coin'))

/** How the records of each list are told apart from those that this version does not understand. */
const sieves: Partial<Record<InfoType, Sieve>> = {
  metaAndAssetCtxs: (value, skip) => {
    if (!Array.isArray(value)) return value
    const [meta, contexts] = value as unknown[]
    return [
      inField(meta, 'universe', (list) => emptied(list, PerpAsset, skip)),
      emptied(contexts, PerpContext, skip),
    ]
  },
  spotMetaAndAssetCtxs: (value, skip) => {
    if (!Array.isArray(value)) return value
    const [meta, contexts] = value as unknown[]
    const pairs = fieldOf('universe', SpotPair)(meta, skip)
    return [fieldOf('tokens', Token)(pairs, skip), understood(contexts, SpotContext, skip)]
  },
  allMids: valuesOf(decimal),
  clearinghouseState: positionsSieve,
  spotClearinghouseState: balancesSieve,
  frontendOpenOrders: ordersSieve,
  userFillsByTime: listOf(Fill),
  userFills: listOf(Fill),
  userFunding: listOf(FundingRecord),
  userNonFundingLedgerUpdates: listOf(LedgerUpdate),
  extraAgents: listOf(Agent),
}
const channelSieves: Partial<Record<Channel, Sieve>> = {
  allMids: (value, skip) => inField(value, 'mids', (mids) => valuesOf(decimal)(mids, skip)),
  userFills: fieldOf('fills', Fill),
  userFundings: fieldOf('fundings', StreamedFunding),
  userNonFundingLedgerUpdates: fieldOf('nonFundingLedgerUpdates', LedgerUpdate),
  orderUpdates: listOf(OrderUpdate),
  clearinghouseState: (value, skip) =>
    inField(value, 'clearinghouseState', (state) => positionsSieve(state, skip)),
  spotState: (value, skip) => inField(value, 'spotState', (state) => balancesSieve(state, skip)),
  openOrders: (value, skip) => inField(value, 'orders', (orders) => ordersSieve(orders, skip)),
}

/** An answer of another shape is a change of the protocol, and says so; a record of another shape is left out. */
export function infoOf<K extends InfoType>(
  type: K,
  body: string,
  onSkipped: OnSkipped = () => {},
): InfoAnswer<K> {
  const answer = parsed(body)
  if (answer === undefined)
    throw new Fault('unavailable', `Hyperliquid answered ${type} with something that is not JSON`)
  const value = sieves[type]?.(answer, (record) => onSkipped(type, record)) ?? answer
  if (fits(schemas[type], value)) return value as InfoAnswer<K>
  throw new Fault('upstream_changed', `Hyperliquid answered ${type} in a form that is not known`)
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

/** Undefined where the message has another shape: the listener then reads over HTTP. */
export function messageOf<K extends Channel>(
  channel: K,
  said: unknown,
  onSkipped: OnSkipped = () => {},
): ChannelMessage<K> | undefined {
  const message = channelSieves[channel]?.(said, (record) => onSkipped(channel, record)) ?? said
  return fits(channels[channel], message) ? (message as ChannelMessage<K>) : undefined
}
