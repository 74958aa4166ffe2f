import { confirmCancels, type OrderCancelled } from '#engines/venue/orders/cancel-batch.ts'
import { completeExits, exitsOfReply, type PlacedExits } from '#engines/venue/orders/entry-outcome.ts'
import { createOrderLookup } from '#engines/venue/orders/order-lookup.ts'
import { taskDataOf, wantedExits } from '#engines/venue/orders/order-task.ts'
import { factsOf, failedBy, planOf, rejectedResult, upstreamName } from '#engines/venue/orders/place-order.ts'
import type { PlaceOrderDeps } from '#engines/venue/orders/place-order-deps.ts'
import { exitOrder, type Pricing } from '#engines/venue/orders/protective-orders.ts'
import { type ActionPlan, cloidOf, type SignedActions } from '#engines/venue/orders/signed-action.ts'
import type { Exit } from '#engines/venue/records/bracket.ts'
import type { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
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

const dataOf = (task: TaskView) => taskDataOf(task) as TpSlData
const placedOf = (task: TaskView) => task.data.placed as unknown as PlacedExits | undefined
const earlierOf = (task: TaskView) => (task.data.earlier ?? []) as unknown as EarlierExit[]
const isPlaced = ({ state }: Exit): boolean => state !== 'missing'

export function tpSlSteps(deps: TpSlDeps): Record<'begin' | 'confirm' | 'replaced', Step> {
  const { signedActions, venue, pricing } = deps

  const begin: Step = async (task, { now }) => {
    const data = dataOf(task)
    const wanted = wantedExits(data)
    const orders = wanted.map((exit) =>
      exitOrder(task.id, data, { ...exit, size: data.size, name: exit.leg }, pricing),
    )
    const plan: ActionPlan = {
      actionKey: 'exits',
      ...planOf(data),
      facts: factsOf(data),
      action: { type: 'order', orders, grouping: data.whole ? 'position' : 'none' },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: wanted[at]!.leg, symbol: data.symbol })),
    }
    return signedActions.sign(task, plan, { now, next: 'confirm', onRefused: (fault) => failedBy(fault) })
  }

  const confirmPlacement = (task: TaskView, signal: AbortSignal) => {
    const { account, since_ms: sinceMs, ...data } = dataOf(task)
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

  const confirm: Step = async (task, context) => {
    const { account } = dataOf(task)
    let effects: EffectUpdate[] = []
    let placed = placedOf(task)
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
      return { ...waiting, data: { ...waiting.data, placed: known as unknown as JsonObject } }
    }
    if (!exits.some(isPlaced)) return allMissing(task, exits, effects)
    return replaceEarlier(task, context, exits, effects)
  }

  const replaceEarlier = async (
    task: TaskView,
    { now }: StepContext,
    exits: Exit[],
    effects: EffectUpdate[],
  ): Promise<StepResult> => {
    const data = dataOf(task)
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
      data: { placed: known as unknown as JsonObject, earlier },
      effects,
      onRefused: (fault: Fault) => notReplaced(task, fault, { exits, earlier, effects }),
    })
  }

  const replaced: Step = async (task, { signal }) => {
    const { account, since_ms: sinceMs, asset, symbol } = dataOf(task)
    const { exits } = placedOf(task)!
    const earlier = earlierOf(task)
    const targets = earlier.map(({ order_id }) => ({ order_id, asset, symbol }))
    const actionOutcome = await confirmCancels(deps, {
      task,
      actionKey: 'replaced',
      signal,
      account,
      sinceMs,
      targets,
    })
    if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'replaced', actionOutcome)
    if (actionOutcome.type === 'executed')
      return finish(task, { exits, replaced: actionOutcome.value }, actionOutcome.effects)
    const rejection = await rejectedResult(deps, task, actionOutcome)
    const error =
      'error' in rejection ? rejection.error : { code: 'venue_rejected', message: actionOutcome.message }
    return notReplaced(task, error, { exits, earlier, effects: actionOutcome.effects })
  }

  return { begin, confirm, replaced }
}

const idsOf = (exits: readonly Exit[], leg: Exit['leg']): string[] =>
  exits
    .filter((exit) => exit.leg === leg && isPlaced(exit) && exit.orderId !== null)
    .map(({ orderId }) => String(orderId))

type ReplacedView = { order_id: string; leg: string; cancelled: boolean; venue_status: string }

function resultOf(task: TaskView, exits: readonly Exit[], replaced: ReplacedView[]): JsonObject {
  const { symbol, size, whole } = dataOf(task)
  return {
    asset: symbol,
    size,
    follows_position: whole,
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

function finish(task: TaskView, { exits, replaced }: TpSlOutcome, effects: EffectUpdate[]): StepResult {
  const legs = new Map(earlierOf(task).map(({ order_id: id, leg }) => [id, leg]))
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

function allMissing(task: TaskView, exits: readonly Exit[], effects: EffectUpdate[]): StepResult {
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
  task: TaskView,
  { code, message }: { code: string; message: string },
  { exits, earlier, effects }: Replacement,
): StepResult {
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
