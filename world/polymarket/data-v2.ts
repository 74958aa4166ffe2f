import { activityRow, outcomeRow, tradeRow } from './data-rows.ts'
import {
  type DataDeps,
  isShownActivity,
  percent,
  publicTrades,
  totalValue,
  walletOfQuery,
  wantsMarket,
} from './data-v1.ts'
import { averagePrice, unitsNumber } from './decimal.ts'
import { booleanOf, HttpError, integerOf, ok, type Request, type Route, route } from './http.ts'
import { marketByCondition } from './markets.ts'
import { hasBoth, isRedeemable, markOf, type Position, positionsOf, rowsOf, worthOf } from './positions.ts'
import { stateOf, type Venue } from './venue.ts'

/** The newer form of the Data API: `{data, pagination}`, opaque cursors, names with underscores. */

const pageMax = 1_000
const pageDefault = 100

const invalid = (message: string, parameter: string): never => {
  throw new HttpError(400, message, { code: 'invalid_request', retryable: false, parameter })
}

type Cursor = { limit: number; offset: number; bound: string }

const encode = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString('base64url')

const decode = (text: string, bound: string): Cursor => {
  try {
    const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Cursor
    if (cursor.bound === bound && Number.isInteger(cursor.offset) && Number.isInteger(cursor.limit))
      return cursor
  } catch {
    // Answered below, as any other cursor that was not issued here.
  }
  return invalid('invalid cursor', 'cursor')
}

/** The cursor carries the size of the page, and what it was issued for. */
const page = <T>(rows: readonly T[], { query }: Request, bound: string, view: (row: T) => unknown) => {
  const text = query.get('cursor')
  if (query.has('offset')) return invalid('offset is not supported', 'offset')
  const { limit, offset } =
    text === null
      ? { limit: integerOf(query, 'limit', { fallback: pageDefault, max: pageMax }), offset: 0 }
      : decode(text, bound)
  const next = offset + limit
  const hasMore = next < rows.length
  return ok({
    data: rows.slice(offset, next).map(view),
    pagination: {
      limit,
      offset,
      has_more: hasMore,
      next_cursor: hasMore ? encode({ limit, offset: next, bound }) : null,
    },
  })
}

type Status = 'OPEN' | 'REDEEMABLE' | 'REDEEMABLE_LOST' | 'MERGEABLE' | 'CLOSED'

const statusOf = (venue: Venue, position: Position): Status => {
  if (position.size === 0) return 'CLOSED'
  if (!isRedeemable(venue, position)) return 'OPEN'
  return markOf(venue, position) > 0 ? 'REDEEMABLE' : 'REDEEMABLE_LOST'
}

const basisOf = ({ size, cost, bought, boughtCash }: Position) =>
  size === 0 ? { price: averagePrice(boughtCash, bought) } : { price: averagePrice(cost, size) }

const positionView = (venue: Venue, wallet: string, all: readonly Position[], position: Position) => {
  const { market, size, cost, fees, bought, boughtCash, realized, firstMs, lastMs } = position
  const value = worthOf(venue, position)
  return {
    ...outcomeRow(venue, wallet, position),
    current_size: unitsNumber(size),
    avg_price: Number(basisOf(position).price),
    entry_cost_usdc: unitsNumber(cost),
    entry_fees_usdc: unitsNumber(fees),
    total_cost_usdc: unitsNumber(cost + fees),
    current_price: markOf(venue, position) / 10_000,
    current_value: unitsNumber(value),
    total_size: unitsNumber(bought),
    realized_pnl: unitsNumber(realized),
    unrealized_pnl: unitsNumber(value - cost),
    total_pnl: unitsNumber(realized + value - cost),
    percent_pnl: percent(value - cost, cost),
    percent_realized_pnl: percent(realized, boughtCash),
    status: statusOf(venue, position),
    redeemable: isRedeemable(venue, position),
    mergeable: hasBoth(all, position),
    negative_risk: market.chain.isNegRisk,
    archived: false,
    event_id: market.event.id,
    last_event_at: Math.floor(lastMs / 1_000),
    first_entry_at: Math.floor(firstMs / 1_000),
    name: '',
    profile_image: '',
    verified: false,
  }
}

const isWanted = (venue: Venue, all: readonly Position[], position: Position, status: string): boolean => {
  if (position.bought === 0) return false
  const own = statusOf(venue, position)
  if (status === 'OPEN') return own !== 'CLOSED'
  if (status === 'MERGEABLE') return position.size > 0 && hasBoth(all, position)
  return own === status
}

const statuses: readonly string[] = ['OPEN', 'REDEEMABLE', 'REDEEMABLE_LOST', 'MERGEABLE', 'CLOSED']

const parameterOf = ({ query }: Request, snake: string, camel: string): string | null =>
  query.get(snake) ?? query.get(camel)

const listPositions = ({ venue, realism }: DataDeps, request: Request) => {
  const wallet = walletOfQuery(request)
  const status = request.query.get('status') ?? 'OPEN'
  if (!statuses.includes(status)) return invalid(`invalid position status: ${status}`, 'status')
  const direction = parameterOf(request, 'sort_direction', 'sortDirection') ?? 'DESC'
  const all = positionsOf(venue, wallet, venue.state.nowMs - realism.lagMs('dataLag'))
  const title = request.query.get('title')?.toLowerCase()
  const rows = all
    .filter((position) => isWanted(venue, all, position, status))
    .filter(({ market }) => wantsMarket(request, market))
    .filter(({ market }) => !title || market.question.toLowerCase().includes(title))
    .sort((a, b) => (worthOf(venue, b) - worthOf(venue, a)) * (direction === 'ASC' ? -1 : 1))
  return page(rows, request, `positions ${wallet} ${status} ${direction}`, (position) =>
    positionView(venue, wallet, all, position),
  )
}

const listActivity = ({ venue, realism }: DataDeps, request: Request) => {
  const { query } = request
  const wallet = walletOfQuery(request)
  const direction = parameterOf(request, 'sort_direction', 'sortDirection') ?? 'DESC'
  if ((parameterOf(request, 'sort_by', 'sortBy') ?? 'TIMESTAMP') !== 'TIMESTAMP')
    return invalid('only sortBy=TIMESTAMP with sortDirection=DESC is supported', 'sort_by')
  const hidesMoves =
    booleanOf(query, 'exclude_deposits_withdrawals') ?? booleanOf(query, 'excludeDepositsWithdrawals') ?? true
  const rows = rowsOf(venue, wallet, venue.state.nowMs - realism.lagMs('dataLag')).filter((row) =>
    isShownActivity(row, request, { hidesMoves }),
  )
  if (direction !== 'ASC') rows.reverse()
  return page(rows, request, `activity ${direction}`, activityRow)
}

const resolutionView = (venue: Venue, conditionId: string) => {
  const market = marketByCondition(conditionId)
  if (!market) return []
  const { payout, resolvedMs, isReported } = stateOf(venue, market.conditionId)
  const resolved = payout !== null && isReported
  return [
    {
      condition_id: market.conditionId,
      status: resolved ? 'resolved' : payout === null ? 'active' : 'proposed',
      extended_review: false,
      was_disputed: false,
      was_arbitrated: false,
      new_version_q: false,
      transaction_hash: '',
      log_index: '',
      last_update_timestamp: new Date(payout === null ? venue.state.genesisMs : resolvedMs).toISOString(),
      market_type: market.chain.isNegRisk ? 'INCREMENTAL_NEGRISK' : 'BINARY',
      ...(resolved
        ? {
            payouts: [payout * 100, (10_000 - payout) * 100],
            resolved_at: new Date(resolvedMs).toISOString(),
            resolution_source: 'reported',
            reporter: 'EOA',
          }
        : {}),
    },
  ]
}

export const dataV2Routes = (deps: DataDeps): Route[] => {
  const { venue, realism } = deps
  const atMs = () => venue.state.nowMs - realism.lagMs('dataLag')
  return [
    route('GET /v2/positions', (request) => listPositions(deps, request)),
    route('GET /v2/activity', (request) => listActivity(deps, request)),
    route('GET /v2/trades', (request) =>
      page(publicTrades(venue, request, atMs()), request, 'trades', tradeRow),
    ),
    route('GET /v2/value', (request) => {
      const wallet = walletOfQuery(request)
      const value = unitsNumber(totalValue(venue, wallet, request, atMs()))
      return ok({ data: { proxy_wallet: wallet, value } })
    }),
    route('GET /v2/resolutions', (request) => {
      const conditions = request.query.get('condition')?.split(',') ?? []
      return ok({ data: conditions.flatMap((id) => resolutionView(venue, id)) })
    }),
  ]
}
