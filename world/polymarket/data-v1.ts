import { activityRow, olderNames, outcomeRow, type PublicTrade, tradeRow } from './data-rows.ts'
import { averagePrice, unitsNumber } from './decimal.ts'
import { booleanOf, HttpError, integerOf, listOf, ok, type Request, type Route, route } from './http.ts'
import { type Market, marketByCondition, markets } from './markets.ts'
import {
  hasBoth,
  isRedeemable,
  markOf,
  openInterest,
  type Position,
  positionsOf,
  rowsOf,
  worthOf,
} from './positions.ts'
import type { RealismControl } from './realism.ts'
import type { Activity } from './state.ts'
import type { Venue } from './venue.ts'

export type DataDeps = { venue: Venue; realism: RealismControl }

export const walletOfQuery = ({ query }: Request, name = 'user'): string => {
  const wallet = query.get(name) ?? ''
  if (!/^0x[0-9a-fA-F]{40}$/.test(wallet))
    throw new HttpError(400, `required query param '${name}' not provided`)
  return wallet.toLowerCase()
}

export const percent = (part: number, whole: number): number => (whole === 0 ? 0 : (part / whole) * 100)

const positionView = (venue: Venue, wallet: string, all: readonly Position[], position: Position) => {
  const { market, size, cost, bought, realized } = position
  const value = worthOf(venue, position)
  return {
    ...olderNames(outcomeRow(venue, wallet, position)),
    size: unitsNumber(size),
    avgPrice: Number(averagePrice(cost, size)),
    initialValue: unitsNumber(cost),
    currentValue: unitsNumber(value),
    cashPnl: unitsNumber(value - cost),
    percentPnl: percent(value - cost, cost),
    totalBought: unitsNumber(bought),
    realizedPnl: unitsNumber(realized),
    percentRealizedPnl: percent(realized, position.boughtCash),
    curPrice: markOf(venue, position) / 10_000,
    redeemable: isRedeemable(venue, position),
    mergeable: hasBoth(all, position),
    eventId: market.event.id,
    negativeRisk: market.chain.isNegRisk,
  }
}

const closedView = (venue: Venue, wallet: string, position: Position) => {
  const { bought, boughtCash, realized, lastMs } = position
  return {
    ...olderNames(outcomeRow(venue, wallet, position)),
    avgPrice: Number(averagePrice(boughtCash, bought)),
    totalBought: unitsNumber(bought),
    realizedPnl: unitsNumber(realized),
    curPrice: markOf(venue, position) / 10_000,
    timestamp: Math.floor(lastMs / 1_000),
  }
}

export const wantsMarket = ({ query }: Request, market: Market | undefined): boolean => {
  const conditions = ['market', 'condition', 'condition_id', 'conditionId'].flatMap((name) =>
    listOf(query, name),
  )
  const events = ['eventId', 'event_id'].flatMap((name) => listOf(query, name))
  return (
    (conditions.length === 0 ||
      conditions.some((id) => id.toLowerCase() === market?.conditionId.toLowerCase())) &&
    (events.length === 0 || (market !== undefined && events.includes(market.event.id)))
  )
}

export const isShownActivity = (
  row: Activity,
  request: Request,
  { hidesMoves }: { hidesMoves: boolean },
): boolean => {
  const { query } = request
  const types = listOf(query, 'type')
  const isMove = row.type === 'DEPOSIT' || row.type === 'WITHDRAWAL'
  const [start, end] = [Number(query.get('start') ?? 0), Number(query.get('end') ?? 0)]
  const side = query.get('side')
  const seconds = row.atMs / 1_000
  return (
    row.type !== 'TRANSFER' &&
    (types.length === 0 ? !(isMove && hidesMoves) : types.includes(row.type)) &&
    wantsMarket(request, marketByCondition(row.conditionId)) &&
    (!side || row.side === side) &&
    seconds >= start &&
    (end === 0 || seconds <= end)
  )
}

/** Trades of everybody. */
export const publicTrades = ({ state }: Venue, request: Request, atMs: number): PublicTrade[] => {
  const { query } = request
  const user = query.get('user')?.toLowerCase()
  const takerOnly = booleanOf(query, 'takerOnly') ?? booleanOf(query, 'taker_only') ?? true
  const side = query.get('side')
  return [...state.trades.values()]
    .reverse()
    .filter((trade) => trade.status === 'CONFIRMED' && trade.updatedMs <= atMs)
    .filter((trade) => wantsMarket(request, marketByCondition(trade.conditionId)))
    .flatMap((trade) => [trade.taker, ...(takerOnly ? [] : trade.makers)].map((leg) => ({ trade, leg })))
    .filter(({ leg }) => (!user || leg.wallet === user) && (!side || leg.side === side))
}

const offsetMax = 10_000

/** Past the caps a page is cut, and an offset past its own is refused. */
const page = <T>(rows: readonly T[], { query }: Request, fallback: number, max: number): T[] => {
  const offset = Number(query.get('offset') ?? 0)
  if (!(offset >= 0 && offset <= offsetMax))
    throw new HttpError(400, `max historical activity offset of ${offsetMax} exceeded`)
  const limit = integerOf(query, 'limit', { fallback, max })
  return rows.slice(offset, offset + limit)
}

const dust = 10_000

const listPositions = ({ venue, realism }: DataDeps, request: Request) => {
  const { query } = request
  const wallet = walletOfQuery(request)
  const all = positionsOf(venue, wallet, venue.state.nowMs - realism.lagMs('dataLag'))
  const threshold = Number(query.get('sizeThreshold') ?? 1)
  const [redeemable, mergeable] = [booleanOf(query, 'redeemable'), booleanOf(query, 'mergeable')]
  const title = query.get('title')?.toLowerCase()
  const rows = all
    .filter((position) => position.size > 0 && unitsNumber(position.size) >= threshold)
    .filter(({ market }) => wantsMarket(request, market))
    .filter((position) => redeemable !== true || isRedeemable(venue, position))
    .filter((position) => mergeable !== true || hasBoth(all, position))
    .filter(({ market }) => !title || market.question.toLowerCase().includes(title))
    .sort((a, b) => b.size - a.size)
  return ok(page(rows, request, 100, 500).map((position) => positionView(venue, wallet, all, position)))
}

const listClosed = ({ venue, realism }: DataDeps, request: Request) => {
  const wallet = walletOfQuery(request)
  const all = positionsOf(venue, wallet, venue.state.nowMs - realism.lagMs('dataLag'))
  const rows = all
    .filter(({ size, bought }) => bought > 0 && size <= dust)
    .filter(({ market }) => wantsMarket(request, market))
    .sort((a, b) => b.realized - a.realized)
  return ok(page(rows, request, 10, 50).map((position) => closedView(venue, wallet, position)))
}

const listActivity = ({ venue, realism }: DataDeps, request: Request) => {
  const { query } = request
  const wallet = walletOfQuery(request)
  const rows = rowsOf(venue, wallet, venue.state.nowMs - realism.lagMs('dataLag')).filter((row) =>
    isShownActivity(row, request, { hidesMoves: booleanOf(query, 'excludeDepositsWithdrawals') ?? true }),
  )
  if (query.get('sortDirection') !== 'ASC') rows.reverse()
  return ok(page(rows, request, 100, 500).map((row) => ({ ...olderNames(activityRow(row)), isCombo: false })))
}

export const totalValue = (venue: Venue, wallet: string, request: Request, atMs: number): number =>
  positionsOf(venue, wallet, atMs)
    .filter(({ market }) => wantsMarket(request, market))
    .reduce((sum, position) => sum + worthOf(venue, position), 0)

export const dataV1Routes = (deps: DataDeps): Route[] => {
  const { venue, realism } = deps
  const atMs = () => venue.state.nowMs - realism.lagMs('dataLag')
  return [
    route('GET /', () => ok({ data: 'OK' })),
    route('GET /positions', (request) => listPositions(deps, request)),
    route('GET /closed-positions', (request) => listClosed(deps, request)),
    route('GET /activity', (request) => listActivity(deps, request)),
    route('GET /trades', (request) =>
      ok(
        page(publicTrades(venue, request, atMs()), request, 100, 10_000).map((row) =>
          olderNames(tradeRow(row)),
        ),
      ),
    ),
    route('GET /value', (request) => {
      const wallet = walletOfQuery(request)
      return ok([{ user: wallet, value: unitsNumber(totalValue(venue, wallet, request, atMs())) }])
    }),
    route('GET /oi', (request) => {
      const interest = openInterest(venue, atMs())
      return ok(
        markets
          .filter((market) => wantsMarket(request, market))
          .map(({ conditionId }) => ({
            market: conditionId,
            value: unitsNumber(interest.get(conditionId) ?? 0),
          })),
      )
    }),
  ]
}
