import { confirmCancels, type OrderCancelled } from '#engines/venue/orders/cancel-batch.ts'
import { completeExits, exitsOfReply } from '#engines/venue/orders/entry-outcome.ts'
import { failedBy, rejectedResult, upstreamName } from '#engines/venue/orders/order-failures.ts'
import { createOrderLookup } from '#engines/venue/orders/order-lookup.ts'
import { type PlacedExits, wantedExits } from '#engines/venue/orders/order-task.ts'
import { factsOf, planOf } from '#engines/venue/orders/place-order.ts'
import type { PlaceOrderDeps } from '#engines/venue/orders/place-order-deps.ts'
import { type ActionPlan, cloidOf, type SignedActions } from '#engines/venue/orders/signed-action.ts'
import { exitOrder, type Pricing } from '#engines/venue/orders/venue-orders.ts'
import type { Exit } from '#engines/venue/records/bracket.ts'
import type { Fault } from '#kernel/fault.ts'
import type {
  EffectUpdate,
  EndResult,
  JsonObject,
  Step,
  StepContext,
  StepResult,
  Steps,
  TaskView,
} from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type EarlierExit, earlierExits, type TpSlData } from './tp-sl.ts'

/** Places the exits, and cancels the earlier ones only after the new ones are placed. */

export type TpSlDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince' | 'timeMs' | 'passedMs'>
  signedActions: SignedActions
  pricing: Pricing
} & Pick<PlaceOrderDeps, 'rejections' | 'onAgentRevoked'>

type TpSlStep = 'begin' | 'confirm' | 'replaced'
type TpSlTask = TaskView<TpSlData>
const isPlaced = ({ state }: Exit): boolean => state !== 'missing'

export function tpSlSteps(deps: TpSlDeps): Steps<TpSlData, TpSlStep> {
  const { signedActions, venue, pricing } = deps

  const begin: Step<TpSlData, TpSlStep> = async (task, { now }) => {
    const data = task.data
    const wanted = wantedExits(data)
    const orders = wanted.map((exit) =>
      exitOrder(task.id, data, { ...exit, size: data.size, name: exit.leg }, pricing),
    )
    const plan: ActionPlan = {
      actionKey: 'exits',
      ...planOf(data),
      facts: factsOf(data),
      action: { type: 'order', orders, grouping: data.follows_position ? 'position' : 'none' },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: wanted[at]!.leg, symbol: data.symbol })),
    }
    return signedActions.sign(task, plan, { now, next: 'confirm', onRefused: (fault) => failedBy(fault) })
  }

  const confirmPlacement = (task: TpSlTask, signal: AbortSignal) => {
    const { account, since_ms: sinceMs, ...data } = task.data
    const legs = wantedExits({ ...data, account, since_ms: sinceMs }).map(({ leg }) => leg)
    return signedActions.confirm<Exit[]>({
      task,
      actionKey: 'exits',
      signal,
      parseReply: (replies: LegStatus[]) =>
        replies.length === legs.length ? exitsOfReply(legs, replies) : undefined,
      async lookUp({ allRecords }) {
        const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
        const found = await Promise.all(legs.map((leg) => lookup.find({ cloid: cloidOf(task.id, leg) })))
        return found.some((each) => each !== undefined) ? exitsOfReply(legs, []) : undefined
      },
    })
  }

  const confirm: Step<TpSlData, TpSlStep> = async (task, context) => {
    const { account } = task.data
    let effects: EffectUpdate[] = []
    let { placed } = task.data
    if (!placed) {
      const actionOutcome = await confirmPlacement(task, context.signal)
      effects = actionOutcome.effects
      if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'confirm', actionOutcome)
      if (actionOutcome.type !== 'executed') return rejectedResult(deps, task, actionOutcome)
      placed = { exits: actionOutcome.value, landedAtMs: await venue.timeMs(account) }
    }
    const { exits, isComplete } = await completeExits(venue, task, { ...placed, signal: context.signal })
    if (!isComplete) {
      const waiting = signedActions.pollLater(task, 'confirm', { effects })
      const known: PlacedExits = { ...placed, exits }
      return { ...waiting, data: { ...waiting.data, placed: known } }
    }
    if (!exits.some(isPlaced)) return allMissing(task, exits, effects)
    return replaceEarlier(task, context, exits, effects)
  }

  const replaceEarlier = async (
    task: TpSlTask,
    { now }: StepContext,
    exits: Exit[],
    effects: EffectUpdate[],
  ): Promise<StepResult<TpSlData, TpSlStep>> => {
    const data = task.data
    const placedExits = exits.filter(isPlaced)
    const legs = placedExits.map(({ leg }) => leg)
    const placed = new Set(placedExits.flatMap(({ orderId }) => orderId ?? []))
    const earlier = data.replace
      ? await earlierExits(deps, data, { userId: task.userId, now, legs, placed })
      : []
    if (earlier.length === 0) return finish(task, { exits, replaced: [] }, effects)
    const plan: ActionPlan = {
      actionKey: 'replaced',
      ...planOf(data),
      facts: factsOf(data),
      action: {
        type: 'cancel',
        cancels: earlier.map(({ order_id: orderId }) => ({ asset: data.asset, orderId })),
      },
    }
    const known: PlacedExits = { exits, landedAtMs: 0 }
    return signedActions.sign(task, plan, {
      now,
      next: 'replaced',
      data: { placed: known, earlier },
      effects,
      onRefused: (fault: Fault) => notReplaced(task, fault, { exits, earlier, effects }),
    })
  }

  const replaced: Step<TpSlData, TpSlStep> = async (task, { signal }) => {
    const { account, since_ms: sinceMs, asset, symbol } = task.data
    const { placed, earlier = [] } = task.data
    const { exits } = placed!
    const targets = earlier.map(({ order_id }) => ({ order_id, asset, symbol }))
    const actionOutcome = await confirmCancels(deps, {
      task,
      actionKey: 'replaced',
      signal,
      account,
      sinceMs,
      targets,
    })
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'replaced',
      executed: (cancelled, effects) => finish(task, { exits, replaced: cancelled }, effects),
      async notExecuted(outcome) {
        const { error } = await rejectedResult(deps, task, outcome)
        return notReplaced(task, error, { exits, earlier, effects: outcome.effects })
      },
    })
  }

  return { begin, confirm, replaced }
}

const idsOf = (exits: readonly Exit[], leg: Exit['leg']): string[] =>
  exits
    .filter((exit) => exit.leg === leg && isPlaced(exit) && exit.orderId !== null)
    .map(({ orderId }) => String(orderId))

type ReplacedView = { order_id: string; leg: string; cancelled: boolean; venue_status: string }

function resultOf(task: TpSlTask, exits: readonly Exit[], replaced: ReplacedView[]): JsonObject {
  const { symbol, size, follows_position } = task.data
  return {
    asset: symbol,
    size,
    follows_position,
    tp_oids: idsOf(exits, 'tp'),
    sl_oids: idsOf(exits, 'sl'),
    replaced,
    legs: exits.map(({ leg, orderId, state, error }) => ({
      role: leg,
      order_id: orderId === null ? null : String(orderId),
      cloid: cloidOf(task.id, leg),
      status: state,
      error,
    })),
  }
}

type TpSlOutcome = { exits: Exit[]; replaced: readonly OrderCancelled[] }

function finish(
  task: TpSlTask,
  { exits, replaced }: TpSlOutcome,
  effects: EffectUpdate[],
): EndResult<Partial<TpSlData>> {
  const legs = new Map((task.data.earlier ?? []).map(({ order_id: id, leg }) => [id, leg]))
  const views = replaced.map(({ order_id: id, isCancelled, status }) => ({
    order_id: String(id),
    leg: legs.get(id) ?? 'sl',
    cancelled: isCancelled,
    venue_status: status,
  }))
  const result = resultOf(task, exits, views)
  const missing = exits.find((exit) => !isPlaced(exit))
  const open = views.find(({ venue_status: status }) => status === 'open')
  if (!missing && !open) return { end: 'completed', outcome: 'executed', result, effects }
  const message = missing
    ? `The ${missing.leg} was not placed and the earlier exits are still open: ${missing.error}`
    : `The earlier ${open!.leg} ${open!.order_id} is still open in addition to the new one: cancel it`
  return {
    end: 'failed',
    outcome: 'partial',
    error: { code: 'venue_rejected', message, retryable: false, upstream: upstreamName },
    result,
    effects,
  }
}

function allMissing(
  task: TpSlTask,
  exits: readonly Exit[],
  effects: EffectUpdate[],
): EndResult<Partial<TpSlData>> {
  const message = `The venue rejected the exits and the earlier ones are still open: ${exits[0]?.error}`
  return {
    end: 'failed',
    outcome: 'not_executed',
    error: { code: 'venue_rejected', message, retryable: false, upstream: upstreamName },
    result: resultOf(task, exits, []),
    effects: effects.map((each) => ({ ...each, status: 'rejected' as const })),
  }
}

type Replacement = { exits: readonly Exit[]; earlier: readonly EarlierExit[]; effects: EffectUpdate[] }

/** The new exits are placed and the earlier ones still open: too much protection, never too little. */
function notReplaced(
  task: TpSlTask,
  { code, message }: { code: string; message: string },
  { exits, earlier, effects }: Replacement,
): EndResult<Partial<TpSlData>> {
  const remaining = earlier.map(({ order_id: id, leg }) => ({
    order_id: String(id),
    leg,
    cancelled: false,
    venue_status: 'open',
  }))
  return {
    end: 'failed',
    outcome: 'partial',
    error: {
      code,
      message: `The new exits are placed; the earlier ones could not be cancelled: ${message}`,
      retryable: false,
      upstream: upstreamName,
    },
    result: resultOf(task, exits, remaining),
    effects,
  }
}
