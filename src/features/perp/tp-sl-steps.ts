import { deriveCloid } from '#engines/venue/orders/action-outcome.ts'
import { cancelOf } from '#engines/venue/orders/cancel.ts'
import { cancelSearch, type OrderCancelled } from '#engines/venue/orders/cancel-batch.ts'
import type { Pricing } from '#engines/venue/orders/order-checks.ts'
import { failed, rejectedResult, upstreamName } from '#engines/venue/orders/order-failures.ts'
import { exitOrderIds } from '#engines/venue/orders/order-result.ts'
import { factsOf, type PlacedExits, planOf, wantedExits } from '#engines/venue/orders/order-task.ts'
import { completePlacement, exitsBefore, exitsPlan, exitsSearch } from '#engines/venue/orders/place-exits.ts'
import { type VenueDriverDeps, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import type { Exit } from '#engines/venue/records/bracket.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { EndResult, JsonObject, Step, Steps, TaskView } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { earlierExits, type TpSlData } from './tp-sl.ts'

/** The earlier exits are cancelled only after the new ones are placed, so that protection never falls short. */

export type TpSlDeps = VenueDriverDeps & {
  db: Queryable
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince' | 'timeMs' | 'passedMs'>
  pricing: Pricing
}

type TpSlStep = 'sign' | 'confirm' | 'replace' | 'replaced'
type TpSlTask = TaskView<TpSlData>
const isPlaced = ({ state }: Exit): boolean => state !== 'missing'

export function tpSlSteps(deps: TpSlDeps): Steps<TpSlData, TpSlStep> {
  const replacement = replacementEffect(deps)
  const placement = placementEffect(deps, replacement.sign)
  return { ...placement, replace: replacement.sign, replaced: replacement.confirm }
}

const placementEffect = (deps: TpSlDeps, replace: Step<TpSlData, TpSlStep>) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: venueDriver<TpSlData, PlacedExits, TpSlStep>(deps, {
      actionKey: 'exits',
      search: (task) =>
        exitsSearch(deps.venue, task, {
          legs: wantedExits(task.data).map(({ leg }) => leg),
          placed: task.data.placed,
        }),
      before: (task) => exitsBefore(deps, task),
    }),
    plan: (task) =>
      exitsPlan(task, deps.pricing, {
        size: task.data.size,
        grouping: task.data.follows_position ? 'position' : 'none',
      }),
    async settle(task, found, context) {
      const { exits, waiting } = await completePlacement(deps.venue, task, {
        found,
        placed: task.data.placed,
        signal: context.signal,
      })
      if (waiting) return deps.signedActions.waitForRecords(task, 'confirm', { placed: waiting })
      if (!exits.some(isPlaced)) return { ...allMissing(task, exits), rejected: true }
      const placed: PlacedExits = { exits, landedAtMs: 0 }
      return replace({ ...task, data: { ...task.data, placed } }, context)
    },
  })

const replacementEffect = (deps: TpSlDeps) =>
  createEffect({
    steps: { sign: 'replace', confirm: 'replaced' },
    driver: venueDriver<TpSlData, OrderCancelled[], TpSlStep>(deps, {
      actionKey: 'replaced',
      search: ({ data: { account, since_ms: sinceMs, asset, symbol, earlier = [] } }) =>
        cancelSearch(deps.venue, {
          account,
          sinceMs,
          targets: earlier.map(({ order_id }) => ({ order_id, asset, symbol })),
        }),
      onRejected: async (task, outcome) =>
        notReplaced(task, (await rejectedResult(deps, task, outcome)).error),
    }),
    async plan(task, { now }) {
      const { data } = task
      const placedExits = exitsPlaced(data).filter(isPlaced)
      const legs = placedExits.map(({ leg }) => leg)
      const placed = new Set(placedExits.flatMap(({ orderId }) => orderId ?? []))
      const earlier = data.replace
        ? await earlierExits(deps, data, { userId: task.userId, now, legs, placed })
        : []
      if (earlier.length === 0) return finish(task, [])
      const change = { placed: data.placed!, earlier }
      const replacing = { ...task, data: { ...data, ...change } }
      return {
        ...planOf(data),
        facts: factsOf(data),
        action: cancelOf(earlier.map(({ order_id }) => ({ asset: data.asset, order_id }))),
        data: change,
        onRefused: (fault) => notReplaced(replacing, fault),
      }
    },
    settle: finish,
  })

const exitsPlaced = ({ placed }: TpSlData): Exit[] => placed?.exits ?? []

type ReplacedView = { order_id: string; leg: string; cancelled: boolean; venue_status: string }

function resultOf(task: TpSlTask, exits: readonly Exit[], replaced: ReplacedView[]): JsonObject {
  const { symbol, size, follows_position } = task.data
  return {
    asset: symbol,
    size,
    follows_position,
    tp_oids: exitOrderIds(exits, 'tp'),
    sl_oids: exitOrderIds(exits, 'sl'),
    replaced,
    legs: exits.map(({ leg, orderId, state, error }) => ({
      role: leg,
      order_id: orderId === null ? null : String(orderId),
      cloid: deriveCloid(task.executionId, leg),
      status: state,
      error,
    })),
  }
}

function finish(task: TpSlTask, replaced: readonly OrderCancelled[]): EndResult<Partial<TpSlData>> {
  const exits = exitsPlaced(task.data)
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
  if (!missing && !open) return { end: 'completed', outcome: 'executed', result }
  const message = missing
    ? `The ${missing.leg} was not placed and the earlier exits are still open: ${missing.error}`
    : `The earlier ${open!.leg} ${open!.order_id} is still open in addition to the new one: cancel it`
  return {
    end: 'failed',
    outcome: 'partial',
    error: { code: 'venue_rejected', message, retryable: false, upstream: upstreamName },
    result,
  }
}

function allMissing(task: TpSlTask, exits: readonly Exit[]): EndResult<Partial<TpSlData>> {
  const message = `The venue rejected the exits and the earlier ones are still open: ${exits[0]?.error}`
  return { ...failed('venue_rejected', message), result: resultOf(task, exits, []) }
}

/** Ends a task whose new exits are placed while the earlier ones are still open. */
function notReplaced(
  task: TpSlTask,
  { code, message }: { code: string; message: string },
): EndResult<Partial<TpSlData>> {
  const remaining = (task.data.earlier ?? []).map(({ order_id: id, leg }) => ({
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
    result: resultOf(task, exitsPlaced(task.data), remaining),
  }
}
