import { setTimeout as pause } from 'node:timers/promises'
import { closesMax, deriveCloid } from '#engines/venue/orders/action-outcome.ts'
import { type CancelOutcome, cancelOf, cancelReplied, lookUpEnd } from '#engines/venue/orders/cancel.ts'
import { isShownByNow } from '#engines/venue/orders/confirm-action.ts'
import { consistentRecord, sizeOf } from '#engines/venue/orders/consistent-reads.ts'
import type { Pricing } from '#engines/venue/orders/order-checks.ts'
import { createOrderLookup, readLagMs } from '#engines/venue/orders/order-lookup.ts'
import type { OrderOutcome } from '#engines/venue/orders/order-result.ts'
import {
  factsOf,
  gridOf,
  type OrderTaskData,
  type PlacedExits,
  planOf,
} from '#engines/venue/orders/order-task.ts'
import { type VenueDriverDeps, type VenuePlan, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import { type Entry, type Exit, sumFills } from '#engines/venue/records/bracket.ts'
import type { RestingExit } from '#engines/venue/records/trim-exits.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { addDecimals, subtractDecimals } from '#kernel/money/money.ts'
import type { VenueOrder } from '#kernel/money/venue-actions.ts'
import { createEffect, type EffectStep, type EffectSteps } from '#kernel/task/effect-steps.ts'
import type { EndResult, JsonObject, StepResult, TaskView } from '#kernel/task/task.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** This module unwinds an entry whose stop cannot be placed: it cancels the resting part and closes the filled part. */

/** The maximum slippage in percent of an emergency close. */
const unwindSlippagePercent = '8'

export type UnwindStep = 'unwind' | 'entry_cancelled' | 'closed'
/** The task data of a perp order, with the state of an incomplete bracket. */
export type PerpOrderTaskData = OrderTaskData & {
  order_outcome?: Pick<OrderOutcome, 'entry' | 'exits'>
  repairs?: PlacedExits
  /** How many orders have closed a part of the position; `closed_size` is their filled size. */
  closings?: number
  closed_size?: string
  /** A time on the venue's clock by which the cancelled entry had certainly ended. */
  entry_ended_ms?: number
  /** The end of the task of a run that has closed its part, before the exits of that part have ended. */
  closed_end?: { outcome: 'executed' | 'partial'; result: JsonObject }
  /** The exits of the closed part that have to end, and the one that goes on with the size that is left. */
  own_exits_ended?: RestingExit[]
  own_exit?: RestingExit
}
export type PerpOrderTask = TaskView<PerpOrderTaskData>

export function storedOutcome({ id, data }: PerpOrderTask): Pick<OrderOutcome, 'entry' | 'exits'> {
  if (data.order_outcome) return data.order_outcome
  throw new Error(`task ${id} has no stored outcome of its order`)
}

export const onlyEntryFills = (fills: readonly Fill[], { orderId }: Entry): Fill[] =>
  fills.filter((fill) => fill.orderId === orderId)

export const coversSize = (fills: readonly Fill[], size: string | null): boolean =>
  size === null || compareDecimals(sumFills(fills).size, size) >= 0

const fillsUnavailable = () => new Fault('unavailable', 'Fills are not available yet')
const rereadWaitsMs = [100, 200, 400, 800]

/** Reads fills until they are complete, because the venue lists fills shortly after the reply that reports them. */
export async function readAllFills(
  read: () => Promise<Fill[]>,
  isComplete: (fills: Fill[]) => boolean,
): Promise<Fill[]> {
  for (const waitMs of [...rereadWaitsMs, 0]) {
    const fills = await read()
    if (isComplete(fills)) return fills
    await pause(waitMs)
  }
  throw fillsUnavailable()
}

export type Finish = (
  task: PerpOrderTask,
  /** `closedSize` is the known filled size of the closing orders. */
  orderOutcome: Pick<OrderOutcome, 'entry' | 'exits'> & { closedSize?: string | null },
  error: { code: string; message: string } | null,
) => Promise<EndResult<Partial<PerpOrderTaskData>>>
export type UnwindDeps = VenueDriverDeps & {
  venue: Pick<
    Hyperliquid,
    'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account' | 'timeMs' | 'passedMs'
  >
  pricing: Pricing
}

const missingReason = (exits: readonly Exit[]): string => {
  const missing =
    exits.find(({ state, leg }) => state === 'missing' && leg === 'sl') ??
    exits.find(({ state }) => state === 'missing')
  return missing?.error ?? 'an exit is missing'
}
type UnwindResult = StepResult<PerpOrderTaskData, UnwindStep>
const later = { park: { afterMs: 1_000, next: 'unwind' }, state: 'settling' } satisfies UnwindResult

export function unwindSteps(
  deps: UnwindDeps,
  finish: Finish,
): Record<UnwindStep, EffectStep<PerpOrderTaskData, UnwindStep>> {
  const close = closeEffect(deps, finish)
  const cancel = cancelEffect(deps, finish, close.sign)
  return { unwind: cancel.sign, entry_cancelled: cancel.confirm, closed: close.confirm }
}

const cancelEffect = (deps: UnwindDeps, finish: Finish, close: EffectStep<PerpOrderTaskData, UnwindStep>) =>
  createEffect({
    steps: { sign: 'unwind', confirm: 'entry_cancelled' },
    driver: venueDriver<PerpOrderTaskData, CancelOutcome, UnwindStep>(deps, {
      actionKey: 'entry_cancelled',
      search: ({ executionId, data: { account, since_ms: sinceMs, size: left } }) => ({
        parseReply: cancelReplied,
        lookUp: (how) =>
          lookUpEnd(deps.venue, { account, sinceMs, cloid: deriveCloid(executionId, 'entry'), left, ...how }),
      }),
      onRejected(task, { message: reason }) {
        const { entry, exits } = storedOutcome(task)
        const message = `The entry is open without its stop (${missingReason(exits)}); cancel it: ${reason}`
        return finish(task, { entry, exits }, { code: 'venue_rejected', message })
      },
    }),
    async plan(task, context) {
      const { data } = task
      const { entry } = storedOutcome(task)
      if (entry.status !== 'resting' || entry.orderId === null) return close(task, context)
      return {
        ...planOf(data),
        facts: factsOf(data, { usdMicros: 0n, exit: true }),
        action: cancelOf([{ asset: data.asset, order_id: entry.orderId }]),
        onRefused: () => later,
      }
    },
    settle(task, { isCancelled }, context) {
      const { entry, exits } = storedOutcome(task)
      // An entry that could not be cancelled had been filled before; a cancelled one may have been filled in part.
      const ended: Entry = isCancelled
        ? { ...entry, status: 'partial' }
        : { ...entry, status: 'filled', filledSize: task.data.size }
      return close({ ...task, data: { ...task.data, order_outcome: { entry: ended, exits } } }, context)
    },
  })

const closeKey = ({ closings = 0 }: PerpOrderTaskData): string => `close${closings}`

/** Closes the open part of the entry's fills, and repeats the close until nothing is left. */
function closeEffect(deps: UnwindDeps, finish: Finish): EffectSteps<PerpOrderTaskData, UnwindStep> {
  const steps: EffectSteps<PerpOrderTaskData, UnwindStep> = createEffect({
    steps: { sign: 'unwind', confirm: 'closed' },
    driver: venueDriver<PerpOrderTaskData, string, UnwindStep>(deps, {
      actionKey: closeKey,
      search: ({ executionId, data }) => ({
        parseReply: ([leg]) => leg && (leg.type === 'filled' ? leg.size : '0'),
        async lookUp({ allRecords }) {
          const { account, since_ms: sinceMs } = data
          const lookup = createOrderLookup(deps.venue, { account, sinceMs, allRecords })
          return (await lookup.find({ cloid: deriveCloid(executionId, closeKey(data)) }))?.filledSize
        },
      }),
      // A rejected close does not count as an attempt, so the same close is signed again.
      retry: ({ closings = 1 }) => ({ closings: closings - 1 }),
      onRejected: (task, _outcome, context) => steps.sign(task, context),
    }),
    plan: (task, { now }) => planClose(deps, finish, task, now),
    settle(task, filledSize, context) {
      const closed_size = addDecimals(task.data.closed_size ?? '0', filledSize)
      return steps.sign({ ...task, data: { ...task.data, closed_size } }, context)
    },
  })
  return steps
}

async function planClose(
  { venue, pricing }: UnwindDeps,
  finish: Finish,
  task: PerpOrderTask,
  now: Date,
): Promise<VenuePlan<PerpOrderTaskData, UnwindStep> | UnwindResult> {
  const { executionId, data } = task
  const { closings = 0, closed_size: closedSize = '0' } = data
  const { entry, exits } = storedOutcome(task)
  // `isEntryShown` is evaluated before the records are read, so that the records are newer than its answer.
  const isFinal = await isEntryShown(venue, data, entry)
  const size = await openSize(venue, task, { entry, closedSize })
  // The entry is stored as ended, so that no later step cancels it again.
  const known = { order_outcome: { entry, exits }, closed_size: closedSize }
  const finishBy = (message: string) =>
    finish(task, { entry, exits, closedSize }, { code: 'venue_rejected', message })
  if (compareDecimals(size, '0') === 0) {
    const closed = `The bracket could not be placed (${missingReason(exits)}), so the position was closed`
    if (isFinal) return finishBy(closed)
    const { entry_ended_ms: endedMs } = data
    const entry_ended_ms = endedMs ?? now.getTime() + data.ahead_ms
    const afterMs = endedMs === undefined ? readLagMs : 1_000
    return { ...later, park: { afterMs, next: 'unwind' }, data: { ...known, entry_ended_ms } }
  }
  if (closings >= closesMax) return finishBy('The position is open without its stop: close it')
  const mid = (await venue.mids()).get(data.symbol) ?? data.price
  const isBuy = !data.is_buy
  const signed = { ...known, closings: closings + 1 }
  const leg = closeKey({ ...data, ...signed })
  const order: VenueOrder = {
    asset: data.asset,
    isBuy,
    size,
    reduceOnly: true,
    when: { tif: 'ioc' },
    price: pricing.boundPrice(mid, { percent: unwindSlippagePercent, isBuy, grid: gridOf(data) }),
    cloid: deriveCloid(executionId, leg),
  }
  return {
    ...planOf(data),
    facts: factsOf(data, { usdMicros: 0n, exit: true }),
    action: { type: 'order', orders: [order], grouping: 'none' },
    notes: [{ cloid: order.cloid, leg, symbol: data.symbol }],
    data: signed,
    onRefused: () => ({ ...later, data: known }),
  }
}

/**
 * Whether every read of the venue now includes the entry's fills: their size is known, or enough time has passed since
 * the entry ended. The reply to a cancel reports no filled size.
 */
async function isEntryShown(
  venue: UnwindDeps['venue'],
  { account, entry_ended_ms: endedMs }: PerpOrderTaskData,
  { filledSize }: Entry,
): Promise<boolean> {
  return filledSize !== null || (endedMs !== undefined && (await isShownByNow(venue, account, endedMs)))
}

async function openSize(
  venue: UnwindDeps['venue'],
  { data }: PerpOrderTask,
  { entry, closedSize }: { entry: Entry; closedSize: string },
): Promise<string> {
  const { account, symbol, is_buy: isBuy, since_ms: sinceMs } = data
  const { state, fills } = await consistentRecord(venue, { account, symbol })
  const own = onlyEntryFills(fills, entry)
  const back = fills.filter((each) => each.symbol === symbol && each.isBuy !== isBuy && each.atMs >= sinceMs)
  // Account and fills may be consistent with each other but older than the entry or its close.
  if (!coversSize(own, entry.filledSize) || !coversSize(back, closedSize)) throw fillsUnavailable()
  const position = sizeOf(state, symbol)
  const left = subtractDecimals(sumFills(own).size, closedSize)
  if (compareDecimals(left, '0') < 0) throw fillsUnavailable()
  const sameSide = position.startsWith('-') !== isBuy
  if (!sameSide) return '0'
  const held = position.replace('-', '')
  return compareDecimals(held, left) < 0 ? held : left
}
