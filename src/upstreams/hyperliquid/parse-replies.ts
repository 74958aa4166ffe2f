import {
  addDecimals,
  fromFixedPoint,
  subtractDecimals,
  toFixedPoint,
  usdDecimals,
} from '#kernel/money/money.ts'
import { amountOf, decimalPattern, plain, plainOrNull, roundedTo, roundUsd } from './decimals.ts'
import { type Grid, priceDecimalsOf } from './rounding.ts'
import type { InfoAnswer } from './wire.ts'

export type PerpMarket = Grid & {
  symbol: string
  asset: number
  maxLeverage: number
  onlyIsolated: boolean
  isDelisted: boolean
  /** True for a market that is kept from an earlier reply, because it is missing or unreadable in the last one. */
  isStale?: boolean
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
  isStale?: boolean
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
  /** The size of the position, which is negative for a short position. */
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
/** The names of records in an unknown format; null if the name is unknown too. */
export type Unread = readonly (string | null)[]
export type Account = {
  accountValueUsd: string
  marginUsedUsd: string
  withdrawableUsd: string
  /** The balance without the value of positions. */
  cashUsd: string
  /** The cross margin that positions do not use, by initial margin. */
  crossFreeUsd: string
  positions: Position[]
  unread: Unread
  /** The venue's clock at the reply. */
  timeMs: number
}
export type SpotBalance = { coin: string; total: string; hold: string; entryUsd: string }
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
  /** The position before the fill, as the venue reports it. */
  startSize: string
  feeUsd: string
  feeToken: string
  closedPnlUsd: string
  /** `liquidation` is one of this account; `venue` means that the venue itself made the fill, such as a settlement. */
  cause: 'order' | 'liquidation' | 'venue'
  /** The transaction of the venue's chain; null if the venue names none, as for parts of a TWAP. */
  txHash: string | null
  atMs: number
}
export type Funding = { symbol: string; paidUsd: string; signedSize: string; rate: string; atMs: number }
/** The effect of a non-trade ledger update on one balance: `perp`, or a token of the spot side. */
export type BalanceMove = { balance: string; amount: string }
export type LedgerUpdate = {
  type: string
  amountUsd: string | null
  feeUsd: string | null
  nonce: number | null
  /** The direction of a transfer between the two sides of an account; null for other updates. */
  toPerp: boolean | null
  hash: string
  /** The effects of the update on balances; null if its type is unknown. */
  moves: BalanceMove[] | null
  isOutgoing: boolean
  atMs: number
}
type WireOrder = InfoAnswer<'frontendOpenOrders'>[number]

export function parseOrder(order: Omit<WireOrder, 'children'>, parentId: number | null): OpenOrder {
  const leg = order.orderType.startsWith('Take Profit') ? ('tp' as const) : ('sl' as const)
  return {
    symbol: order.coin,
    orderId: order.oid,
    parentId,
    cloid: order.cloid ?? null,
    isBuy: order.side === 'B',
    price: plain(order.limitPx),
    size: amountOf(order.sz),
    origSize: amountOf(order.origSz),
    kind: order.orderType,
    tif: order.tif ?? null,
    reduceOnly: order.reduceOnly,
    isPositionTpsl: order.isPositionTpsl,
    atMs: order.timestamp,
    trigger: order.isTrigger
      ? { price: plain(order.triggerPx), condition: order.triggerCondition, leg }
      : null,
  }
}

/** Returns an order, followed by the exits that wait for it. */
export const parseOrders = (order: WireOrder): OpenOrder[] => [
  parseOrder(order, null),
  ...(order.children ?? []).map((child) => parseOrder(child, order.oid)),
]

export function parsePerps([meta, contexts]: InfoAnswer<'metaAndAssetCtxs'>): PerpMarket[] {
  return meta.universe.flatMap((market, asset) => {
    const context = contexts[asset]
    if (!market || !context) return []
    return [
      {
        symbol: market.name,
        asset,
        maxLeverage: market.maxLeverage,
        sizeDecimals: market.szDecimals,
        priceDecimals: priceDecimalsOf('perp', market.szDecimals),
        onlyIsolated: market.onlyIsolated === true,
        isDelisted: market.isDelisted === true,
        markPrice: plain(context.markPx),
        oraclePrice: plain(context.oraclePx),
        midPrice: plainOrNull(context.midPx),
        fundingRate: plain(context.funding),
        openInterest: plain(context.openInterest),
        dayVolumeUsd: plain(context.dayNtlVlm),
        prevDayPrice: plain(context.prevDayPx),
      },
    ]
  })
}

const spotOffset = 10_000
/** The display names of wrapped tokens. */
const aliases: Readonly<Record<string, string>> = { UBTC: 'BTC', UETH: 'ETH', USOL: 'SOL' }

export function parseSpots([meta, contexts]: InfoAnswer<'spotMetaAndAssetCtxs'>): SpotMarket[] {
  const token = new Map(meta.tokens.map((each) => [each.index, each]))
  const context = new Map(contexts.map((each) => [each.coin, each]))
  return meta.universe.flatMap(({ tokens: [baseIndex = -1, quoteIndex = -1], name, index }) => {
    const [base, quote, prices] = [token.get(baseIndex), token.get(quoteIndex), context.get(name)]
    if (!base || !quote || !prices) return []
    return [
      {
        symbol: aliases[base.name] ?? base.name,
        coin: name,
        asset: spotOffset + index,
        base: base.name,
        quote: quote.name,
        sizeDecimals: base.szDecimals,
        priceDecimals: priceDecimalsOf('spot', base.szDecimals),
        markPrice: plain(prices.markPx),
        midPrice: plainOrNull(prices.midPx),
        dayVolumeUsd: plain(prices.dayNtlVlm),
      },
    ]
  })
}

const isNothing = (amount: string): boolean => /^-?0(\.0*)?$/.test(amountOf(amount))

export function parseAccount(state: InfoAnswer<'clearinghouseState'>): Account {
  return {
    accountValueUsd: roundUsd(state.marginSummary.accountValue),
    marginUsedUsd: roundUsd(state.marginSummary.totalMarginUsed),
    withdrawableUsd: roundUsd(state.withdrawable),
    cashUsd: roundUsd(state.marginSummary.totalRawUsd),
    crossFreeUsd: difference(state.crossMarginSummary.accountValue, state.crossMarginSummary.totalMarginUsed),
    timeMs: state.time,
    unread: state.unread ?? [],
    // A closed position may stay listed with no size.
    positions: state.assetPositions
      .filter(({ position }) => !isNothing(position.szi))
      .map(({ position }) => ({
        symbol: position.coin,
        signedSize: amountOf(position.szi),
        leverage: position.leverage.value,
        isCross: position.leverage.type === 'cross',
        entryPrice: plainOrNull(position.entryPx),
        valueUsd: roundUsd(position.positionValue),
        unrealizedPnlUsd: roundUsd(position.unrealizedPnl),
        liquidationPrice: plainOrNull(position.liquidationPx),
        marginUsedUsd: roundUsd(position.marginUsed),
        fundingPaidUsd: roundUsd(position.cumFunding.sinceOpen),
      })),
  }
}

const byVenue = /^(Liquidated|Auto-Deleveraging|Settlement|Spot Dust Conversion)/

function parseCause({ dir, liquidation }: WireFill, user: string): Fill['cause'] {
  if (liquidation?.liquidatedUser?.toLowerCase() === user.toLowerCase()) return 'liquidation'
  return byVenue.test(dir) ? 'venue' : 'order'
}

type WireFill = InfoAnswer<'userFillsByTime'>[number]

const noHash = /^0x0*$/

export const parseFill = (fill: WireFill, user: string): Fill => ({
  symbol: fill.coin,
  orderId: fill.oid,
  tradeId: fill.tid,
  cloid: fill.cloid ?? null,
  isBuy: fill.side === 'B',
  price: plain(fill.px),
  size: amountOf(fill.sz),
  startSize: amountOf(fill.startPosition),
  feeUsd: amountOf(fill.fee),
  feeToken: fill.feeToken,
  closedPnlUsd: roundUsd(fill.closedPnl),
  cause: parseCause(fill, user),
  txHash: fill.hash && !noHash.test(fill.hash) ? fill.hash : null,
  atMs: fill.time,
})

export const parseBalances = ({ balances }: InfoAnswer<'spotClearinghouseState'>): SpotBalance[] =>
  balances.map(({ coin, total, hold, entryNtl }) => ({
    coin,
    total: amountOf(total),
    hold: amountOf(hold),
    entryUsd: roundUsd(entryNtl),
  }))

export const parseFunding = ({ time, delta }: InfoAnswer<'userFunding'>[number]): Funding => ({
  symbol: delta.coin,
  paidUsd: roundUsd(delta.usdc),
  signedSize: amountOf(delta.szi),
  rate: plain(delta.fundingRate),
  atMs: time,
})

type WireUpdate = InfoAnswer<'userNonFundingLedgerUpdates'>[number]

type Delta = { type: string } & Readonly<Record<string, unknown>>

const decimal = new RegExp(decimalPattern)
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const numberOf = (value: unknown): string | undefined =>
  typeof value === 'string' && decimal.test(value) ? value : undefined

export function parseLedgerUpdate({ time, hash, delta: given }: WireUpdate, user: string): LedgerUpdate {
  const delta: Delta = given
  const { type, nonce, toPerp } = delta
  const [usdc, fee] = [delta.usdc, delta.fee].map(numberOf)
  return {
    type,
    amountUsd: usdc === undefined ? null : roundedTo(usdc, usdDecimals),
    feeUsd: fee === undefined ? null : roundUsd(fee),
    nonce: typeof nonce === 'number' ? nonce : null,
    toPerp: typeof toPerp === 'boolean' ? toPerp : null,
    hash,
    moves: parseMoves(delta, user.toLowerCase()),
    isOutgoing: isOutgoing(delta, user.toLowerCase()),
    atMs: time,
  }
}

const outgoingTypes: readonly string[] = ['withdraw', 'vaultDeposit', 'vaultCreate']

/** Whether funds leave the account. Sender and receiver decide, so that an unknown type is detected too. */
function isOutgoing({ type, user, destination, isDeposit }: Delta, account: string): boolean {
  if (outgoingTypes.includes(type) || (type === 'cStakingTransfer' && isDeposit === true)) return true
  const [from, to] = [textOf(user), textOf(destination)].map((address) => address?.toLowerCase())
  return from === account && to !== undefined && to !== account
}

const difference = (a: string, b: string): string => subtractDecimals(roundUsd(a), roundUsd(b))
const negate = (text: string): string => fromFixedPoint(-toFixedPoint(text))

/** Returns the effects of a ledger update on balances; null for a type whose effect is not known exactly. */
function parseMoves(delta: Delta, user: string): BalanceMove[] | null {
  const { type, toPerp } = delta
  const [printedUsdc, printedFee, printedAmount] = [delta.usdc, delta.fee ?? '0', delta.amount].map(numberOf)
  const [token, sender, receiver] = [delta.token, delta.user, delta.destination].map(textOf)
  const [from, to] = [sender?.toLowerCase(), receiver?.toLowerCase()]
  const usdc = printedUsdc && roundUsd(printedUsdc)
  const fee = printedFee && roundUsd(printedFee)
  const amount = printedAmount && amountOf(printedAmount)
  if (type === 'deposit' && usdc) return [{ balance: 'perp', amount: usdc }]
  if (type === 'withdraw' && usdc && fee) return [{ balance: 'perp', amount: negate(addDecimals(usdc, fee)) }]
  if (type === 'accountClassTransfer' && usdc && typeof toPerp === 'boolean') {
    const [gain, loss] = toPerp ? ['perp', 'USDC'] : ['USDC', 'perp']
    return [
      { balance: gain!, amount: usdc },
      { balance: loss!, amount: negate(usdc) },
    ]
  }
  if (type === 'internalTransfer' && usdc && fee && to && to !== from)
    return [{ balance: 'perp', amount: to === user ? usdc : negate(addDecimals(usdc, fee)) }]
  if (type === 'spotGenesis' && token && amount) return [{ balance: token, amount }]
  if (type === 'spotTransfer' && token && amount && to && fee === '0')
    return to === from ? [] : [{ balance: token, amount: to === user ? amount : negate(amount) }]
  return null
}
