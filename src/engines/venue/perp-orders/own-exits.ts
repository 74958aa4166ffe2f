import { cancelOf } from '#engines/venue/orders/cancel.ts'
import { cancelSearch, type OrderCancelled } from '#engines/venue/orders/cancel-batch.ts'
import type { Pricing } from '#engines/venue/orders/order-checks.ts'
import type { OrderLookupSource } from '#engines/venue/orders/order-lookup.ts'
import { factsOf, type PlacedExits, planOf } from '#engines/venue/orders/order-task.ts'
import { exitsPlan, exitsSearch } from '#engines/venue/orders/place-exits.ts'
import type { OrderEnd } from '#engines/venue/orders/place-order-deps.ts'
import { type VenueDriverDeps, type VenuePlan, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import { partAfter, placedExits } from '#engines/venue/records/reducible-part.ts'
import { type RestingExit, trimExits } from '#engines/venue/records/trim-exits.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import { createEffect, type EffectStep } from '#kernel/task/effect-steps.ts'
import type { StepResult, StepResultOf } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpOrderTask, PerpOrderTaskData } from './unwind-unprotected-entry.ts'

/**
 * When a run has closed its part, the exits that the schedule has placed for it end, so that they sell nothing of what
 * the user owns. Where a part is left, one exit of its size is placed before they end.
 */

export type OwnExitsStep = 'own_exits' | 'own_exit_placed' | 'own_exits_end' | 'own_exits_ended'
type OwnExitsResult = StepResult<PerpOrderTaskData, OwnExitsStep>
export type OwnExitsDeps = VenueDriverDeps & {
  db: Queryable
  venue: OrderLookupSource & Pick<Hyperliquid, 'openOrders'>
  pricing: Pricing
}

/** Continues the close of a run with the exits of what it has closed; any other order ends. */
export const endOrTrim = (
  { data }: PerpOrderTask,
  result: OrderEnd,
): StepResultOf<Partial<PerpOrderTaskData>, OwnExitsStep> =>
  data.own_part && result.end === 'completed' && result.result && !result.result.resting
    ? {
        next: 'own_exits',
        state: 'settling',
        data: { ...result.data, closed_end: { outcome: result.outcome, result: result.result } },
        ...(result.effects && { effects: result.effects }),
      }
    : result

export function ownExitsSteps(
  deps: OwnExitsDeps,
): Record<OwnExitsStep, EffectStep<PerpOrderTaskData, OwnExitsStep>> {
  const ending = endingEffect(deps)
  const placement = createEffect({
    steps: { sign: 'own_exits', confirm: 'own_exit_placed' },
    driver: venueDriver<PerpOrderTaskData, PlacedExits, OwnExitsStep>(deps, {
      actionKey: 'own_exit',
      search: (task) => exitsSearch(deps.venue, task, { legs: legsOf(task.data), placed: undefined }),
      // The exits end in any case: they would sell more than what is left.
      onRejected: (task, _outcome, context) => ending.sign(task, context),
    }),
    async plan(task, context): Promise<VenuePlan<PerpOrderTaskData, OwnExitsStep> | OwnExitsResult> {
      const change = await findExits(deps, task)
      const found = { ...task, data: { ...task.data, ...change } }
      if (legsOf(found.data).length === 0) return ending.sign(found, context)
      return {
        ...exitsPlan(exitTask(found), deps.pricing, { size: change.own_exit!.size, grouping: 'none' }),
        data: change,
        onRefused: () => ({ next: 'own_exits_end', state: 'settling', data: change }),
      }
    },
    settle: (task, _placed, context) => ending.sign(task, context),
  })
  return {
    own_exits: placement.sign,
    own_exit_placed: placement.confirm,
    own_exits_end: ending.sign,
    own_exits_ended: ending.confirm,
  }
}

const legsOf = ({ own_exit: exit }: PerpOrderTaskData) => (exit ? [exit.leg] : [])

/** The exit has the side of the close, whose data have none of their own. */
function exitTask(task: PerpOrderTask): PerpOrderTask {
  const { data } = task
  const exit = data.own_exit!
  const wanted = { price: exit.trigger_price, isMarket: true }
  return { ...task, data: { ...data, is_buy: !data.is_buy, [exit.leg]: wanted } }
}

type Found = Required<Pick<PerpOrderTaskData, 'own_exits_ended'>> & Pick<PerpOrderTaskData, 'own_exit'>

async function findExits({ db, venue }: OwnExitsDeps, task: PerpOrderTask): Promise<Found> {
  const { id: taskId, userId, data } = task
  const { own_part: part, market, symbol, is_buy: isBuy } = data
  const placed = part
    ? await placedExits(db, { userId, market, symbol, isBuy, schedule: part.schedule })
    : new Map<string, string>()
  if (placed.size === 0) return { own_exits_ended: [] }
  const [left, open] = await Promise.all([
    partAfter(db, { userId, taskId, data }),
    venue.openOrders(data.account),
  ])
  const exits = open.flatMap(({ orderId, cloid, size, trigger, parentId }): RestingExit[] => {
    const task_id = placed.get(cloid ?? '')
    // An exit with a parent waits for an entry that has not filled.
    return task_id && trigger && parentId === null
      ? [{ order_id: orderId, task_id, leg: trigger.leg, size, trigger_price: trigger.price }]
      : []
  })
  const { ended, smaller } = trimExits(exits, toFixedPoint(left))
  return {
    own_exits_ended: ended,
    ...(smaller && { own_exit: { ...smaller.exit, size: fromFixedPoint(smaller.units) } }),
  }
}

const endingEffect = (deps: OwnExitsDeps) =>
  createEffect({
    steps: { sign: 'own_exits_end', confirm: 'own_exits_ended' },
    driver: venueDriver<PerpOrderTaskData, OrderCancelled[], OwnExitsStep>(deps, {
      actionKey: 'own_exits_ended',
      search: ({ data: { account, since_ms: sinceMs, asset, symbol, own_exits_ended: ended = [] } }) =>
        cancelSearch(deps.venue, {
          account,
          sinceMs,
          targets: ended.map(({ order_id, size: left }) => ({ order_id, asset, symbol, left })),
        }),
      onRejected: (task) => closedEnd(task),
    }),
    plan(task): VenuePlan<PerpOrderTaskData, OwnExitsStep> | OwnExitsResult {
      const { data } = task
      const { own_exits_ended: ended = [], own_exit } = data
      if (ended.length === 0) return closedEnd(task)
      const cancels = ended.map(({ order_id }) => ({ asset: data.asset, order_id }))
      return {
        ...planOf(data),
        facts: factsOf(data),
        action: cancelOf(cancels),
        data: { own_exits_ended: ended, ...(own_exit && { own_exit }) },
        onRefused: () => closedEnd(task),
      }
    },
    settle: (task) => closedEnd(task),
  })

/** Ends the task with what its close has done. */
function closedEnd({ id, data: { closed_end: end } }: PerpOrderTask): OwnExitsResult {
  if (!end) throw new Error(`task ${id} has no stored end of its close`)
  return { end: 'completed', outcome: end.outcome, result: end.result }
}
