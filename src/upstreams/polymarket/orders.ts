import type { Clock } from '#kernel/clock.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type { OutcomeOrderAction } from '#kernel/money/prediction-actions.ts'
import type {
  CancelReply,
  OrderReply,
  OrderRequest,
  PredictionVenue,
  PreparedOrder,
  VenueCredentials,
} from '#kernel/money/prediction-venue.ts'
import type { Authorize } from './account.ts'
import type { AddBuilderFee } from './builder-fees.ts'
import type { MarketKey } from './catalogue.ts'
import { type ExchangeName, zero32 } from './contracts.ts'
import { unitsOf } from './decimals.ts'
import { orderIdOf, orderSigner, signatureTypes } from './digests.ts'
import { highestOrderFee } from './fee-bound.ts'
import { hashesOf, lineOf, messageMax, tradeIdsOf } from './foreign-text.ts'
import { orderAmounts } from './order-amounts.ts'
import { identityOf, saltOf, timestampOf } from './order-identity.ts'
import { venueName } from './parse-markets.ts'
import { orderRefusalOf } from './refusals.ts'
import type { Call, Requests } from './requests.ts'
import { routeOrder } from './route-order.ts'
import { CancelAnswer, ClobMarket, NegRisk, OrderAnswer, TickSize } from './wire-clob.ts'

/** Prepares, sends and cancels orders. Nothing is sent twice here. */

export type OrderCalls = Pick<
  PredictionVenue,
  'prepareOrder' | 'identityOf' | 'orderBody' | 'postOrder' | 'cancelOrders' | 'cancelMatching'
>
export type OrderDeps = {
  requests: Requests
  authorize: Authorize
  market: (by: MarketKey) => Promise<PreparedOrder['market'] | undefined>
  clock: Clock
  /** The code to which the venue attributes orders; zero attributes them to nobody. */
  builderCode: string
  addBuilderFee: AddBuilderFee
}

/** A match can take the venue long, and a reply that is not awaited is an unknown outcome. */
const orderTimeoutMs = 30_000
const cancelTimeoutMs = 15_000
/** The venue ends an order this long before its time. */
const expiryMarginSeconds = 60
/** The venue takes no order that ends earlier. */
const leastLifeSeconds = 180
const cancelsMax = 1_000

const wireTimeInForce = { gtc: 'GTC', gtd: 'GTD', fok: 'FOK', fak: 'FAK' } as const
const postStatuses = ['live', 'matched', 'delayed', 'unmatched'] as const

const invalid = (reason: string, sentence: string) =>
  new Fault('validation', sentence, { extras: { reason } })

function expirationOf({ timeInForce, expiresAt }: OrderRequest, now: Date): number {
  if (timeInForce !== 'gtd') {
    if (expiresAt !== null) throw invalid('expiration_invalid', 'Only orders of type gtd have an end')
    return 0
  }
  if (expiresAt === null) throw invalid('expiration_invalid', 'An order of type gtd has an end')
  const expiration = Math.floor(expiresAt.getTime() / 1_000) + expiryMarginSeconds
  if (expiration < now.getTime() / 1_000 + leastLifeSeconds)
    throw invalid('expiration_invalid', 'The order must last at least two minutes')
  return expiration
}

function assertKind({ terms, timeInForce, postOnly }: OrderRequest): void {
  const rests = timeInForce === 'gtc' || timeInForce === 'gtd'
  if (terms.type === 'market' && rests) throw invalid('type_invalid', 'A market order is of type fok or fak')
  if (terms.type === 'limit' && terms.side === 'buy' && !rests)
    throw invalid('type_invalid', 'A buy of type fok or fak names its dollars')
  if (postOnly && !rests) throw invalid('type_invalid', 'Only resting orders can be post-only')
}

/** Returns why each order was not cancelled, by the order's id. */
const refusedCancels = (named: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    hashesOf(Object.keys(named), cancelsMax).map((id) => [id, lineOf(named[id]!, messageMax)]),
  )

/** Routes an order by what the catalogue and the order book say of its market now. */
function createRouteReader({ requests, market, addBuilderFee }: OrderDeps) {
  const read = <S extends typeof TickSize | typeof NegRisk>(path: string, outcomeId: string, schema: S) =>
    requests.read({ service: 'clob', path, query: { token_id: outcomeId } }, schema)

  return async (outcomeId: string) => {
    const readMarket = async () => {
      const listed = await market({ outcomeId })
      if (!listed) throw notFound('market')
      const path = `/clob-markets/${encodeURIComponent(listed.marketId)}`
      return { listed, traded: await requests.read({ service: 'clob', path }, ClobMarket) }
    }
    const [{ listed, traded }, tick, negRisk] = await Promise.all([
      readMarket(),
      read('/tick-size', outcomeId, TickSize),
      read('/neg-risk', outcomeId, NegRisk),
    ])
    const route = routeOrder({ outcomeId, listed, traded, tick, negRisk })
    return { ...route, market: { ...route.market, fee: await addBuilderFee(route.market.fee) } }
  }
}

export function createOrderCalls(deps: OrderDeps): OrderCalls {
  const { requests, authorize, clock, builderCode } = deps
  const route = createRouteReader(deps)

  async function act(call: Call, credentials: VenueCredentials) {
    return requests.act(authorize(call, credentials))
  }

  async function cancel(call: Call, credentials: VenueCredentials): Promise<CancelReply> {
    const answer = await act({ ...call, method: 'DELETE', timeoutMs: cancelTimeoutMs }, credentials)
    if (answer.type !== 'answered') return answer
    const { limit, value, message } = answer
    if (answer.status !== 200) return { type: 'rejected', reason: orderRefusalOf(message), message, limit }
    if (!fits(CancelAnswer, value)) return { type: 'unknown', message: 'an unknown format', limit }
    return {
      type: 'answered',
      canceled: hashesOf(value.canceled ?? [], cancelsMax),
      notCanceled: refusedCancels(value.not_canceled ?? {}),
      limit,
    }
  }

  return {
    async prepareOrder(request) {
      assertKind(request)
      const { identity, wallet, outcome, terms, timeInForce, postOnly } = request
      const now = clock.now()
      const expiration = expirationOf(request, now)
      const { exchange, market: current } = await route(outcome.outcomeId)
      if (outcome.venue !== venueName || outcome.marketId.toLowerCase() !== current.marketId.toLowerCase())
        throw notFound('market')
      const { makerUnits, takerUnits, priceMicros, sizeUnits } = orderAmounts(terms, current)
      const action: OutcomeOrderAction = {
        type: 'order',
        exchange: exchange satisfies ExchangeName,
        salt: saltOf(identity),
        walletKind: wallet.kind,
        wallet: wallet.wallet,
        owner: wallet.owner,
        outcomeId: outcome.outcomeId,
        side: terms.side,
        makerUnits,
        takerUnits,
        timestampMs: timestampOf(identity, now.getTime()),
        metadata: zero32,
        builder: builderCode,
      }
      return {
        action,
        orderId: orderIdOf(action),
        market: current,
        maxFeeUnits: highestOrderFee(current.fee, request, current.tickMicros),
        priceMicros,
        sizeUnits,
        timeInForce,
        postOnly,
        expiration,
      }
    },
    identityOf: (order, wallet, identities) => identityOf(order, wallet, { identities, builderCode }),
    orderBody: ({ action, timeInForce, postOnly, expiration }, signature, venueKey) =>
      JSON.stringify({
        deferExec: false,
        order: {
          builder: action.builder,
          expiration: String(expiration),
          maker: action.wallet,
          makerAmount: String(action.makerUnits),
          metadata: action.metadata,
          salt: Number(action.salt),
          side: action.side === 'buy' ? 'BUY' : 'SELL',
          signature,
          signatureType: signatureTypes[action.walletKind],
          signer: orderSigner(action),
          takerAmount: String(action.takerUnits),
          timestamp: String(action.timestampMs),
          tokenId: action.outcomeId,
        },
        orderType: wireTimeInForce[timeInForce],
        owner: venueKey,
        ...(postOnly && { postOnly: true }),
      }),
    async postOrder(body, credentials): Promise<OrderReply> {
      const call: Call = { service: 'clob', method: 'POST', path: '/order', body, timeoutMs: orderTimeoutMs }
      const answer = await act(call, credentials)
      if (answer.type !== 'answered') return answer
      return { ...orderReplyOf(answer.status, answer.value, answer.message), limit: answer.limit }
    },
    cancelOrders(orderIds, credentials) {
      if (orderIds.length === 0 || orderIds.length > cancelsMax)
        throw invalid('count_invalid', `One request cancels 1 to ${cancelsMax} orders`)
      const [first] = orderIds
      const single = orderIds.length === 1
      const path = single ? '/order' : '/orders'
      const body = JSON.stringify(single ? { orderID: first } : orderIds)
      return cancel({ service: 'clob', path, body }, credentials)
    },
    cancelMatching({ marketId, outcomeId }, credentials) {
      if (marketId === undefined && outcomeId === undefined)
        return cancel({ service: 'clob', path: '/cancel-all' }, credentials)
      const body = JSON.stringify({ market: marketId ?? '', asset_id: outcomeId ?? '' })
      return cancel({ service: 'clob', path: '/cancel-market-orders', body }, credentials)
    },
  }
}

type OrderOutcomeReply = OrderReply extends infer R ? (R extends unknown ? Omit<R, 'limit'> : never) : never

/** Reads the answer to an order; an answer that says neither is an unknown outcome. */
export function orderReplyOf(status: number, value: unknown, message: string): OrderOutcomeReply {
  const isOk = status === 200 || status === 201
  if (!isOk) return { type: 'rejected', reason: orderRefusalOf(message), message }
  if (!fits(OrderAnswer, value)) return { type: 'unknown', message: 'an unknown format' }
  const said = lineOf(value.errorMsg ?? '', messageMax)
  const posted = postStatuses.find((each) => each === value.status?.toLowerCase())
  if (value.success === true && posted !== undefined && value.orderID)
    return {
      type: 'accepted',
      orderId: value.orderID,
      status: posted,
      makingUnits: unitsOf(value.makingAmount) ?? null,
      takingUnits: unitsOf(value.takingAmount) ?? null,
      tradeIds: tradeIdsOf(value.tradeIDs ?? []),
      txHashes: hashesOf(value.transactionsHashes ?? []),
    }
  if (value.success === false && said !== '')
    return { type: 'rejected', reason: orderRefusalOf(said), message: said }
  return { type: 'unknown', message: said || `status ${lineOf(value.status ?? 'missing', 40)}` }
}
