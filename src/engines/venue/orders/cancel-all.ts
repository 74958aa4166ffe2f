import type { AddressOf } from '#engines/custody/wallet-store.ts'
import { phaseOf } from '#engines/venue/records/bracket.ts'
import { assetKey, type MarketKind } from '#engines/venue/records/markets.ts'
import { isVenueOrderId, type RecentOrders, recentOrders } from '#engines/venue/records/order-store.ts'
import { later } from '#kernel/clock.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { addToResult, oneEffect } from '#kernel/task/effect-steps.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { Admission, EndResult, FailedResult, JsonObject, Steps } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { ActionTaskData } from './action-outcome.ts'
import { cancelOf } from './cancel.ts'
import { type CancelTarget, cancelSearch, cancelView, type OrderCancelled } from './cancel-batch.ts'
import { failed, failedBy, rejectedResult, upstreamName } from './order-failures.ts'
import { type OrderLookupSource, readLagMs } from './order-lookup.ts'
import { clockSkewMs, exitFacts, planOf } from './order-task.ts'
import { recentlyCancelled } from './read-after-write.ts'
import { type AgentDeps, requireAgent, tradeDeadlineMs, venueForExit } from './require-trading-key.ts'
import { type VenueDriverDeps, venueDriver } from './venue-effect.ts'

export type CancelAllSection = {
  kind: MarketKind
  operation: string
  /** The symbol of the one market whose orders are cancelled, or undefined for all markets. */
  symbol: string | undefined
  /**
   * Returns the market of an order, or undefined if the order belongs to another part of the interface, such as spot
   * instead of perp.
   */
  marketOf(order: OpenOrder): { symbol: string; asset: number } | undefined
}
export type CancelAllDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'openOrders' | 'account' | 'order' | 'withUrgency'>
  policy: Pick<Policy, 'check'>
  evmAddressOf: AddressOf
  chainId: string
} & AgentDeps
export type Cancelled = {
  order_id: string
  oid: string
  asset: string
  cancelled: boolean
  venue_status: string
}
export type CancelAllData = ActionTaskData & {
  operation: string
  tokens: string[]
  account: string
  agent: string
  ahead_ms: number
  since_ms: number
  orders: CancelTarget[]
  /** The number of orders in `orders` whose outcome is known. */
  resolved: number
  outcomes: Cancelled[]
}
export type CancelAllStep = 'sign' | 'confirm'
/** The venue counts an action of up to this many cancels as one request. */
const cancelsPerAction = 39

export const admitCancelAll = (
  deps: CancelAllDeps,
  section: CancelAllSection,
  asker: Asker,
  /** The symbols of the gateway's own triggers, which the section cancels before the orders at the venue. */
  gatewaySymbols: readonly string[] = [],
): Promise<Admission<CancelAllData, 'sign'>> =>
  createAdmission({
    policy: deps.policy,
    check: (_input: unknown, { userId }) => checkCancelAll(deps, section, userId, gatewaySymbols),
    start: ({ data }) => ({
      first: 'sign',
      deadlineMs: tradeDeadlineMs,
      data,
      signOnAccept: data.orders.length > 0,
    }),
  })(undefined, asker)

async function checkCancelAll(
  deps: CancelAllDeps,
  section: CancelAllSection,
  userId: string,
  gatewaySymbols: readonly string[],
): Promise<{ action: PlannedAction; data: CancelAllData }> {
  const { db, chainId, clock } = deps
  const { kind, operation, symbol } = section
  const account = await deps.evmAddressOf(userId)
  const venue = await venueForExit(deps, userId)
  const since = later(clock.now(), -readLagMs)
  const [open, state, recent, cancelledIds] = await Promise.all([
    venue.openOrders(account),
    venue.account(account),
    recentOrders(db, { userId, kind, since }),
    recentlyCancelled(deps, userId),
  ])
  const targets = new Map<number, CancelTarget>()
  for (const order of open) {
    const market = section.marketOf(order)
    if (market) targets.set(order.orderId, { order_id: order.orderId, ...market, left: order.size })
  }
  for (const target of await findUnlisted(venue, account, recent, targets))
    targets.set(target.order_id, target)
  const orders = [...targets.values()].filter(
    (each) => !cancelledIds.has(each.order_id) && (symbol === undefined || each.symbol === symbol),
  )
  const symbols = new Set([...orders.map((each) => each.symbol), ...gatewaySymbols])
  const tokens = [...symbols].map((each) => assetKey(kind, each))
  const agent = orders.length > 0 ? (await requireAgent(deps, userId)).address : ''
  const action: PlannedAction = { userId, chainId, ...exitFacts(operation, tokens) }
  const data: CancelAllData = {
    operation,
    tokens,
    account,
    agent,
    ahead_ms: clockSkewMs(clock, state.timeMs),
    since_ms: state.timeMs,
    orders,
    resolved: 0,
    outcomes: [],
  }
  return { action, data }
}

/** Returns recent orders of the user's tasks that the list of open orders may not contain yet. */
async function findUnlisted(
  venue: Pick<Hyperliquid, 'order'>,
  account: string,
  recent: readonly RecentOrders[],
  listed: ReadonlyMap<number, CancelTarget>,
): Promise<CancelTarget[]> {
  const young = recent.flatMap(({ resting, tp_oids, sl_oids, asset, symbol }) =>
    [...(resting === null ? [] : [resting]), ...tp_oids, ...sl_oids]
      // A trigger held by the gateway has an id of another format.
      .filter((id) => isVenueOrderId(id) && !listed.has(Number(id)))
      .map((id) => ({ order_id: Number(id), asset, symbol })),
  )
  const known = await Promise.all(young.map(({ order_id: orderId }) => venue.order(account, orderId)))
  return young.filter((_, at) => {
    const order = known[at]
    return !order || phaseOf(order.status) === 'open'
  })
}

export function cancelAllSteps(
  deps: VenueDriverDeps & { venue: OrderLookupSource },
): Steps<CancelAllData, CancelAllStep> {
  const nextTargets = ({ orders, resolved }: CancelAllData) =>
    orders.slice(resolved, resolved + cancelsPerAction)

  const steps: Steps<CancelAllData, CancelAllStep> = oneEffect({
    driver: venueDriver<CancelAllData, OrderCancelled[]>(deps, {
      actionKey: ({ resolved }) => `cancel${resolved}`,
      search: ({ data }) =>
        cancelSearch(deps.venue, {
          account: data.account,
          sinceMs: data.since_ms,
          targets: nextTargets(data),
        }),
      async onRejected(task, outcome) {
        const failure = await rejectedResult(deps, task, outcome)
        return interruptedResult(task.data, failure.error) ?? failure
      },
    }),
    plan({ data }) {
      const targets = nextTargets(data)
      if (targets.length === 0) return cancelAllResult(data.outcomes)
      return {
        ...planOf(data),
        facts: exitFacts(data.operation, data.tokens),
        action: cancelOf(targets),
        onRefused: (fault) => interruptedResult(data, fault) ?? failedBy(fault),
      }
    },
    async settle(task, cancelled, context) {
      const resolved = task.data.resolved + cancelled.length
      const outcomes = [...task.data.outcomes, ...cancelled.map(cancelView)]
      const data = { resolved, outcomes }
      const result = await steps.sign({ ...task, data: { ...task.data, ...data } }, context)
      return {
        ...addToResult(result, { data }),
        rejected: cancelled.every(({ isCancelled }) => !isCancelled),
      }
    },
  })
  return steps
}

const resultOf = (orders: readonly Cancelled[]): JsonObject => ({
  cancelled: orders.filter(({ cancelled }) => cancelled).length,
  not_cancelled: orders.filter(({ cancelled }) => !cancelled).length,
  orders: [...orders],
})

/** Returns the end of a cancel of all orders; if there was nothing to cancel, this counts as a success. */
export function cancelAllResult(outcomes: readonly Cancelled[]): EndResult<Record<never, never>> {
  const result = resultOf(outcomes)
  const left = outcomes.filter(({ cancelled }) => !cancelled)
  if (left.length === 0) return { end: 'completed', outcome: 'executed', result }
  if (left.length < outcomes.length) return { end: 'completed', outcome: 'partial', result }
  const message = `No order could be cancelled; their states are ${[...new Set(left.map(({ venue_status }) => venue_status))].join(', ')}`
  return { ...failed('order_not_cancellable', message), result }
}

/** Returns a result that lists cancelled and open orders, or undefined if no order was cancelled. */
function interruptedResult(
  { orders, resolved, outcomes }: CancelAllData,
  { code, message }: { code: string; message: string },
): FailedResult<Record<never, never>> | undefined {
  if (!outcomes.some(({ cancelled }) => cancelled)) return undefined
  const rest = orders
    .slice(resolved)
    .map((each) => cancelView({ ...each, status: 'open', isCancelled: false }))
  return {
    end: 'failed',
    outcome: 'partial',
    error: { code, message, retryable: true, upstream: upstreamName },
    result: resultOf([...outcomes, ...rest]),
  }
}
