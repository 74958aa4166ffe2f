import { deriveCloid } from '#engines/venue/orders/action-outcome.ts'
import { readLagMs } from '#engines/venue/orders/order-lookup.ts'
import { fillViews, type OrderOutcome } from '#engines/venue/orders/order-result.ts'
import type { OrderTaskData } from '#engines/venue/orders/order-task.ts'
import type { OrderEnd, OrderStep } from '#engines/venue/orders/place-order-deps.ts'
import { type ExitLeg, sumFills } from '#engines/venue/records/bracket.ts'
import { partAfter } from '#engines/venue/records/reducible-part.ts'
import { later } from '#kernel/clock.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import type { JsonObject, StepContext, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { SpotDeps } from './deps.ts'
import { requireKnownSpotMarket } from './spot-markets.ts'
import {
  type ArmedTrigger,
  armedTriggersIn,
  cancelArmedTriggers,
  insertTriggers,
  triggerId,
  trimTriggers,
} from './trigger-store.ts'

/** The gateway holds all exits of a purchase, or only those that the venue rejected. */

export type GatewayExit = { leg: ExitLeg; price: string }
export type SpotOrderTaskData = OrderTaskData & {
  gateway_exits: GatewayExit[]
  /** The armed triggers of a sold token, which are cancelled once the balance shows the sale. */
  exits_checked?: string[]
  /** The outcome of the order before the sibling of a rejected exit is cancelled. */
  order_outcome?: OrderOutcome
}
export type SpotOrderTask = TaskView<SpotOrderTaskData>
export type SpotOrderStep = OrderStep | 'siblings_cancelled'

type HeldExits = {
  orderOutcome: OrderOutcome
  result: OrderEnd
  gatewayExits: readonly GatewayExit[]
}

export function withGatewayTriggers(
  task: SpotOrderTask,
  now: Date,
  { orderOutcome, result, gatewayExits }: HeldExits,
): OrderEnd {
  const { entry, exits: placed, fills } = orderOutcome
  if (gatewayExits.length === 0) return result
  const { symbol, size: wanted, price } = task.data
  const rests = entry.status === 'resting'
  const orderId = entry.orderId === null ? null : String(entry.orderId)
  const resultView = (result.result ?? {}) as JsonObject & { legs?: JsonObject[] }
  const idsOf = (leg: ExitLeg) =>
    gatewayExits.filter((each) => each.leg === leg).map(() => triggerId(task.id, leg))
  const venueExits = placed
    .filter(({ state }) => state !== 'missing')
    .map(({ leg, orderId: id }) => ({ leg, id }))
  const all = (leg: ExitLeg) => [
    ...venueExits.filter((each) => each.leg === leg && each.id !== null).map(({ id }) => String(id)),
    ...idsOf(leg),
  ]
  const gatewayLegs = gatewayExits.map(({ leg }) => ({
    role: leg,
    order_id: triggerId(task.id, leg),
    status: rests ? 'waiting' : 'open',
    error: null,
  }))
  const legs = [...(resultView.legs ?? []).filter(({ status }) => status !== 'missing'), ...gatewayLegs]
  return {
    ...result,
    result: { ...resultView, tp_oids: all('tp'), sl_oids: all('sl'), legs },
    writes: (tx) =>
      insertTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        executionId: task.executionId,
        symbol,
        exits: gatewayExits,
        at: now,
        size: rests ? wanted : sumFills(fills).size,
        entry: rests ? { cloid: deriveCloid(task.executionId, 'entry'), orderId, price } : null,
      }),
  }
}

/**
 * Whether every read of the balance includes the purchase that the trigger protects, because the read lag has passed.
 * This is unknown for a resting entry, whose fill time is not recorded.
 */
const isVisible = ({ entry_cloid, created_at }: ArmedTrigger, now: Date): boolean =>
  entry_cloid === null && later(created_at, readLagMs) <= now

type SpotOrderResult = StepResultOf<Partial<SpotOrderTaskData>, SpotOrderStep>
type Trimmed = OrderEnd | (SpotOrderResult & { park: object })

/**
 * After a sale of a run, fits the triggers of its schedule to what the schedule still holds. The fills are stored
 * first, so that what is left follows from them whether or not they are imported already.
 */
async function withOwnTriggersTrimmed(
  db: Queryable,
  { id: taskId, userId, data }: SpotOrderTask,
  { fills }: OrderOutcome,
  result: OrderEnd,
): Promise<Trimmed> {
  const { own_part: part, symbol } = data
  if (!part) return result
  if (!data.fills)
    return {
      park: { afterMs: 0, next: 'confirm' },
      state: 'settling',
      data: { fills: fillViews(fills) },
      ...(result.effects && { effects: result.effects }),
    }
  const left = await partAfter(db, { userId, taskId, data })
  const writes = (tx: Tx) => trimTriggers(tx, { userId, symbol, schedule: part.schedule, left })
  return { ...result, writes }
}

type CompleteOrder = { orderOutcome: OrderOutcome; end: OrderEnd }

/**
 * Returns a function that adds the exits of a purchase, and cancels those of a token that was sold completely. If the
 * balance may be older than a purchase or the sale, it is read again after the read lag.
 */
export function createTriggerUpdate({ db, venue, pricing }: Pick<SpotDeps, 'db' | 'venue' | 'pricing'>) {
  const isHoldingSold = async ({ account, symbol }: SpotOrderTaskData): Promise<boolean> => {
    const market = await requireKnownSpotMarket(venue, symbol)
    const balances = await venue.spotBalances(account, [market.base])
    const total = balances.find(({ coin }) => coin === market.base)?.total ?? '0'
    return pricing.roundSize(total, market) === '0'
  }
  const isSoldOut = async (
    { held_before, symbol }: SpotOrderTaskData,
    { fills }: OrderOutcome,
  ): Promise<boolean> => {
    if (!held_before) return false
    const left = toFixedPoint(held_before.total) - toFixedPoint(sumFills(fills).size)
    return (
      left <= 0n ||
      pricing.roundSize(fromFixedPoint(left), await requireKnownSpotMarket(venue, symbol)) === '0'
    )
  }
  return async (
    task: SpotOrderTask,
    { now }: StepContext,
    { orderOutcome, end: result }: CompleteOrder,
  ): Promise<SpotOrderResult> => {
    const taskData = task.data
    if (taskData.is_buy)
      return withGatewayTriggers(task, now, { orderOutcome, result, gatewayExits: taskData.gateway_exits })
    if (orderOutcome.entry.status === 'resting') return result
    const own = await withOwnTriggersTrimmed(db, task, orderOutcome, result)
    if ('park' in own) return own
    const checked = taskData.exits_checked
    const cancelExits = (ids: readonly string[]): OrderEnd => ({
      ...result,
      writes: (tx) => cancelArmedTriggers(tx, ids),
    })
    if (checked) return (await isHoldingSold(taskData)) ? cancelExits(checked) : own
    // The triggers are listed before the balance is read, so that a purchase in between keeps its exits.
    const armed = await armedTriggersIn(db, task.userId, taskData.symbol)
    if (armed.length === 0) return own
    const ids = armed.map(({ id }) => id)
    const isNoneShown = await isHoldingSold(taskData)
    if (isNoneShown && armed.every((each) => isVisible(each, now))) return cancelExits(ids)
    if (!isNoneShown && !(await isSoldOut(taskData, orderOutcome))) return own
    return {
      park: { afterMs: readLagMs, next: 'confirm' },
      state: 'settling',
      data: { exits_checked: ids },
      ...(result.effects && { effects: result.effects }),
    }
  }
}
