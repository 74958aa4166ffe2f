import { lastPriceOf } from './clob-views.ts'
import { cashOf } from './decimal.ts'
import { type Market, marketByCondition, type OutcomeIndex } from './markets.ts'
import type { Activity, Holding } from './state.ts'
import { stateOf, type Venue } from './venue.ts'

/** What a wallet holds of one outcome, folded from what happened to it. */
export type Position = Holding & { market: Market; outcome: OutcomeIndex }

const newHolding = (atMs: number): Holding => ({
  size: 0,
  cost: 0,
  fees: 0,
  bought: 0,
  boughtCash: 0,
  realized: 0,
  firstMs: atMs,
  lastMs: atMs,
})

const receive = (position: Holding, shares: number, cash: number): void => {
  position.size += shares
  position.cost += cash
  position.bought += shares
  position.boughtCash += cash
}

/** The cost of what leaves is its share of the whole cost. */
const release = (position: Holding, shares: number, cash: number): void => {
  const part = Math.min(shares, position.size)
  const cost = position.size === 0 ? 0 : Math.round((position.cost * part) / position.size)
  position.size -= part
  position.cost -= cost
  position.realized += cash - cost
}

const half = (units: number): number => Math.floor(units / 2)

/** The part of a row for each outcome: a split and a merge touch both. */
const applyRow = (of: (outcome: OutcomeIndex) => Holding, row: Activity): void => {
  const { type, outcome, shares, cash } = row
  if (type === 'TRADE' && outcome !== null) {
    const position = of(outcome)
    if (row.side === 'BUY') {
      receive(position, shares, cash)
      position.fees += row.fee
    } else release(position, shares, cash - row.fee)
  }
  if (type === 'SPLIT') for (const each of [0, 1] as const) receive(of(each), shares, half(shares))
  if (type === 'MERGE') for (const each of [0, 1] as const) release(of(each), shares, half(shares))
  if (type === 'REDEEM' && outcome !== null) release(of(outcome), shares, cash)
  if (type === 'TRANSFER' && outcome !== null) {
    if (row.side === 'BUY') receive(of(outcome), shares, 0)
    else release(of(outcome), shares, 0)
  }
}

export const rowsOf = ({ state }: Venue, wallet: string, atMs: number): Activity[] =>
  state.activity.filter((row) => row.wallet === wallet && row.atMs <= atMs)

const fold = (holdings: Map<string, Holding>, row: Activity): void =>
  applyRow((outcome) => {
    const key = `${row.conditionId} ${outcome}`
    const holding = holdings.get(key) ?? newHolding(row.atMs)
    holdings.set(key, holding)
    holding.lastMs = row.atMs
    return holding
  }, row)

const foldInto = (wallets: Map<string, Map<string, Holding>>, row: Activity): void => {
  const holdings = wallets.get(row.wallet) ?? new Map<string, Holding>()
  fold(holdings, row)
  if (holdings.size > 0) wallets.set(row.wallet, holdings)
}

/** The shares of each market that exist, by condition: each pair is backed by a dollar. */
export const openInterest = ({ state }: Venue, atMs: number): Map<string, number> => {
  const wallets = structuredClone(state.opening)
  for (const row of state.activity) if (row.atMs <= atMs) foldInto(wallets, row)
  const shares = new Map<string, number>()
  for (const [key, { size }] of [...wallets.values()].flatMap((holdings) => [...holdings])) {
    const [conditionId = '', outcome] = key.split(' ')
    if (outcome === '0') shares.set(conditionId, (shares.get(conditionId) ?? 0) + size)
  }
  return shares
}

export const positionsOf = (venue: Venue, wallet: string, atMs: number): Position[] => {
  const holdings = structuredClone(venue.state.opening.get(wallet) ?? new Map<string, Holding>())
  for (const row of rowsOf(venue, wallet, atMs)) fold(holdings, row)
  return [...holdings].flatMap(([key, holding]) => {
    const [conditionId = '', outcome] = key.split(' ')
    const market = marketByCondition(conditionId)
    return market ? [{ ...holding, market, outcome: outcome === '0' ? 0 : 1 }] : []
  })
}

const activityMax = 200_000

/** Positions keep what their oldest rows made of them. */
export const foldActivity = ({ state }: Venue): void => {
  if (state.activity.length <= activityMax) return
  for (const row of state.activity.splice(0, activityMax / 10)) foldInto(state.opening, row)
}

/** In 1e-4 dollars: the payout once the market is resolved. */
export const markOf = (venue: Venue, { market, outcome }: Pick<Position, 'market' | 'outcome'>): number => {
  const { payout } = stateOf(venue, market.conditionId)
  if (payout === null) return lastPriceOf(venue, market, outcome)
  return outcome === 0 ? payout : 10_000 - payout
}

export const worthOf = (venue: Venue, position: Position): number =>
  cashOf(position.size, markOf(venue, position))

export const isRedeemable = (venue: Venue, { market, size }: Position): boolean =>
  size > 0 && stateOf(venue, market.conditionId).isReported

export const hasBoth = (positions: readonly Position[], { market }: Position): boolean =>
  positions.filter((each) => each.market === market && each.size > 0).length === 2
