import { type OwnPosition, ownPosition } from '#engines/venue/records/reducible-part.ts'
import { type RestingExit, trimExits } from '#engines/venue/records/trim-exits.ts'
import { fromFixedPoint, fromUnits, toFixedPoint } from '#kernel/money/money.ts'
import { type OpenPosition, priceDecimals } from '#market/strategies/account.ts'
import type { MarketRules } from '#market/strategies/strategy.ts'
import type { OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { StrategyAccount } from './account-store.ts'
import {
  callerBetweenRuns,
  keyOf,
  type LiveCall,
  type LiveCallDeps,
  type Started,
  startCall,
} from './live-calls.ts'
import { leftAssets } from './live-cursor.ts'
import {
  countStops,
  isOpen,
  isStopped,
  lastRunOf,
  marketsOfOpenTasks,
  type OwnOrder,
  openOrdersOf,
  readTasks,
  taskOfKey,
} from './live-records.ts'
import { type StopLookupDeps, withoutEndedStops } from './live-stop-lookup.ts'
import { readVenue } from './live-venue.ts'
import type { StrategyTerms } from './mode-driver.ts'

/**
 * Keeps the orders of a strategy at the venue in line with what it holds, between its runs: nothing rests to enter once a
 * guard has tripped, the strategy was stopped or a kill switch is set, its exits sell no more than its own part, and a
 * position that has a stop keeps one.
 */

export type ProtectionDeps = StopLookupDeps &
  LiveCallDeps & {
    /** Whether a kill switch keeps a user from entering positions at the venue. */
    isTradingPaused(userId: string): Promise<boolean>
  }
type Tending = { account: StrategyAccount; terms: StrategyTerms; nowMs: number }
type AssetProtection = {
  asset: string
  position: OpenPosition | undefined
  own: OwnPosition | undefined
  orders: readonly OwnOrder[]
}
type Need = AssetProtection & { isResting: boolean; isSurplus: boolean; isUnprotected: boolean }

/** An account is looked at this often. */
export const lookMs = 2_500
/** The record of an exit may be closed late, so exits beyond the part are looked up at the venue this often. */
const surplusMs = 10_000
/** What a stream reports may be lost, so the open orders are looked up at the venue this often beside it. */
const stopMs = 60_000

/** Whether one of the looks of this moment is the one in an interval; strategies take turns. */
const isTurn = (strategyId: string, nowMs: number, everyMs: number): boolean =>
  (nowMs + Number.parseInt(strategyId.slice(-4), 16) * 10) % everyMs < lookMs

/** Returns why everything has to end, where a stop can no longer be placed. */
export async function tendOrders(deps: ProtectionDeps, tending: Tending): Promise<string | undefined> {
  const needs = await findNeeds(deps, tending)
  if (needs.length === 0) return undefined
  const { userId, strategyId } = tending.terms
  const last = await lastRunOf(deps.db, strategyId)
  if (!last) return undefined
  const { orders } = await readVenue(deps, { userId, assets: needs.map(({ asset }) => asset) })
  const caller = callerBetweenRuns({
    userId,
    strategyId,
    agentId: last.agent_id,
    scheme: last.scheme,
    executionId: last.execution_id,
  })
  const start = (call: Pick<LiveCall, 'operation' | 'input' | 'name'>) =>
    startCall(deps, {
      ...call,
      name: `${last.execution_id} ${call.name}`,
      caller,
      madeAt: last.started_at,
    })
  let reason: string | undefined
  for (const need of needs)
    reason =
      (await tendAsset(deps, { ...tending, need, orders, lastRunId: last.execution_id, start })) ?? reason
  return reason
}

/** Finds what may be out of line by the record, which is read often, and by the status of each stop. */
async function findNeeds(deps: ProtectionDeps, { account, terms, nowMs }: Tending): Promise<Need[]> {
  const { db } = deps
  const { userId, strategyId, config } = terms
  const assets = Object.keys(config.decision.markets)
  const whose = { userId, strategyId }
  const [orders, busy] = await Promise.all([
    openOrdersOf(db, { ...whose, assets }),
    marketsOfOpenTasks(db, whose),
  ])
  const { guards, account: held } = account.run
  const hasTripped = guards.tripped !== null || guards.trippedToday !== null
  // Where no order rests to enter, there is none to be cancelled, and nobody has to be asked.
  const mayEnter =
    !orders.some(restsToEnter) ||
    !(hasTripped || (await isStopped(db, strategyId)) || (await deps.isTradingPaused(userId)))
  const needs: Need[] = []
  // The venue takes no stop for a part that is too small to be closed.
  const left = leftAssets(account, nowMs)
  for (const asset of assets) {
    const recorded = orders.filter((order) => order.asset === asset)
    const position = left.includes(asset) ? unstopped(held.positions.get(asset)) : held.positions.get(asset)
    // A task that places orders makes the exits fit, or closes the position.
    if (busy.has(asset) || (recorded.length === 0 && !position)) continue
    const ofAsset = position?.stop ? await withoutEndedStops(deps, userId, recorded) : recorded
    const protection = { asset, position, orders: ofAsset }
    const believed = ownOf(position, config.decision.markets[asset])
    const isLookedUp = position?.stop !== undefined && isTurn(strategyId, nowMs, stopMs)
    if (!isLookedUp && !needOf({ ...protection, own: believed }, { mayEnter })) continue
    const own = await ownPosition(db, { userId, symbol: asset, schedule: strategyId })
    const need = needOf({ ...protection, own }, { mayEnter })
    if (need && (need.isResting || need.isUnprotected || isTurn(strategyId, nowMs, surplusMs)))
      needs.push(need)
    else if (isLookedUp && own?.isSettled)
      needs.push({ ...protection, own, isResting: false, isSurplus: false, isUnprotected: true })
  }
  return needs
}

const restsToEnter = ({ reduce_only, trigger_price }: OwnOrder): boolean =>
  !reduce_only && trigger_price === null

const unstopped = (position: OpenPosition | undefined): OpenPosition | undefined => {
  if (!position) return undefined
  const { stop: _stop, ...rest } = position
  return rest
}

/** The part of a position as the account has it, which was brought up to date a moment ago. */
const ownOf = (position: OpenPosition | undefined, rules: MarketRules | undefined): OwnPosition | undefined =>
  position && {
    isLong: position.isLong,
    size: fromUnits(position.sizeUnits, rules?.size_decimals ?? 0),
    isSettled: true,
  }

/** Returns what is out of line in a market; undefined if nothing is. */
export function needOf(protection: AssetProtection, { mayEnter }: { mayEnter: boolean }): Need | undefined {
  const { position, own, orders } = protection
  const units = own ? toFixedPoint(own.size) : 0n
  const covered = coveredUnits(orders)
  const isSettled = own === undefined || own.isSettled
  const isResting = !mayEnter && orders.some(restsToEnter)
  const isWaiting = orders.some(({ reduce_only }) => !reduce_only)
  // The exits of an entry that rests belong to what it will open.
  const isSurplus = isSettled && !isWaiting && covered.all > units
  const isUnprotected = isSettled && units > 0n && position?.stop !== undefined && covered.stops < units
  return isResting || isSurplus || isUnprotected
    ? { ...protection, isResting, isSurplus, isUnprotected }
    : undefined
}

/**
 * Returns how much the exits cover: the stop and the target of one task exclude each other, so the larger of them
 * counts. The venue places the stop of an entry once the entry is filled whole, so it protects nothing while the entry
 * rests.
 */
function coveredUnits(orders: readonly OwnOrder[]): { all: bigint; stops: bigint } {
  const entering = new Set(orders.filter(restsToEnter).map(({ task_id }) => task_id))
  const byTask = new Map<string, bigint>()
  let stops = 0n
  for (const { task_id, leg, size, trigger_price } of orders) {
    if (trigger_price === null) continue
    const units = toFixedPoint(size)
    const most = byTask.get(task_id) ?? 0n
    byTask.set(task_id, units > most ? units : most)
    if (leg.startsWith('sl') && !entering.has(task_id)) stops += units
  }
  return { all: [...byTask.values()].reduce((sum, units) => sum + units, 0n), stops }
}

type AssetTending = Tending & {
  need: Need
  orders: readonly OpenOrder[]
  lastRunId: string
  start: (call: Pick<LiveCall, 'operation' | 'input' | 'name'>) => Promise<Started>
}

async function tendAsset(deps: ProtectionDeps, tending: AssetTending): Promise<string | undefined> {
  const { need, orders, start, nowMs } = tending
  const minute = Math.floor(nowMs / 60_000)
  const own = new Map(need.orders.map((order) => [order.cloid, order]))
  const open = orders.flatMap((order) => {
    const record = order.cloid === null ? undefined : own.get(order.cloid)
    return record ? [{ order, record }] : []
  })
  const cancel = (orderId: number) =>
    start({
      operation: 'perp_cancel',
      input: { order_id: String(orderId) },
      name: `cancel ${orderId} ${minute}`,
    })
  if (need.isResting) for (const { order } of open) if (!order.reduceOnly) await cancel(order.orderId)
  const exits = open.flatMap(({ order, record }): RestingExit[] =>
    order.reduceOnly && order.trigger && order.parentId === null
      ? [
          {
            order_id: order.orderId,
            task_id: record.task_id,
            leg: order.trigger.leg,
            size: order.size,
            trigger_price: order.trigger.price,
          },
        ]
      : [],
  )
  if (need.isUnprotected) return placeStop(deps, tending, exits)
  if (!need.isSurplus) return undefined
  const left = need.own ? toFixedPoint(need.own.size) : 0n
  const { ended, smaller } = trimExits(exits, left)
  if (smaller) {
    const { exit, units } = smaller
    await start({
      operation: 'perp_tp_sl',
      input: {
        asset: need.asset,
        size: fromFixedPoint(units),
        [`${exit.leg}_price`]: exit.trigger_price,
        replace: false,
      },
      name: `exit ${exit.order_id} ${fromFixedPoint(units)} ${minute}`,
    })
    // The next look finds the smaller exit, and ends the others then, so that the position never is without one.
    return undefined
  }
  for (const { order_id } of ended) await cancel(order_id)
  return undefined
}

/** Places the stop of a position again; returns why the position has to end where the venue's price forbids a stop. */
async function placeStop(
  { db }: ProtectionDeps,
  tending: AssetTending,
  exits: readonly RestingExit[],
): Promise<string | undefined> {
  const { need, terms, start } = tending
  const { asset, own, position } = need
  if (!own || !position?.stop) return undefined
  const stops = exits.filter(({ leg }) => leg === 'sl')
  const covered = stops.reduce((sum, { size }) => sum + toFixedPoint(size), 0n)
  const missing = toFixedPoint(own.size) - covered
  if (missing <= 0n) return undefined
  const { userId, strategyId } = terms
  const count = await countStops(db, { userId, strategyId, asset })
  const started = await start({
    operation: 'perp_tp_sl',
    input: {
      asset,
      size: fromFixedPoint(missing),
      sl_price: fromUnits(position.stop.priceUnits, priceDecimals),
      sl_is_market: position.stop.isMarket,
      replace: false,
    },
    name: `stop ${asset} ${count}`,
  })
  if ('refusal' in started) {
    // What is too small for a stop of its own gets one with what still rests to enter.
    const mayGrow = started.refusal.issue === 'below_minimum' && need.orders.some(restsToEnter)
    return mayGrow ? undefined : 'unprotected'
  }
  // Each placement is recorded when it is signed, so an earlier one has another number.
  const earlier = await taskOfKey(db, userId, keyOf(`${tending.lastRunId} stop ${asset} ${count - 1}`))
  const ids = ['taskId' in started ? started.taskId : undefined, earlier].filter((id) => id !== undefined)
  const hasFailed = [...(await readTasks(db, ids)).values()].some(
    (task) => !isOpen(task) && task.outcome !== 'executed',
  )
  return hasFailed ? 'unprotected' : undefined
}
