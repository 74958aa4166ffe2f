import * as T from 'typebox'
import { Compile } from 'typebox/compile'
import { Fault } from '#kernel/fault.ts'
import { canonical } from '#kernel/money.ts'

/** The shapes of the venue's answers. Foreign names end here. */

const text = T.String()
const decimal = T.String({ pattern: '^-?[0-9]+(\\.[0-9]+)?$' })
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
const SpotMeta = T.Object({
  universe: T.Array(T.Object({ tokens: T.Array(whole, { minItems: 2 }), name: text, index: whole })),
  tokens: T.Array(T.Object({ name: text, szDecimals: whole, index: whole, tokenId: text })),
})
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
const FrontendOrder = T.Object({ ...orderFields, children: T.Array(Child) })

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
const LedgerUpdate = T.Object({
  time: whole,
  hash: text,
  delta: T.Object(
    {
      ...{ type: text, usdc: T.Optional(decimal), nonce: T.Optional(whole), fee: T.Optional(decimal) },
      ...{ toPerp: T.Optional(T.Boolean()), user: T.Optional(text), destination: T.Optional(text) },
      ...{ token: T.Optional(text), amount: T.Optional(decimal) },
    },
    { additionalProperties: true },
  ),
})

const Leg = T.Union([
  T.String(),
  T.Object({ resting: T.Object({ oid: whole }) }),
  T.Object({ filled: T.Object({ totalSz: decimal, avgPx: decimal, oid: whole }) }),
  T.Object({ error: text }),
])

const schemas = {
  metaAndAssetCtxs: T.Tuple([T.Object({ universe: T.Array(PerpAsset) }), T.Array(PerpContext)]),
  spotMetaAndAssetCtxs: T.Tuple([SpotMeta, T.Array(SpotContext)]),
  allMids: T.Record(text, decimal),
  clearinghouseState: T.Object({
    marginSummary: Summary,
    crossMarginSummary: Summary,
    withdrawable: decimal,
    assetPositions: T.Array(T.Object({ position: Position })),
    time: whole,
  }),
  spotClearinghouseState: T.Object({
    balances: T.Array(
      T.Object({ coin: text, token: whole, total: decimal, hold: decimal, entryNtl: decimal }),
    ),
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
  userFunding: T.Array(
    T.Object({
      time: whole,
      delta: T.Object({ coin: text, usdc: decimal, szi: decimal, fundingRate: decimal }),
    }),
  ),
  extraAgents: T.Array(T.Object({ address: text, name: text, validUntil: whole })),
  userRole: T.Object({ role: text, data: T.Optional(T.Object({ user: T.Optional(text) })) }),
  userNonFundingLedgerUpdates: T.Array(LedgerUpdate),
  userAbstraction: text,
} as const
export type InfoType = keyof typeof schemas
export type InfoAnswer<K extends InfoType> = T.Static<(typeof schemas)[K]>

const ExchangeAnswer = T.Union([
  T.Object({ status: T.Literal('err'), response: text }),
  T.Object({
    status: T.Literal('ok'),
    response: T.Object({ type: text, data: T.Optional(T.Object({ statuses: T.Optional(T.Array(Leg)) })) }),
  }),
])

/** Compiling takes its time, so that it is done with the first answer of a kind. */
const compiled = new Map<T.TSchema, { Check(value: unknown): boolean }>()

function fits<S extends T.TSchema>(schema: S, value: unknown): value is T.Static<S> {
  let check = compiled.get(schema)
  if (!check) {
    check = Compile(schema)
    compiled.set(schema, check)
  }
  return check.Check(value)
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** An answer of another shape is a change of the protocol, and says so. */
export function infoOf<K extends InfoType>(type: K, body: string): InfoAnswer<K> {
  const value = parsed(body)
  if (fits(schemas[type], value)) return value as InfoAnswer<K>
  throw new Fault('upstream_changed', `Hyperliquid answered ${type} in a form that is not known`)
}

const channels = {
  allMids: T.Object({ mids: T.Record(text, decimal) }),
  userFills: T.Object({ user: text, fills: T.Array(Fill), isSnapshot: T.Optional(T.Boolean()) }),
  userFundings: T.Object({
    user: text,
    fundings: T.Array(
      T.Object({ time: whole, coin: text, usdc: decimal, szi: decimal, fundingRate: decimal }),
    ),
    isSnapshot: T.Optional(T.Boolean()),
  }),
  userNonFundingLedgerUpdates: T.Object({
    user: text,
    nonFundingLedgerUpdates: T.Array(LedgerUpdate),
    isSnapshot: T.Optional(T.Boolean()),
  }),
  orderUpdates: T.Array(
    T.Object({
      order: T.Object({ coin: text, oid: whole, cloid: T.Optional(orNull(text)), sz: text, origSz: text }),
      status: text,
      statusTimestamp: whole,
    }),
  ),
} as const
export type Channel = keyof typeof channels
export type ChannelMessage<K extends Channel> = T.Static<(typeof channels)[K]>

/** Undefined where the message has another shape: whoever listens reads again instead. */
export const messageOf = <K extends Channel>(channel: K, message: unknown): ChannelMessage<K> | undefined =>
  fits(channels[channel], message) ? (message as ChannelMessage<K>) : undefined

/** What the venue says of one order of an action. */
export type LegStatus =
  | { is: 'resting'; orderId: number }
  | { is: 'filled'; orderId: number; size: string; price: string }
  /** A leg that sleeps until its parent is filled, or until the mark reaches it; also the plain `success` of a cancel. */
  | { is: 'accepted'; as: string }
  | { is: 'error'; message: string }

export type ExchangeReply =
  | { is: 'ok'; legs: LegStatus[] }
  /** The action as a whole is refused: nothing of it was done. */
  | { is: 'refused'; message: string }
  | { is: 'unreadable' }

function legOf(leg: T.Static<typeof Leg>): LegStatus {
  if (typeof leg === 'string') return { is: 'accepted', as: leg }
  if ('error' in leg) return { is: 'error', message: leg.error }
  if ('resting' in leg) return { is: 'resting', orderId: leg.resting.oid }
  const { oid, totalSz, avgPx } = leg.filled
  return { is: 'filled', orderId: oid, size: canonical(totalSz) ?? totalSz, price: canonical(avgPx) ?? avgPx }
}

/** Read per order: a 200 may hold an error, and an error beside orders that live. */
export function exchangeReplyOf(body: string): ExchangeReply {
  const value = parsed(body)
  if (!fits(ExchangeAnswer, value)) return { is: 'unreadable' }
  if (value.status === 'err') return { is: 'refused', message: value.response }
  return { is: 'ok', legs: (value.response.data?.statuses ?? []).map(legOf) }
}
