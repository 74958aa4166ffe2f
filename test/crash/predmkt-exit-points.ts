/** Purchases with exits at the prediction market, of which a gateway dies. */
import assert from 'node:assert/strict'
import {
  buyTerms,
  executed,
  type Market,
  micros,
  outcomeOf,
  sellable,
  type VenueRecord,
} from '../journeys/predmkt-calls.ts'
import { type Attempt, afterStep, type PredmktPoints } from './predmkt-points.ts'

type Exit = { leg: 'tp' | 'sl'; state: string; order_id: string | null }
export const needed = [...afterStep, /^db:update prediction_exit:after/]

/** Buys with exits at the gateway that dies later, and returns what the chain and the venue had before. */
export async function buy(
  points: PredmktPoints,
  { person }: Attempt,
  market: Market,
  terms: object,
  amount: string,
) {
  const was = await points.held(outcomeOf(market))
  const sales = (await points.ordersOf('SELL')).length
  const body = { ...buyTerms(market, amount), ...terms }
  const { result } = await executed(person, '/predmkt/order', body)
  const sold = sellable(result.settled_shares!)
  return {
    orderId: result.order_id!,
    /** What the exits can sell. */
    sold,
    /** The sales that the gateway has placed since, by the venue's own record. */
    sales: async () => (await points.ordersOf('SELL')).slice(sales),
    async assertSold(at: string) {
      const rest = micros(result.settled_shares!) - sold
      assert.equal((await points.held(outcomeOf(market))).shares, was.shares + rest, `${at}: the shares`)
    },
  }
}

/** The exits of a purchase once they are in these states. */
export const exitsIn =
  (points: PredmktPoints, orderId: string, states: Partial<Record<Exit['leg'], string>>) => async () => {
    const { rows } = await points.app.admin.query<Exit>(
      'select leg, state, order_id from prediction_exit where entry_order_id = $1',
      [orderId],
    )
    const isThere = ([leg, state]: [string, string]) =>
      rows.some((row) => row.leg === leg && row.state === state)
    return Object.entries(states).every(isThere) ? rows : undefined
  }
export const orderOf = (rows: readonly Exit[]) => rows.find(({ leg }) => leg === 'tp')!.order_id!
export const shown = ({ id, status, matched }: VenueRecord['orders'][number]) => [id, status, micros(matched)]
