import { type ActPlan, cloidOf, type VenueActs } from '#features/venue/act.ts'
import type { Exit } from '#features/venue/bracket.ts'
import { type OrderCancelled, settleCancels } from '#features/venue/cancel-many.ts'
import { completeExits, exitsOfReply, type PlacedExits } from '#features/venue/entry-outcome.ts'
import { exitOrder, type Pricing } from '#features/venue/exits.ts'
import { memoryOf, wantedExits } from '#features/venue/memory.ts'
import { gatherEvidence } from '#features/venue/order-evidence.ts'
import { factsOf, failedBy, type PlaceNeeds, planOf, refusedBy, upstreamName } from '#features/venue/place.ts'
import type { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type EarlierExit, earlierExits, type TpSlData } from './tp-sl.ts'

/** Places the exits, and cancels those that they replace only when the new ones stand. */

export type TpSlDeps = {
  on: Queryable
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince' | 'timeMs' | 'passedMs'>
  acts: VenueActs
  pricing: Pricing
} & Pick<PlaceNeeds, 'refusals' | 'agentLost'>

const dataOf = (task: TaskView) => memoryOf(task) as TpSlData
const placedOf = (task: TaskView) => task.data.placed as unknown as PlacedExits | undefined
const earlierOf = (task: TaskView) => (task.data.earlier ?? []) as unknown as EarlierExit[]
const stands = ({ state }: Exit): boolean => state !== 'gone'

export function tpSlSteps(deps: TpSlDeps): Record<'begin' | 'confirm' | 'replaced', Step> {
  const { acts, venue, pricing } = deps

  const begin: Step = async (task, { now }) => {
    const data = dataOf(task)
    const wanted = wantedExits(data)
    const orders = wanted.map((exit) =>
      exitOrder(task.id, data, { ...exit, size: data.size, name: exit.leg }, pricing),
    )
    const plan: ActPlan = {
      leg: 'exits',
      ...planOf(data),
      facts: factsOf(data),
      action: { type: 'order', orders, grouping: data.whole ? 'position' : 'none' },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: wanted[at]!.leg, symbol: data.symbol })),
    }
    return acts.intend(task, plan, { now, next: 'confirm', refused: (fault) => failedBy(fault) })
  }

  const settlePlacement = (task: TaskView, signal: AbortSignal) => {
    const { account, since_ms: sinceMs, ...data } = dataOf(task)
    const legs = wantedExits({ ...data, account, since_ms: sinceMs }).map(({ leg }) => leg)
    return acts.settle<Exit[]>({
      task,
      leg: 'exits',
      signal,
      read: (said: LegStatus[]) => (said.length === legs.length ? exitsOfReply(legs, said) : undefined),
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        const found = await Promise.all(legs.map((leg) => evidence.find({ cloid: cloidOf(task.id, leg) })))
        return found.some((each) => each !== undefined) ? exitsOfReply(legs, []) : undefined
      },
    })
  }

  const confirm: Step = async (task, context) => {
    const { account } = dataOf(task)
    let effects: EffectUpdate[] = []
    let placed = placedOf(task)
    if (!placed) {
      const verdict = await settlePlacement(task, context.signal)
      effects = verdict.effects
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
      if (verdict.is !== 'done') return refusedBy(deps, task, verdict)
      placed = { exits: verdict.value, landedAtMs: await venue.timeMs(account) }
    }
    const { exits, isComplete } = await completeExits(venue, task, { ...placed, signal: context.signal })
    if (!isComplete) {
      const waiting = acts.wait(task, 'confirm', { effects })
      const known: PlacedExits = { ...placed, exits }
      return { ...waiting, data: { ...waiting.data, placed: known as unknown as JsonObject } }
    }
    if (!exits.some(stands)) return allMissing(task, exits, effects)
    return replaceEarlier(task, context, exits, effects)
  }

  const replaceEarlier = async (
    task: TaskView,
    { now }: StepContext,
    exits: Exit[],
    effects: EffectUpdate[],
  ): Promise<StepResult> => {
    const data = dataOf(task)
    const standing = exits.filter(stands)
    const legs = standing.map(({ leg }) => leg)
    const placed = new Set(standing.flatMap(({ orderId }) => orderId ?? []))
    const earlier = data.replace
      ? await earlierExits(deps, data, { userId: task.userId, now, legs, placed })
      : []
    if (earlier.length === 0) return finish(task, { exits, replaced: [] }, effects)
    const plan: ActPlan = {
      leg: 'replaced',
      ...planOf(data),
      facts: factsOf(data),
      action: {
        type: 'cancel',
        cancels: earlier.map(({ order_id: orderId }) => ({ asset: data.asset, orderId })),
      },
    }
    const known: PlacedExits = { exits, landedAtMs: 0 }
    return acts.intend(task, plan, {
      now,
      next: 'replaced',
      data: { placed: known as unknown as JsonObject, earlier },
      effects,
      refused: (fault: Fault) => notReplaced(task, exits, earlier, fault, effects),
    })
  }

  const replaced: Step = async (task, { signal }) => {
    const { account, since_ms: sinceMs, asset, symbol } = dataOf(task)
    const { exits } = placedOf(task)!
    const earlier = earlierOf(task)
    const targets = earlier.map(({ order_id }) => ({ order_id, asset, symbol }))
    const verdict = await settleCancels(deps, { task, leg: 'replaced', signal, account, sinceMs, targets })
    if (verdict.is === 'doubt') return acts.wait(task, 'replaced', verdict)
    if (verdict.is === 'done') return finish(task, { exits, replaced: verdict.value }, verdict.effects)
    const lost = await refusedBy(deps, task, verdict)
    const error = 'error' in lost ? lost.error : { code: 'venue_rejected', message: verdict.message }
    return notReplaced(task, exits, earlier, error, verdict.effects)
  }

  return { begin, confirm, replaced }
}

const idsOf = (exits: readonly Exit[], leg: Exit['leg']): string[] =>
  exits
    .filter((exit) => exit.leg === leg && stands(exit) && exit.orderId !== null)
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

type Found = { exits: Exit[]; replaced: readonly OrderCancelled[] }

function finish(task: TaskView, { exits, replaced }: Found, effects: EffectUpdate[]): StepResult {
  const legs = new Map(earlierOf(task).map(({ order_id: id, leg }) => [id, leg]))
  const told = replaced.map(({ order_id: id, isCancelled, status }) => ({
    order_id: String(id),
    leg: legs.get(id) ?? 'sl',
    cancelled: isCancelled,
    venue_status: status,
  }))
  const result = resultOf(task, exits, told)
  const missing = exits.find((exit) => !stands(exit))
  const open = told.find(({ venue_status: status }) => status === 'open')
  if (!missing && !open) return { end: 'completed', outcome: 'executed', result, effects }
  const message = missing
    ? `The ${missing.leg} is missing, and earlier ones were kept: ${missing.error}`
    : `The earlier ${open!.leg} ${open!.order_id} is still open beside the new one`
  return {
    end: 'failed',
    outcome: 'partial',
    error: { code: 'venue_rejected', message, retryable: false, upstream: upstreamName },
    result,
    effects,
  }
}

function allMissing(task: TaskView, exits: readonly Exit[], effects: EffectUpdate[]): StepResult {
  const message = `The venue refused the exits, and earlier ones were kept: ${exits[0]?.error}`
  return {
    end: 'failed',
    outcome: 'not_executed',
    error: { code: 'venue_rejected', message, retryable: false, upstream: upstreamName },
    result: resultOf(task, exits, []),
    effects: effects.map((each) => ({ ...each, status: 'rejected' as const })),
  }
}

/** The new exits stand, and so do those that they were to replace: too much protection, and never too little. */
function notReplaced(
  task: TaskView,
  exits: readonly Exit[],
  earlier: readonly EarlierExit[],
  { code, message }: { code: string; message: string },
  effects: EffectUpdate[],
): StepResult {
  const kept = earlier.map(({ order_id: id, leg }) => ({
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
      message: `The new exits stand; the earlier ones could not be cancelled: ${message}`,
      retryable: false,
      upstream: upstreamName,
    },
    result: resultOf(task, exits, kept),
    effects,
  }
}
