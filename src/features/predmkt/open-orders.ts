import { Fault } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import type { PredictionExitRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { setupIncomplete, tradingAccount } from './account-checks.ts'
import type { AccountViews } from './account-views.ts'
import type { PredmktDeps } from './deps.ts'
import type { orderEntries } from './order-contract.ts'
import { accountOf } from './store/account-store.ts'
import { openExits } from './store/exit-store.ts'
import { openOrderRows } from './store/order-store.ts'

/** Open orders as the venue lists them, with what the gateway knows of them, and the exits that it holds itself. */

type View = Static<(typeof orderEntries)['openOrders']['output']>
type OrderView = View['orders'][number]

const usd = (units: bigint): string => fromUnits(units, usdcDecimals)

export const createOpenOrders =
  (deps: PredmktDeps & { accountViews: Pick<AccountViews, 'openOrders'> }) =>
  async (userId: string): Promise<View> => {
    const { db, venue, clock, accountViews } = deps
    const owner = { userId, venue: venue.name }
    // A user who has no account at the venue has no order there.
    if (!(await accountOf(db, owner))) return { orders: [], as_of: clock.now().toISOString() }
    const { credentials } = await tradingAccount(deps, userId)
    const [listed, rows, exits] = await Promise.all([
      accountViews.openOrders(userId, credentials).catch(throwMissingKey),
      openOrderRows(db, owner),
      openExits(db, owner),
    ])
    const known = new Map(rows.map((row) => [row.order_id.toLowerCase(), row]))
    const held = exits.filter(({ state }) => state === 'waiting' || state === 'watched')
    return {
      orders: [
        ...listed.map((order) =>
          orderView(venue.protocolOf(order.outcomeId), order, known.get(order.orderId.toLowerCase())),
        ),
        ...held.map((exit) => exitView(venue.protocolOf(exit.outcome_id), exit)),
      ],
      as_of: clock.now().toISOString(),
    }
  }

/** A key that the venue does not take any more is one that the set-up lacks. */
function throwMissingKey(fault: unknown): never {
  throw fault instanceof Fault && fault.extras.reason === 'key_invalid' ? setupIncomplete(['key']) : fault
}

const protocolView = (protocol: string | undefined) => (protocol === 'v2' ? 'v2' : 'v1')

function orderView(
  protocol: string | undefined,
  order: OutcomeOrder,
  row: PredictionOrderRow | undefined,
): OrderView {
  return {
    id: order.orderId,
    venue: 'polymarket',
    market: order.marketId,
    asset_id: order.outcomeId,
    outcome_id: order.outcomeId,
    protocol: protocolView(protocol),
    neg_risk: row?.neg_risk ?? false,
    side: order.side === 'buy' ? 'BUY' : 'SELL',
    outcome: order.outcome,
    original_size: usd(order.sizeUnits),
    size_matched: usd(order.matchedUnits),
    price: usd(order.priceMicros),
    order_type: order.timeInForce.toUpperCase() as OrderView['order_type'],
    expiration: (row?.expires_at ?? order.expiresAt)?.toISOString() ?? null,
    status: order.status === 'delayed' ? 'delayed' : 'live',
    leg: row?.leg ?? 'order',
    title: row?.title ?? '',
    task_id: row?.task_id ?? null,
    created_at: order.createdAt.toISOString(),
  }
}

const exitView = (protocol: string | undefined, exit: PredictionExitRow): OrderView => ({
  id: exit.id,
  venue: 'polymarket',
  market: exit.market_id,
  asset_id: exit.outcome_id,
  outcome_id: exit.outcome_id,
  protocol: protocolView(protocol),
  neg_risk: false,
  side: 'SELL',
  outcome: '',
  original_size: '0',
  size_matched: '0',
  price: usd(exit.trigger_price ?? 0n),
  order_type: 'GTC',
  expiration: null,
  status: exit.state === 'watched' ? 'watched' : 'waiting',
  leg: exit.leg,
  title: '',
  task_id: exit.entry_task_id,
  created_at: exit.created_at.toISOString(),
})
