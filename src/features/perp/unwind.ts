import { setTimeout as pause } from 'node:timers/promises'
import { type ActPlan, cloidOf, type VenueActs } from '#features/venue/act.ts'
import { type Entry, type Exit, sumOf } from '#features/venue/bracket.ts'
import { type CancelOutcome, lookUpEnd } from '#features/venue/cancel.ts'
import type { Pricing } from '#features/venue/exits.ts'
import { gridOf, memoryOf } from '#features/venue/memory.ts'
import { agreedRecord, gatherEvidence, sizeOf } from '#features/venue/order-evidence.ts'
import { factsOf, planOf } from '#features/venue/place.ts'
import type { Standing } from '#features/venue/report.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { EffectUpdate, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import type { Fill, Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Takes back an entry whose stop cannot be placed: cancels what rests, closes what was filled. */

/** The position has to go; the price is bounded all the same. */
const unwindSlippagePercent = '8'
const closingsMost = 3
const scale = 18
const addDecimals = (a: string, b: string): string => fromUnits(toUnits(a, scale) + toUnits(b, scale), scale)

export const standingOf = (task: TaskView): Pick<Standing, 'entry' | 'exits'> =>
  task.data.standing as unknown as Pick<Standing, 'entry' | 'exits'>

export const ofEntry = (fills: readonly Fill[], { orderId }: Entry): Fill[] =>
  fills.filter((fill) => fill.orderId === orderId)

export const isAtLeast = (fills: readonly Fill[], size: string | null): boolean =>
  size === null || compareDecimals(sumOf(fills).size, size) >= 0

const notYet = () => new Fault('unavailable', 'Fills are not available yet')
const rereadWaitsMs = [100, 200, 400, 800]

/** Fills show up a moment after the reply that told of them. */
export async function wholeFills(
  read: () => Promise<Fill[]>,
  isWhole: (fills: Fill[]) => boolean,
): Promise<Fill[]> {
  for (const waitMs of [...rereadWaitsMs, 0]) {
    const fills = await read()
    if (isWhole(fills)) return fills
    await pause(waitMs)
  }
  throw notYet()
}

export const closings = () => Array.from({ length: closingsMost }, (_, at) => `close${at + 1}`)

export type Finish = (
  task: TaskView,
  /** `closedSize`: what the closing orders are known to have filled. */
  standing: Pick<Standing, 'entry' | 'exits'> & { closedSize?: string | null },
  effects: EffectUpdate[],
  error: { code: string; message: string } | null,
) => Promise<StepResult>
type UnwindNeeds = {
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account'>
  acts: VenueActs
  pricing: Pricing
  finish: Finish
}

export function unwinding({ venue, acts, pricing, finish }: UnwindNeeds) {
  const why = (exits: readonly Exit[]) => {
    const gone =
      exits.find(({ state, leg }) => state === 'gone' && leg === 'sl') ??
      exits.find(({ state }) => state === 'gone')
    return gone?.error ?? 'an exit is missing'
  }
  const closedError = (exits: readonly Exit[]) => ({
    code: 'venue_rejected',
    message: `The bracket could not be placed (${why(exits)}), so the position was not kept`,
  })

  /** What the entry brought and no order of ours has taken away since. */
  const openSize = async (task: TaskView, closedSize: string): Promise<string> => {
    const { account, symbol, is_buy: isBuy, since_ms: sinceMs } = memoryOf(task)
    const { entry } = standingOf(task)
    const { state, fills } = await agreedRecord(venue, { account, symbol })
    const own = ofEntry(fills, entry)
    const back = fills.filter(
      (each) => each.symbol === symbol && each.isBuy !== isBuy && each.atMs >= sinceMs,
    )
    // Account and fills may agree on a moment before the entry, or before its close.
    if (!isAtLeast(own, entry.filledSize) || !isAtLeast(back, closedSize)) throw notYet()
    const position = sizeOf(state, symbol)
    const filled = sumOf(own).size
    const sameSide = position.startsWith('-') !== isBuy
    if (!sameSide) return '0'
    const held = position.replace('-', '')
    return compareDecimals(held, filled) < 0 ? held : filled
  }

  const close = async (
    task: TaskView,
    { now }: StepContext,
    effects: EffectUpdate[],
    closedSize = String(task.data.closed_size ?? '0'),
  ): Promise<StepResult> => {
    const memory = memoryOf(task)
    const standing = { ...standingOf(task), closedSize }
    const { exits } = standing
    const round = Number(task.data.closings ?? 0)
    const size = await openSize(task, closedSize)
    if (compareDecimals(size, '0') === 0) return finish(task, standing, effects, closedError(exits))
    const stands = { code: 'venue_rejected', message: 'The position stands without its stop: close it' }
    if (round >= closingsMost) return finish(task, standing, effects, stands)
    const mid = (await venue.mids()).get(memory.symbol) ?? memory.price
    const isBuy = !memory.is_buy
    const name = `close${round + 1}`
    const order: VenueOrder = {
      asset: memory.asset,
      isBuy,
      size,
      reduceOnly: true,
      when: { tif: 'ioc' },
      price: pricing.boundPrice(mid, unwindSlippagePercent, isBuy, gridOf(memory)),
      cloid: cloidOf(task.id, name),
    }
    const plan: ActPlan = {
      leg: name,
      ...planOf(memory),
      facts: factsOf(memory, { usdMicros: 0n, exit: true }),
      action: { type: 'order', orders: [order], grouping: 'none' },
      notes: [{ cloid: order.cloid, leg: name, symbol: memory.symbol }],
    }
    const refused = (): StepResult => ({
      park: { afterMs: 1_000, next: 'unwind' },
      state: 'settling',
      data: { closed_size: closedSize },
      effects,
    })
    const data = { closings: round + 1, closed_size: closedSize }
    return acts.intend(task, plan, { now, next: 'closed', data, effects, refused })
  }

  const unwind: Step = async (task, context) => {
    const memory = memoryOf(task)
    const { entry } = standingOf(task)
    if (entry.status !== 'resting' || entry.orderId === null) return close(task, context, [])
    const plan: ActPlan = {
      leg: 'withdrawn',
      ...planOf(memory),
      facts: factsOf(memory, { usdMicros: 0n, exit: true }),
      action: { type: 'cancel', cancels: [{ asset: memory.asset, orderId: entry.orderId }] },
    }
    const refused = (): StepResult => ({ park: { afterMs: 1_000, next: 'unwind' }, state: 'settling' })
    return acts.intend(task, plan, { now: context.now, next: 'withdrawn', refused })
  }

  const withdrawn: Step = async (task, context) => {
    const { account, since_ms: sinceMs, size } = memoryOf(task)
    const verdict = await acts.settle<CancelOutcome>({
      task,
      leg: 'withdrawn',
      signal: context.signal,
      read: ([leg]: LegStatus[]) =>
        leg?.is === 'accepted' ? { status: 'canceled', isCancelled: true } : undefined,
      look: (how) =>
        lookUpEnd(venue, { account, sinceMs, cloid: cloidOf(task.id, 'entry'), left: size, ...how }),
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'withdrawn', verdict)
    const retry = acts.retryThrottled(task, verdict, { leg: 'withdrawn', next: 'unwind', now: context.now })
    if (retry) return retry
    if (verdict.is === 'done') return close(task, context, verdict.effects)
    const { exits } = standingOf(task)
    const message = `The entry rests without its stop (${why(exits)}); cancel it: ${verdict.message}`
    const entry = standingOf(task).entry
    return finish(task, { entry, exits }, verdict.effects, { code: 'venue_rejected', message })
  }

  const closed: Step = async (task, context) => {
    const { account, since_ms: sinceMs } = memoryOf(task)
    const name = `close${Number(task.data.closings ?? 1)}`
    const verdict = await acts.settle({
      task,
      leg: name,
      signal: context.signal,
      read: ([leg]: LegStatus[]) => leg && (leg.is === 'filled' ? leg.size : '0'),
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        return (await evidence.find({ cloid: cloidOf(task.id, name) }))?.filledSize
      },
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'closed', verdict)
    const retry = acts.retryThrottled(task, verdict, { leg: name, next: 'unwind', now: context.now })
    // A refused attempt does not count: the same close is signed again.
    if (retry) return { ...retry, data: { ...retry.data, closings: Number(task.data.closings ?? 1) - 1 } }
    const before = String(task.data.closed_size ?? '0')
    const closedSize = verdict.is === 'done' ? addDecimals(before, verdict.value) : before
    return close(task, context, verdict.effects, closedSize)
  }

  return { unwind, withdrawn, closed }
}
