import { canonical, fromUnits, toUnits } from '#kernel/money.ts'
import { type Grid, priceDecimalsOf } from './grid.ts'
import type { InfoAnswer } from './wire.ts'

/** What the venue tells, in the words of the house. */

export type PerpMarket = Grid & {
  symbol: string
  asset: number
  maxLeverage: number
  onlyIsolated: boolean
  isDelisted: boolean
  markPrice: string
  oraclePrice: string
  midPrice: string | null
  fundingRate: string
  openInterest: string
  dayVolumeUsd: string
  prevDayPrice: string
}
export type SpotMarket = Grid & {
  symbol: string
  coin: string
  asset: number
  base: string
  quote: string
  markPrice: string
  midPrice: string | null
  dayVolumeUsd: string
}
export type Position = {
  symbol: string
  /** Negative for a short. */
  signedSize: string
  isCross: boolean
  leverage: number
  entryPrice: string | null
  valueUsd: string
  unrealizedPnlUsd: string
  liquidationPrice: string | null
  marginUsedUsd: string
  fundingPaidUsd: string
}
export type Account = {
  accountValueUsd: string
  marginUsedUsd: string
  withdrawableUsd: string
  /** What the account holds besides the worth of its positions. */
  cashUsd: string
  positions: Position[]
  /** The venue's own clock at the answer. */
  timeMs: number
}
export type OpenOrder = {
  symbol: string
  orderId: number
  parentId: number | null
  cloid: string | null
  isBuy: boolean
  price: string
  size: string
  origSize: string
  kind: string
  tif: string | null
  reduceOnly: boolean
  trigger: { price: string; condition: string; leg: 'tp' | 'sl' } | null
  isPositionTpsl: boolean
  atMs: number
}
export type OrderState = { order: OpenOrder; status: string; atMs: number }
export type Fill = {
  symbol: string
  orderId: number
  tradeId: number
  cloid: string | null
  isBuy: boolean
  price: string
  size: string
  /** What was held before it, by the venue's own count. */
  startSize: string
  feeUsd: string
  feeToken: string
  closedPnlUsd: string
  /** `liquidation`: of this account. `venue`: made by the venue itself, such as a settlement. */
  cause: 'order' | 'liquidation' | 'venue'
  atMs: number
}
export type Funding = { symbol: string; paidUsd: string; signedSize: string; rate: string; atMs: number }
/** What a change that is no trade did to one balance: `perp`, or a token of the spot side. */
export type BalanceMove = { place: string; amount: string }
export type LedgerUpdate = {
  type: string
  amountUsd: string | null
  feeUsd: string | null
  nonce: number | null
  /** Of a move between the two sides of an account. */
  toPerp: boolean | null
  hash: string
  /** Null where the form of the update is not known. */
  moves: BalanceMove[] | null
  atMs: number
}
/** The venue prints floats, with `.0` behind whole numbers. */
export const plain = (text: string): string => canonical(text) ?? text
export const plainOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : plain(text)

type WireOrder = InfoAnswer<'frontendOpenOrders'>[number]

export function orderOf(order: Omit<WireOrder, 'children'>, parentId: number | null): OpenOrder {
  const leg = order.orderType.startsWith('Take Profit') ? ('tp' as const) : ('sl' as const)
  return {
    ...{ symbol: order.coin, orderId: order.oid, parentId, cloid: order.cloid ?? null },
    ...{ isBuy: order.side === 'B', price: plain(order.limitPx), size: plain(order.sz) },
    ...{ origSize: plain(order.origSz), kind: order.orderType, tif: order.tif ?? null },
    ...{ reduceOnly: order.reduceOnly, isPositionTpsl: order.isPositionTpsl, atMs: order.timestamp },
    trigger: order.isTrigger
      ? { price: plain(order.triggerPx), condition: order.triggerCondition, leg }
      : null,
  }
}

/** A parent is followed by the exits that wait for it. */
export const ordersOf = (order: WireOrder): OpenOrder[] => [
  orderOf(order, null),
  ...order.children.map((child) => orderOf(child, order.oid)),
]

export function perpsOf([meta, contexts]: InfoAnswer<'metaAndAssetCtxs'>): PerpMarket[] {
  return meta.universe.flatMap((market, asset) => {
    const context = contexts[asset]
    if (!context) return []
    return [
      {
        ...{ symbol: market.name, asset, maxLeverage: market.maxLeverage },
        ...{ sizeDecimals: market.szDecimals, priceDecimals: priceDecimalsOf('perp', market.szDecimals) },
        ...{ onlyIsolated: market.onlyIsolated === true, isDelisted: market.isDelisted === true },
        ...{ markPrice: plain(context.markPx), oraclePrice: plain(context.oraclePx) },
        ...{ midPrice: plainOrNull(context.midPx), fundingRate: plain(context.funding) },
        ...{ openInterest: plain(context.openInterest), dayVolumeUsd: plain(context.dayNtlVlm) },
        prevDayPrice: plain(context.prevDayPx),
      },
    ]
  })
}

const spotOffset = 10_000
/** Wrapped coins are shown by the name of what they stand for. */
const aliases: Readonly<Record<string, string>> = { UBTC: 'BTC', UETH: 'ETH', USOL: 'SOL' }

export function spotsOf([meta, contexts]: InfoAnswer<'spotMetaAndAssetCtxs'>): SpotMarket[] {
  const token = new Map(meta.tokens.map((each) => [each.index, each]))
  const context = new Map(contexts.map((each) => [each.coin, each]))
  return meta.universe.flatMap(({ tokens: [baseIndex = -1, quoteIndex = -1], name, index }) => {
    const [base, quote, prices] = [token.get(baseIndex), token.get(quoteIndex), context.get(name)]
    if (!base || !quote || !prices) return []
    return [
      {
        ...{ symbol: aliases[base.name] ?? base.name, coin: name, asset: spotOffset + index },
        ...{ base: base.name, quote: quote.name, sizeDecimals: base.szDecimals },
        priceDecimals: priceDecimalsOf('spot', base.szDecimals),
        ...{ markPrice: plain(prices.markPx), midPrice: plainOrNull(prices.midPx) },
        dayVolumeUsd: plain(prices.dayNtlVlm),
      },
    ]
  })
}

export function accountOf(state: InfoAnswer<'clearinghouseState'>): Account {
  return {
    accountValueUsd: plain(state.marginSummary.accountValue),
    marginUsedUsd: plain(state.marginSummary.totalMarginUsed),
    withdrawableUsd: plain(state.withdrawable),
    cashUsd: plain(state.marginSummary.totalRawUsd),
    timeMs: state.time,
    positions: state.assetPositions.map(({ position }) => ({
      ...{ symbol: position.coin, signedSize: plain(position.szi), leverage: position.leverage.value },
      ...{ isCross: position.leverage.type === 'cross', entryPrice: plainOrNull(position.entryPx) },
      ...{ valueUsd: plain(position.positionValue), unrealizedPnlUsd: plain(position.unrealizedPnl) },
      ...{ liquidationPrice: plainOrNull(position.liquidationPx), marginUsedUsd: plain(position.marginUsed) },
      fundingPaidUsd: plain(position.cumFunding.sinceOpen),
    })),
  }
}

const byVenue = /^(Liquidated|Auto-Deleveraging|Settlement|Spot Dust Conversion)/

function causeOf({ dir, liquidation }: WireFill, user: string): Fill['cause'] {
  if (liquidation?.liquidatedUser?.toLowerCase() === user.toLowerCase()) return 'liquidation'
  return byVenue.test(dir) ? 'venue' : 'order'
}

type WireFill = InfoAnswer<'userFillsByTime'>[number]

export const fillOf = (fill: WireFill, user: string): Fill => ({
  ...{ symbol: fill.coin, orderId: fill.oid, tradeId: fill.tid, cloid: fill.cloid ?? null },
  ...{ isBuy: fill.side === 'B', price: plain(fill.px), size: plain(fill.sz) },
  ...{ startSize: plain(fill.startPosition), feeUsd: plain(fill.fee), feeToken: fill.feeToken },
  ...{ closedPnlUsd: plain(fill.closedPnl), cause: causeOf(fill, user), atMs: fill.time },
})

export const fundingOf = ({ time, delta }: InfoAnswer<'userFunding'>[number]): Funding => ({
  ...{ symbol: delta.coin, paidUsd: plain(delta.usdc), signedSize: plain(delta.szi) },
  ...{ rate: plain(delta.fundingRate), atMs: time },
})

type WireUpdate = InfoAnswer<'userNonFundingLedgerUpdates'>[number]

export function ledgerUpdateOf({ time, hash, delta }: WireUpdate, user: string): LedgerUpdate {
  return {
    ...{ type: delta.type, amountUsd: plainOrNull(delta.usdc), feeUsd: plainOrNull(delta.fee) },
    ...{
      nonce: delta.nonce ?? null,
      toPerp: delta.toPerp ?? null,
      hash,
      moves: movesOf(delta, user.toLowerCase()),
      atMs: time,
    },
  }
}

const sum = (a: string, b: string): string =>
  fromUnits(toUnits(plain(a), scale) + toUnits(plain(b), scale), scale)
const minus = (text: string): string => fromUnits(-toUnits(plain(text), scale), scale)
const scale = 18

/** Only forms whose effect is known to the unit; any other one explains nothing. */
function movesOf(delta: WireUpdate['delta'], user: string): BalanceMove[] | null {
  const { type, usdc, fee = '0', toPerp, destination, token, amount } = delta
  const to = destination?.toLowerCase()
  if (type === 'deposit' && usdc) return [{ place: 'perp', amount: plain(usdc) }]
  if (type === 'withdraw' && usdc) return [{ place: 'perp', amount: minus(sum(usdc, fee)) }]
  if (type === 'accountClassTransfer' && usdc && toPerp !== undefined) {
    const [gain, loss] = toPerp ? ['perp', 'USDC'] : ['USDC', 'perp']
    return [
      { place: gain!, amount: plain(usdc) },
      { place: loss!, amount: minus(usdc) },
    ]
  }
  if (type === 'internalTransfer' && usdc && to && to !== delta.user?.toLowerCase())
    return [{ place: 'perp', amount: to === user ? plain(usdc) : minus(sum(usdc, fee)) }]
  if (type === 'spotGenesis' && token && amount) return [{ place: token, amount: plain(amount) }]
  if (type === 'spotTransfer' && token && amount && to && plain(fee) === '0')
    return to === delta.user?.toLowerCase()
      ? []
      : [{ place: token, amount: to === user ? plain(amount) : minus(amount) }]
  return null
}
