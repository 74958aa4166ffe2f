/** An own ledger of shares by the rule of the moving average, beside what the gateway says of cost, value and profit. */

import type { Effects } from '../../world/conformance/prediction/prediction-world.ts'
import { atVenue, micros, type Position } from '../journeys/predmkt-calls.ts'
import { bestBid, legsOf, type PredictionTrader, type VenueMarket } from './prediction-traders.ts'

const dollar = 1_000_000n

/** What is held of one outcome, what it has cost, and what has left brought beyond its cost. */
export type Held = { units: bigint; cost: bigint; realized: bigint }
export type Ledger = Map<string, Held>

export const heldOf = (ledger: Ledger, token: string): Held => {
  const known = ledger.get(token) ?? { units: 0n, cost: 0n, realized: 0n }
  ledger.set(token, known)
  return known
}

/** What leaves takes its part of the cost, rounded down. */
export const release = (held: Held, units: bigint, proceeds: bigint): void => {
  const part = units === held.units ? held.cost : (held.cost * units) / held.units
  held.units -= units
  held.cost -= part
  held.realized += proceeds - part
}

type Booked = ReturnType<typeof legsOf>[number]
/** What a sale takes of the cost is rounded, so that the order within a moment counts: purchases first, then by ids. */
const inOrder = (one: Booked, other: Booked): number => {
  const keyOf = ({ trade, side, orderId }: Booked) => `${side} ${trade.id} ${orderId}`
  return one.trade.matchMs - other.trade.matchMs || (keyOf(one) < keyOf(other) ? -1 : 1)
}

/** Books the confirmed trades of a wallet, in the order of their matches. */
export function ledgerOf(
  effects: Pick<Effects, 'trades'>,
  { wallet }: PredictionTrader,
  markets: readonly VenueMarket[],
): Ledger {
  const ledger: Ledger = new Map()
  const tokens = new Map(markets.map(({ conditionId, tokens: pair }) => [conditionId, pair]))
  for (const { trade, outcome, side, shares, cash, fee } of legsOf(effects, wallet).toSorted(inOrder)) {
    if (trade.status !== 'CONFIRMED') continue
    const held = heldOf(ledger, tokens.get(trade.conditionId)![outcome])
    if (side === 'SELL') release(held, micros(shares), micros(cash) - micros(fee))
    else {
      held.units += micros(shares)
      held.cost += micros(cash) + micros(fee)
    }
  }
  return ledger
}

type Profit = { size: string; cost: string | null; unrealized: string | null; realized: string | null }

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, each) => total + each, 0n)

/** Units as the decimal text of the interface. */
export function text(units: bigint): string {
  const [sign, rest] = units < 0n ? ['-', -units] : ['', units]
  const fraction = String(rest % dollar)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return `${sign}${rest / dollar}${fraction === '' ? '' : `.${fraction}`}`
}

/** What the ledger says, at the best bids of the venue, or the payouts of resolved markets. */
export async function expectedProfit(clob: string, ledger: Ledger, payouts: ReadonlyMap<string, bigint>) {
  const open = [...ledger].filter(([, { units }]) => units > 0n)
  const rows = await Promise.all(
    open.map(async ([token, held]) => {
      const price = payouts.get(token) ?? (await bestBid(clob, token))
      return { token, ...held, value: price === undefined ? null : (held.units * price) / dollar }
    }),
  )
  const positions = rows.map(({ token, units, cost, realized, value }): [string, Profit] => {
    const unrealized = value === null ? null : text(value - cost)
    return [token, { size: text(units), cost: text(cost), unrealized, realized: text(realized) }]
  })
  return {
    positions: Object.fromEntries(positions),
    holdings: Object.fromEntries(positions),
    pnl: {
      realized: text(sum([...ledger.values()].map(({ realized }) => realized))),
      unrealized: text(sum(rows.map(({ value, cost }) => (value === null ? 0n : value - cost)))),
      value: text(sum(rows.flatMap(({ value }) => value ?? []))),
    },
  }
}

type Activity = { pnl: { realized_usd: string; unrealized_usd: string }; positions_value_usd: string }

/** The same by each of the gateway's reads. */
export async function shownProfit({ person }: PredictionTrader) {
  const [{ positions }, { pnl, positions_value_usd: value }, held] = await Promise.all([
    person.call<{ positions: Position[] }>('GET /predmkt/positions').then(({ body }) => body),
    person.call<Activity>('GET /predmkt/activity').then(({ body }) => body),
    atVenue(person),
  ])
  const shares = held.filter(({ kind }) => kind === 'outcome_token')
  return {
    positions: Object.fromEntries(
      positions.map((each): [string, Profit] => [
        each.outcome_id,
        {
          size: each.size,
          cost: each.cost_usd,
          unrealized: each.unrealized_usd,
          realized: each.realized_usd,
        },
      ]),
    ),
    holdings: Object.fromEntries(
      shares.map((each): [string, Profit] => [
        each.outcome_id!,
        {
          size: each.balance,
          cost: each.cost_basis_usd,
          unrealized: each.unrealized_pnl_usd,
          realized: each.realized_pnl_usd,
        },
      ]),
    ),
    pnl: { realized: pnl.realized_usd, unrealized: pnl.unrealized_usd, value },
  }
}

type Fill = { role: string; side: string; outcome: string; size: bigint; fee: bigint }
type Fills = Record<string, Fill>
type Listed = Record<
  'id' | 'order_id' | 'role' | 'side' | 'outcome_id' | 'size' | 'fee' | 'settlement',
  string
>

/** The confirmed fills of a wallet by the venue's record, by trade and order. */
export function confirmedFills(
  effects: Pick<Effects, 'trades'>,
  { wallet }: PredictionTrader,
  markets: readonly VenueMarket[],
): Fills {
  const tokens = new Map(markets.map(({ conditionId, tokens: pair }) => [conditionId, pair]))
  return Object.fromEntries(
    legsOf(effects, wallet)
      .filter(({ trade }) => trade.status === 'CONFIRMED')
      .map(({ trade, orderId, role, side, outcome, shares, fee }): [string, Fill] => [
        `${trade.id} ${orderId}`,
        {
          role,
          side,
          outcome: tokens.get(trade.conditionId)![outcome],
          size: micros(shares),
          fee: micros(fee),
        },
      ]),
  )
}

/** The same by the gateway's list of the last 500 trades. */
export async function shownFills({ person }: PredictionTrader): Promise<Fills> {
  const { body } = await person.call<{ trades: Listed[] }>('GET /predmkt/activity?limit=500')
  return Object.fromEntries(
    body.trades
      .filter(({ settlement }) => settlement === 'confirmed')
      .map(({ id, order_id, role, side, outcome_id: outcome, size, fee }): [string, Fill] => [
        `${id} ${order_id}`,
        { role, side, outcome, size: micros(size), fee: micros(fee) },
      ]),
  )
}
