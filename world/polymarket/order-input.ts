import type { ExchangeName, Hex, OrderVerdict } from './chain/chain-terms.ts'
import { exchangeOf, verifyOrder } from './chain/orders.ts'
import { priceText, unit } from './decimal.ts'
import { HttpError } from './http.ts'
import { toChainOrder } from './market-maker.ts'
import { type Market, type OutcomeIndex, outcomeByToken } from './markets.ts'
import type { OrderInput } from './place-order.ts'
import type { ApiKey, OrderType, Side, SignedFields, TradePlan } from './state.ts'

const orderTypes: readonly OrderType[] = ['GTC', 'GTD', 'FOK', 'FAK']

/** A good-til-date order ends this long before its time. */
const expiryMarginMs = 60_000

const rejectPayload = (): never => {
  throw new HttpError(400, 'Invalid order payload')
}

const hexText = (value: unknown, bytes?: number): Hex => {
  const form = bytes === undefined ? /^0x([0-9a-fA-F]{2})*$/ : new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`)
  return typeof value === 'string' && form.test(value) ? (value as Hex) : rejectPayload()
}

const digits = (value: unknown): string => {
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
  return typeof text === 'string' && /^[0-9]{1,78}$/.test(text) ? text : rejectPayload()
}

const zero32 = `0x${'0'.repeat(64)}` as const

/** Unknown fields are ignored: clients send more than the venue takes. */
const readSigned = (value: unknown): SignedFields => {
  if (typeof value !== 'object' || value === null) return rejectPayload()
  const order = value as Record<string, unknown>
  const { side, signatureType } = order
  if (side !== 'BUY' && side !== 'SELL') return rejectPayload()
  if (typeof signatureType !== 'number' || ![0, 1, 2, 3].includes(signatureType)) return rejectPayload()
  return {
    salt: digits(order.salt),
    maker: hexText(order.maker, 20),
    signer: hexText(order.signer, 20),
    tokenId: digits(order.tokenId),
    makerAmount: digits(order.makerAmount),
    takerAmount: digits(order.takerAmount),
    side,
    signatureType,
    timestamp: digits(order.timestamp),
    metadata: order.metadata === '' ? zero32 : hexText(order.metadata ?? zero32, 32),
    builder: hexText(order.builder ?? zero32, 32),
    signature: hexText(order.signature),
  }
}

type Amounts = { price: number; size: number; spend: number | null }

const unitsMax = 1_000_000_000 * unit
const cent = 10_000

/**
 * Amounts of market orders are rounded to the accuracy of the wire, so that the quotient is a little beside a tick. The
 * exchange fills nothing worse than the quotient, which leaves the next tick within it.
 */
const marketPrice = (
  cash: number,
  shares: number,
  { isBuy, tick }: { isBuy: boolean; tick: number },
): number => {
  const nearest = Math.round(cash / (shares / 10_000))
  if (nearest % tick !== 0) return nearest
  const beside = BigInt(nearest) * BigInt(shares) - BigInt(cash) * 10_000n
  if (isBuy) return beside > 0n ? nearest - tick : nearest
  return beside < 0n ? nearest + tick : nearest
}

const amountsOf = (signed: SignedFields, type: OrderType, tick: number, id: string): Amounts => {
  const [maker, taker] = [Number(signed.makerAmount), Number(signed.takerAmount)]
  if (!(maker > 0 && taker > 0 && maker <= unitsMax && taker <= unitsMax))
    throw new HttpError(400, 'invalid amounts')
  const isBuy = signed.side === 'BUY'
  const [cash, shares] = isBuy ? [maker, taker] : [taker, maker]
  const isMarketOrder = type === 'FOK' || type === 'FAK'
  const isMarketBuy = isBuy && isMarketOrder
  const places = tick % 100 === 0 ? 4 : tick % 10 === 0 ? 5 : 6
  const isTakerExact = !isMarketOrder || taker % 10 ** (6 - places) === 0
  const scaled = BigInt(cash) * 10_000n
  const exact = Number(scaled / BigInt(shares))
  const isExact = scaled % BigInt(shares) === 0n
  if (isMarketBuy) {
    if (cash % cent !== 0 || !isTakerExact)
      throw new HttpError(
        400,
        `invalid amounts, the market buy orders maker amount supports a max accuracy of 2 decimals, taker amount a max accuracy of ${places} decimals`,
      )
    return { price: marketPrice(cash, shares, { isBuy, tick }), size: shares, spend: cash }
  }
  if (shares % cent !== 0 || !isTakerExact)
    throw new HttpError(
      400,
      `invalid amounts, the ${isBuy ? 'buy orders taker' : 'sell orders maker'} amount supports a max accuracy of 2 decimals${isMarketOrder ? `, taker amount a max accuracy of ${places} decimals` : ''}`,
    )
  if (isMarketOrder) return { price: marketPrice(cash, shares, { isBuy, tick }), size: shares, spend: null }
  if (!isExact)
    throw new HttpError(
      400,
      `order ${id} is invalid. Price (${cash / shares}) breaks minimum tick size rule: ${priceText(tick)}`,
    )
  return { price: exact, size: shares, spend: null }
}

type Context = {
  key: ApiKey
  plan: (order: { isMarketOrder: boolean }) => TradePlan
  tickOf: (market: Market) => number
  eoaMakers: 'allowed' | 'refused'
  /** A good-til-date order may not be shorter. */
  gtdMinMs: number
  nowMs: number
}

const verify = (signed: SignedFields, exchange: ExchangeName): OrderVerdict & { isValid: true } => {
  const order = { ...toChainOrder(signed), signature: signed.signature }
  const verdict = verifyOrder(order, exchange)
  if (verdict.isValid) return verdict
  // Signed for the protocol of other markets.
  const others =
    exchange === 'exchangeV3' ? (['standardExchange', 'negRiskExchange'] as const) : (['exchangeV3'] as const)
  const isOtherVersion = others.some((other) => verifyOrder(order, other).isValid)
  throw new HttpError(400, isOtherVersion ? 'order_version_mismatch' : 'invalid signature')
}

const expiryOf = (type: OrderType, expiration: string, leastMs: number): number => {
  const endMs = Number(expiration) * 1_000
  const isGood = type === 'GTD' ? endMs >= leastMs : expiration === '0'
  if (!isGood) throw new HttpError(400, 'invalid expiration')
  return type === 'GTD' ? endMs - expiryMarginMs : 0
}

const listed = (token: string): { market: Market; outcome: OutcomeIndex } => {
  const found = outcomeByToken(token)
  if (!found) throw new HttpError(400, 'Invalid token id')
  return found
}

/** The wallet of another owner, and a wallet that is not deployed yet, get the same answer. */
export const signerMismatch = 'the order signer address has to be the address of the API KEY'

/** Reads and verifies one order of a request, without what depends on the state of the venue. */
export const readOrder = (body: unknown, context: Context): OrderInput => {
  const { key, plan, tickOf, eoaMakers, gtdMinMs, nowMs } = context
  if (typeof body !== 'object' || body === null) return rejectPayload()
  const { order, owner, orderType = 'GTC', postOnly = false } = body as Record<string, unknown>
  const type = orderTypes.find((each) => each === orderType) ?? rejectPayload()
  const signed = readSigned(order)
  if (owner !== key.key) throw new HttpError(400, 'the order owner has to be the owner of the API KEY')
  const { market, outcome } = listed(signed.tokenId)
  const isRefusedMaker = signed.signatureType === 1 || (signed.signatureType === 0 && eoaMakers === 'refused')
  if (isRefusedMaker)
    throw new HttpError(400, 'maker address not allowed, please use the deposit wallet flow')
  const verdict = verify(signed, exchangeOf(market.chain))
  if (verdict.owner.toLowerCase() !== key.address) throw new HttpError(400, signerMismatch)
  if (postOnly === true && type !== 'GTC' && type !== 'GTD') return rejectPayload()
  const expiration = digits((order as Record<string, unknown>).expiration ?? '0')
  return {
    id: verdict.hash,
    conditionId: market.conditionId,
    outcome,
    side: signed.side as Side,
    ...amountsOf(signed, type, tickOf(market), verdict.hash),
    type,
    postOnly: postOnly === true,
    expiresMs: expiryOf(type, expiration, nowMs + gtdMinMs),
    expiration,
    owner: key.key,
    user: key.address,
    wallet: signed.maker.toLowerCase(),
    signed,
    plan: plan({ isMarketOrder: type === 'FOK' || type === 'FAK' }),
  }
}
