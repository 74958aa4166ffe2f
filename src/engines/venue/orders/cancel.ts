import type { AddressOf } from '#engines/custody/wallet-store.ts'
import { phaseOf } from '#engines/venue/records/bracket.ts'
import type { cancelRequest } from '#engines/venue/records/contract-schemas.ts'
import { assetKey, bareSymbol, type MarketKind } from '#engines/venue/records/markets.ts'
import { marketOfRecentOrder } from '#engines/venue/records/order-store.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { exactlyOneOf, Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { oneEffect, type Settled } from '#kernel/task/effect-steps.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LegStatus, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { ActionTaskData } from './action-outcome.ts'
import type { LookUpScope } from './confirm-action.ts'
import { failed } from './order-failures.ts'
import { createOrderLookup, type FoundOrder, type OrderLookupSource, readLagMs } from './order-lookup.ts'
import { clockSkewMs, exitFacts, planOf } from './order-task.ts'
import { type AgentDeps, requireAgent, tradeDeadlineMs, venueForExit } from './require-trading-key.ts'
import { type VenueDriverDeps, venueDriver } from './venue-effect.ts'

export type CancelInput = Static<ReturnType<typeof cancelRequest>>
/** The part of the interface that asks for the cancel, such as perp or spot, with its markets. */
export type Section = {
  kind: MarketKind
  operation: string
  /**
   * Finds the market of an order by the market's name at the venue. Returns undefined if the market belongs to another
   * part of the interface, such as spot instead of perp.
   */
  marketOf(order: OpenOrder): Promise<{ symbol: string; asset: number } | undefined>
}
export type CancelAdmissionDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'openOrders' | 'account' | 'order' | 'withUrgency'>
  policy: Pick<Policy, 'check'>
  evmAddressOf: AddressOf
  chainId: string
} & AgentDeps
export type CancelTaskData = ActionTaskData & {
  operation: string
  token: string
  order_id: number
  asset: number
  account: string
  agent: string
  ahead_ms: number
  since_ms?: number
  left?: string
}

function orderIdOf(kind: MarketKind, { order_id, oid }: CancelInput): number {
  if ((order_id === undefined) === (oid === undefined))
    throw exactlyOneOf('order_id', 'oid', { hasBoth: order_id !== undefined })
  const text = String(order_id ?? oid)
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw orderNotFound(kind)
}

const listedBy = { perp: 'perp_orders', spot: 'spot_venue_orders' } as const
const orderNotFound = (kind: MarketKind): Fault => notFound('order', listedBy[kind])

export const admitCancel = (deps: CancelAdmissionDeps, section: Section) =>
  createAdmission({
    policy: deps.policy,
    check: (input: CancelInput, { userId }) => checkCancel(deps, section, input, userId),
    start: ({ data }) => ({ first: 'sign', deadlineMs: tradeDeadlineMs, data, signOnAccept: true }),
  })

/** Looks up the market of the order, because the venue says that an order with a wrong market does not exist. */
async function checkCancel(
  deps: CancelAdmissionDeps,
  { kind, operation, marketOf }: Section,
  input: CancelInput,
  userId: string,
): Promise<{ action: PlannedAction; data: CancelTaskData }> {
  const { db, chainId, clock } = deps
  const orderId = orderIdOf(kind, input)
  const account = await deps.evmAddressOf(userId)
  const venue = await venueForExit(deps, userId)
  const [open, state] = await Promise.all([venue.openOrders(account), venue.account(account)])
  const { order, market } = await locateOrder(
    { db, clock, venue },
    { kind, marketOf },
    { userId, account, orderId, open },
  )
  // An order of another part of the interface, such as spot instead of perp, is cancelled by the operation of that
  // part.
  if (!market) throw orderNotFound(kind)
  const { symbol, asset } = market
  if (input.asset !== undefined && bareSymbol(kind, input.asset).toLowerCase() !== symbol.toLowerCase())
    throw invalid(
      'asset',
      'unsupported_asset',
      `The order is in ${symbol}: send that, or leave \`asset\` out`,
      { asset: symbol },
    )
  const agent = await requireAgent(deps, userId)
  const token = assetKey(kind, symbol)
  const action: PlannedAction = { userId, chainId, ...exitFacts(operation, [token]) }
  const data: CancelTaskData = {
    operation,
    token,
    order_id: orderId,
    asset,
    account,
    agent: agent.address,
    ahead_ms: clockSkewMs(clock, state.timeMs),
    since_ms: state.timeMs,
    ...(order && { left: order.size }),
  }
  return { action, data }
}

type OrderQuery = { userId: string; account: string; orderId: number; open: readonly OpenOrder[] }
type Market = { symbol: string; asset: number }

/** An unlisted order is either too recent for the lists or can no longer be cancelled. */
async function locateOrder(
  { venue, db, clock }: Pick<CancelAdmissionDeps, 'db' | 'clock'> & { venue: Pick<Hyperliquid, 'order'> },
  { kind, marketOf }: Pick<Section, 'kind' | 'marketOf'>,
  { userId, account, orderId, open }: OrderQuery,
): Promise<{ order?: OpenOrder; market: Market | undefined }> {
  const listed = open.find((each) => each.orderId === orderId)
  if (listed) return { order: listed, market: await marketOf(listed) }
  const known = await venue.order(account, orderId)
  if (known && phaseOf(known.status) === 'open')
    return { order: known.order, market: await marketOf(known.order) }
  const ours = await marketOfRecentOrder(db, {
    userId,
    orderId: String(orderId),
    kind,
    since: later(clock.now(), -readLagMs),
  })
  if (ours && !known) return { market: ours }
  if (!known) throw orderNotFound(kind)
  const reason = `its status is ${known.status}`
  throw new Fault(
    'order_not_cancellable',
    `The order cannot be cancelled: ${reason}; \`${listedBy[kind]}\` lists the open ones`,
    {
      extras: { status: known.status, reason },
    },
  )
}

export type CancelOutcome = { status: string; isCancelled: boolean }
type EndLookUp = LookUpScope & {
  account: string
  sinceMs: number
  orderId?: number
  cloid?: string
  /** The open size of the order when its cancel was requested. */
  left?: string | undefined
}

/** Returns the final state of an order, or undefined while it is open or no record shows its end. */
export async function lookUpEnd(
  venue: OrderLookupSource,
  { account, sinceMs, orderId, cloid, left, allRecords, isLast }: EndLookUp,
): Promise<CancelOutcome | undefined> {
  const evidence = createOrderLookup(venue, { account, sinceMs, allRecords })
  const found = await evidence.find({
    ...(cloid !== undefined && { cloid }),
    ...(orderId !== undefined && { orderId }),
  })
  return cancelOutcomeOf(found, { left, isLast })
}

export function cancelOutcomeOf(
  found: FoundOrder | undefined,
  { left, isLast }: { left: string | undefined; isLast: boolean },
): CancelOutcome | undefined {
  const { phase, status, filledSize } = found ?? { phase: 'filling', status: null, filledSize: '0' }
  if (phase === 'filled' || phase === 'cancelled' || phase === 'rejected')
    return { status: status ?? phase, isCancelled: phase !== 'filled' }
  if (!isLast || phase !== 'filling') return undefined
  // The order is in no list any more, so its open size was either filled completely or cancelled.
  const isFilled = left !== undefined && compareDecimals(filledSize, left) >= 0
  return { status: isFilled ? 'filled' : 'canceled', isCancelled: !isFilled }
}

export const cancelOf = (orders: readonly { asset: number; order_id: number }[]) => ({
  type: 'cancel' as const,
  cancels: orders.map(({ asset, order_id: orderId }) => ({ asset, orderId })),
})
export const cancelReplied = ([leg]: LegStatus[]): CancelOutcome | undefined =>
  leg?.type === 'accepted' ? { status: 'canceled', isCancelled: true } : undefined

export const cancelSteps = (deps: VenueDriverDeps & { venue: OrderLookupSource }) =>
  oneEffect({
    driver: venueDriver<CancelTaskData, CancelOutcome>(deps, {
      actionKey: 'cancel',
      search: ({ data: { account, order_id: orderId, since_ms: sinceMs = 0, left } }) => ({
        parseReply: cancelReplied,
        lookUp: (how) => lookUpEnd(deps.venue, { account, sinceMs, orderId, left, ...how }),
      }),
    }),
    plan: ({ data }) => ({
      ...planOf(data),
      facts: exitFacts(data.operation, [data.token]),
      action: cancelOf([data]),
    }),
    settle: ({ data }, ended) => cancelResult(data.order_id, ended),
  })

function cancelResult(
  orderId: number,
  { status, isCancelled }: CancelOutcome,
): Settled<CancelTaskData, 'sign' | 'confirm'> {
  const result = { order_id: String(orderId), venue_status: status }
  if (isCancelled) return { end: 'completed', outcome: 'executed', result }
  const message = `The order could not be cancelled: its status is ${status}`
  return { ...failed('order_not_cancellable', message), rejected: true }
}
