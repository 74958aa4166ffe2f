import { setTimeout as pause } from 'node:timers/promises'
import { type CancelOutcome, lookUpEnd } from '#engines/venue/orders/cancel.ts'
import { isShownByNow, readLagMs } from '#engines/venue/orders/confirm-action.ts'
import { consistentRecord, createOrderLookup, sizeOf } from '#engines/venue/orders/order-lookup.ts'
import type { OrderOutcome } from '#engines/venue/orders/order-result.ts'
import {
  factsOf,
  gridOf,
  type OrderTaskData,
  type PlacedExits,
  planOf,
} from '#engines/venue/orders/order-task.ts'
import { type ActionPlan, cloidOf, type SignedActions } from '#engines/venue/orders/signed-action.ts'
import type { Pricing } from '#engines/venue/orders/venue-orders.ts'
import { type Entry, type Exit, sumFills } from '#engines/venue/records/bracket.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { addDecimals, subtractDecimals } from '#kernel/money.ts'
import type { EffectUpdate, EndResult, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import type { Fill, Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Unwinds an entry whose stop cannot be placed: cancels the resting part, closes the filled part. */

/** Emergency close, still with bounded slippage. */
const unwindSlippagePercent = '8'
const closesMax = 3

export type UnwindStep = 'unwind' | 'entry_cancelled' | 'closed'
/** Task data of a perp order, with the state of an incomplete bracket. */
export type PerpOrderTaskData = OrderTaskData & {
  order_outcome?: Pick<OrderOutcome, 'entry' | 'exits'>
  repairs?: PlacedExits
  /** Orders that closed a part of the position, and their filled size. */
  closings?: number
  closed_size?: string
  /** A time of the venue's clock at which the cancelled entry had ended. */
  entry_ended_ms?: number
}
export type PerpOrderTask = TaskView<PerpOrderTaskData>

export function storedOutcome({ id, data }: PerpOrderTask): Pick<OrderOutcome, 'entry' | 'exits'> {
  if (data.order_outcome) return data.order_outcome
  throw new Error(`task ${id} has no stored outcome of its order`)
}

/** `closedSize`: the known filled size of the closing orders. */
type UnwindState = Pick<OrderOutcome, 'entry' | 'exits'> & { closedSize: string }

const storedState = (task: PerpOrderTask): UnwindState => ({
  ...storedOutcome(task),
  closedSize: task.data.closed_size ?? '0',
})

/** A resting entry after its cancel: the order may have been filled first, whole or in part. */
const endedEntry = ({ data }: PerpOrderTask, entry: Entry, { isCancelled }: CancelOutcome): Entry =>
  isCancelled ? { ...entry, status: 'partial' } : { ...entry, status: 'filled', filledSize: data.size }

export const onlyEntryFills = (fills: readonly Fill[], { orderId }: Entry): Fill[] =>
  fills.filter((fill) => fill.orderId === orderId)

export const coversSize = (fills: readonly Fill[], size: string | null): boolean =>
  size === null || compareDecimals(sumFills(fills).size, size) >= 0

const fillsUnavailable = () => new Fault('unavailable', 'Fills are not available yet')
const rereadWaitsMs = [100, 200, 400, 800]

/** Fills become available shortly after the reply that reports them. */
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

export const closeKeys = () => Array.from({ length: closesMax }, (_, at) => `close${at + 1}`)

export type Finish = (
  task: PerpOrderTask,
  /** `closedSize`: the known filled size of the closing orders. */
  orderOutcome: Pick<OrderOutcome, 'entry' | 'exits'> & { closedSize?: string | null },
  effects: EffectUpdate[],
  error: { code: string; message: string } | null,
) => Promise<EndResult<Partial<PerpOrderTaskData>>>
type UnwindDeps = {
  venue: Pick<
    Hyperliquid,
    'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account' | 'timeMs' | 'passedMs'
  >
  signedActions: SignedActions
  pricing: Pricing
  finish: Finish
}

/** The part of the entry's fills that is still open. */
async function openSize(
  venue: UnwindDeps['venue'],
  task: PerpOrderTask,
  { entry, closedSize }: UnwindState,
): Promise<string> {
  const { account, symbol, is_buy: isBuy, since_ms: sinceMs } = task.data
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

/** Whether every read shows what the entry filled; its cancel reports no size. */
async function isEntryShown(
  venue: UnwindDeps['venue'],
  { data }: PerpOrderTask,
  { entry }: UnwindState,
): Promise<boolean> {
  if (entry.filledSize !== null) return true
  return data.entry_ended_ms !== undefined && isShownByNow(venue, data.account, data.entry_ended_ms)
}

export function unwindSteps({ venue, signedActions, pricing, finish }: UnwindDeps) {
  const missingReason = (exits: readonly Exit[]) => {
    const missing =
      exits.find(({ state, leg }) => state === 'missing' && leg === 'sl') ??
      exits.find(({ state }) => state === 'missing')
    return missing?.error ?? 'an exit is missing'
  }
  const closedError = (exits: readonly Exit[]) => ({
    code: 'venue_rejected',
    message: `The bracket could not be placed (${missingReason(exits)}), so the position was closed`,
  })

  const close = async (
    task: PerpOrderTask,
    { now }: StepContext,
    effects: EffectUpdate[],
    state = storedState(task),
  ): Promise<StepResult<PerpOrderTaskData, UnwindStep>> => {
    const taskData = task.data
    const { entry, exits, closedSize } = state
    const round = task.data.closings ?? 0
    // Asked before the records are read, so that they are newer.
    const isFinal = await isEntryShown(venue, task, state)
    const size = await openSize(venue, task, state)
    // The entry is stored as ended, so that no later step cancels it again.
    const known = { order_outcome: { entry, exits }, closed_size: closedSize }
    if (compareDecimals(size, '0') === 0) {
      if (isFinal) return finish(task, state, effects, closedError(exits))
      const { entry_ended_ms: endedMs = now.getTime() + taskData.ahead_ms } = taskData
      const afterMs = taskData.entry_ended_ms === undefined ? readLagMs : 1_000
      const data = { ...known, entry_ended_ms: endedMs }
      return { park: { afterMs, next: 'unwind' }, state: 'settling', data, effects }
    }
    const unprotected = { code: 'venue_rejected', message: 'The position is open without its stop: close it' }
    if (round >= closesMax) return finish(task, state, effects, unprotected)
    const mid = (await venue.mids()).get(taskData.symbol) ?? taskData.price
    const isBuy = !taskData.is_buy
    const name = `close${round + 1}`
    const order: VenueOrder = {
      asset: taskData.asset,
      isBuy,
      size,
      reduceOnly: true,
      when: { tif: 'ioc' },
      price: pricing.boundPrice(mid, { percent: unwindSlippagePercent, isBuy, grid: gridOf(taskData) }),
      cloid: cloidOf(task.id, name),
    }
    const plan: ActionPlan = {
      actionKey: name,
      ...planOf(taskData),
      facts: factsOf(taskData, { usdMicros: 0n, exit: true }),
      action: { type: 'order', orders: [order], grouping: 'none' },
      notes: [{ cloid: order.cloid, leg: name, symbol: taskData.symbol }],
    }
    const onRefused = (): StepResult<PerpOrderTaskData, UnwindStep> => ({
      park: { afterMs: 1_000, next: 'unwind' },
      state: 'settling',
      data: known,
      effects,
    })
    const data = { ...known, closings: round + 1 }
    return signedActions.sign(task, plan, { now, next: 'closed', data, effects, onRefused })
  }

  const unwind: Step<PerpOrderTaskData, UnwindStep> = async (task, context) => {
    const taskData = task.data
    const { entry } = storedOutcome(task)
    if (entry.status !== 'resting' || entry.orderId === null) return close(task, context, [])
    const plan: ActionPlan = {
      actionKey: 'entry_cancelled',
      ...planOf(taskData),
      facts: factsOf(taskData, { usdMicros: 0n, exit: true }),
      action: { type: 'cancel', cancels: [{ asset: taskData.asset, orderId: entry.orderId }] },
    }
    const onRefused = (): StepResult<PerpOrderTaskData, UnwindStep> => ({
      park: { afterMs: 1_000, next: 'unwind' },
      state: 'settling',
    })
    return signedActions.sign(task, plan, { now: context.now, next: 'entry_cancelled', onRefused })
  }

  const entryCancelled: Step<PerpOrderTaskData, UnwindStep> = async (task, context) => {
    const { account, since_ms: sinceMs, size } = task.data
    const actionOutcome = await signedActions.confirm<CancelOutcome>({
      task,
      actionKey: 'entry_cancelled',
      signal: context.signal,
      parseReply: ([leg]: LegStatus[]) =>
        leg?.type === 'accepted' ? { status: 'canceled', isCancelled: true } : undefined,
      lookUp: (how) =>
        lookUpEnd(venue, { account, sinceMs, cloid: cloidOf(task.id, 'entry'), left: size, ...how }),
    })
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'entry_cancelled',
      retry: { actionKey: 'entry_cancelled', next: 'unwind', now: context.now },
      executed(cancelled, effects) {
        const state = storedState(task)
        return close(task, context, effects, { ...state, entry: endedEntry(task, state.entry, cancelled) })
      },
      notExecuted({ message: reason, effects }) {
        const { entry, exits } = storedOutcome(task)
        const message = `The entry is open without its stop (${missingReason(exits)}); cancel it: ${reason}`
        return finish(task, { entry, exits }, effects, { code: 'venue_rejected', message })
      },
    })
  }

  const closed: Step<PerpOrderTaskData, UnwindStep> = async (task, context) => {
    const { account, since_ms: sinceMs } = task.data
    const name = `close${task.data.closings ?? 1}`
    const actionOutcome = await signedActions.confirm({
      task,
      actionKey: name,
      signal: context.signal,
      parseReply: ([leg]: LegStatus[]) => leg && (leg.type === 'filled' ? leg.size : '0'),
      async lookUp({ allRecords }) {
        const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
        return (await lookup.find({ cloid: cloidOf(task.id, name) }))?.filledSize
      },
    })
    if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'closed', actionOutcome)
    const retry = signedActions.retryThrottled(task, actionOutcome, {
      actionKey: name,
      next: 'unwind',
      now: context.now,
    })
    // A rejected attempt does not count: sign the same close again.
    if (retry) return { ...retry, data: { ...retry.data, closings: (task.data.closings ?? 1) - 1 } }
    const state = storedState(task)
    const closedSize =
      actionOutcome.type === 'executed'
        ? addDecimals(state.closedSize, actionOutcome.value)
        : state.closedSize
    return close(task, context, actionOutcome.effects, { ...state, closedSize })
  }

  return { unwind, entry_cancelled: entryCancelled, closed }
}
