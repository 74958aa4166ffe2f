import { Fault } from '#kernel/contract/fault.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { PredictionMarket, TakerFee } from '#kernel/money/prediction-views.ts'
import { type ExchangeName, exchangeOf, type Protocol } from './contracts.ts'
import { amountOf, required, tickOf } from './decimals.ts'
import { isConditionOf, protocolOf } from './outcome-ids.ts'
import { delayOf, feeOf } from './parse-markets.ts'
import type { ClobMarket, NegRisk, TickSize } from './wire-clob.ts'

/** Decides which exchange settles an order, from what the catalogue and the order book say now. */

export type RoutingFacts = {
  outcomeId: string
  /** By the catalogue. */
  listed: PredictionMarket
  /** By the order book's service. */
  traded: T.Static<typeof ClobMarket>
  tick: T.Static<typeof TickSize>
  negRisk: T.Static<typeof NegRisk>
}
export type Route = { exchange: ExchangeName; market: PredictionMarket }

/** Nothing is signed while the venue contradicts itself: the order could be one of another exchange. */
const contradiction = (what: string): Fault =>
  new Fault('unavailable', `Polymarket contradicts itself: ${what}`, {
    extras: { reason: 'upstream_inconsistent' },
  })

function assertConsistent({ outcomeId, listed, traded, negRisk }: RoutingFacts, protocol: Protocol): void {
  if (listed.protocol !== protocol)
    throw contradiction(
      `the market is listed as ${listed.protocol}, and the id of its outcome is of ${protocol}`,
    )
  if (!listed.outcomes.some((outcome) => outcome.outcomeId === outcomeId))
    throw contradiction('the listed market has another outcome')
  if (!isConditionOf(listed.marketId, outcomeId, protocol))
    throw contradiction('the id of the market does not belong to the id of its outcome')
  if (traded.c.toLowerCase() !== listed.marketId.toLowerCase() || !traded.t.some(({ t }) => t === outcomeId))
    throw contradiction('the order book trades another market under this id')
  if (negRisk.neg_risk !== listed.isNegRisk || (traded.nr ?? listed.isNegRisk) !== listed.isNegRisk)
    throw contradiction('it is unclear whether the market has negative risk')
}

/** The fee that the order book charges: the catalogue may list an older one. */
export const feeOfTraded = (
  { fd }: T.Static<typeof ClobMarket>,
  listed: Pick<PredictionMarket, 'fee'>,
): TakerFee | null => (fd ? feeOf({ rate: fd.r, exponent: fd.e }) : listed.fee)

/** Returns the exchange, and the market as the order book has it. */
export function routeOrder(facts: RoutingFacts): Route {
  const { outcomeId, listed, traded, tick } = facts
  const protocol = protocolOf(outcomeId)
  if (!protocol) throw new Fault('not_found', 'This is no id of an outcome of Polymarket')
  assertConsistent(facts, protocol)
  if (!listed.acceptsOrders || !traded.ao) throw new Fault('market_closed', 'The market takes no orders')
  const market: PredictionMarket = {
    ...listed,
    // The catalogue is cached at the venue; ticks move, and the order book decides.
    tickMicros: required(tickOf(tick.minimum_tick_size), 'tick'),
    minSizeUnits: required(amountOf(traded.mos), 'least size'),
    matchDelaySeconds: delayOf(traded.sd ?? listed.matchDelaySeconds),
    fee: feeOfTraded(traded, listed),
  }
  return { exchange: exchangeOf(protocol, listed), market }
}
