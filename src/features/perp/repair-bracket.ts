import { completeExits, exitsOfReply, landedMs, lookUpExits } from '#engines/venue/orders/entry-outcome.ts'
import { upstreamName } from '#engines/venue/orders/order-failures.ts'
import { positionOf } from '#engines/venue/orders/order-lookup.ts'
import { fillViews, type OrderOutcome, orderResult } from '#engines/venue/orders/order-result.ts'
import {
  factsOf,
  type OrderTaskData,
  type PlacedExits,
  planOf,
  wantedExits,
} from '#engines/venue/orders/order-task.ts'
import { positionNote } from '#engines/venue/orders/read-after-write.ts'
import { type ActionPlan, cloidOf, type SignedActions } from '#engines/venue/orders/signed-action.ts'
import { exitOrder, type Pricing } from '#engines/venue/orders/venue-orders.ts'
import { type Entry, type Exit, type ExitLeg, sumFills } from '#engines/venue/records/bracket.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import type { EffectUpdate, Step, StepContext, StepResult } from '#kernel/task.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  closeKeys,
  coversSize,
  type Finish,
  onlyEntryFills,
  type PerpOrderTask,
  type PerpOrderTaskData,
  readAllFills,
  storedOutcome,
  type UnwindStep,
  unwindSteps,
} from './unwind.ts'

/** Repairs a position without its requested stop: places the exits again, or closes the position. */

type BracketRepairDeps = {
  venue: Pick<
    Hyperliquid,
    'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account' | 'timeMs' | 'passedMs'
  >
  signedActions: SignedActions
  pricing: Pricing
}

const repairSuffix = '2'

const bracketData = (entry: Entry, exits: Exit[]): Pick<PerpOrderTaskData, 'order_outcome'> => ({
  order_outcome: { entry, exits },
})

export type RepairStep = 'repair' | 'repaired' | UnwindStep
type RepairResult = StepResult<PerpOrderTaskData, RepairStep>

export function createBracketRepair({ venue, signedActions, pricing }: BracketRepairDeps) {
  const entryFills = (taskData: OrderTaskData, entry: Entry): Promise<Fill[]> =>
    readAllFills(
      async () => onlyEntryFills(await venue.fillsSince(taskData.account, taskData.since_ms), entry),
      (fills) => coversSize(fills, entry.filledSize),
    )

  const ownFills = async (task: PerpOrderTask): Promise<Fill[]> => {
    const taskData = task.data
    const names = ['entry', 'tp', 'sl', `tp${repairSuffix}`, `sl${repairSuffix}`, ...closeKeys()]
    const cloids = new Set(names.map((name) => cloidOf(task.id, name)))
    const found = await Promise.all([...cloids].map((cloid) => venue.order(taskData.account, cloid)))
    const own = new Set(found.flatMap((each) => (each ? [each.order.orderId] : [])))
    return (await venue.fillsSince(taskData.account, taskData.since_ms)).filter(
      ({ orderId, cloid }) => own.has(orderId) || (cloid !== null && cloids.has(cloid)),
    )
  }

  const finish: Finish = async (task, { entry, exits, closedSize = null }, effects, error) => {
    const isEntry = ({ orderId }: Fill) => orderId === entry.orderId
    // Fills of all orders of the task, so that the result of an unwound position has both sides.
    const fills = await readAllFills(
      () => ownFills(task),
      (all) =>
        coversSize(onlyEntryFills(all, entry), entry.filledSize) &&
        coversSize(
          all.filter((fill) => !isEntry(fill)),
          closedSize,
        ),
    )
    const isUnfilled = entry.status === 'partial' && !fills.some(isEntry)
    const ended: Entry = isUnfilled ? { ...entry, status: 'rejected', error } : entry
    const common = {
      effects,
      data: { fills: fillViews(fills), ...positionNote('perp', fills) },
      result: orderResult(task.id, task.data, { entry: ended, exits, fills }),
    }
    if (!error) return { ...common, end: 'completed', outcome: 'partial' }
    const outcome = fills.length > 0 ? ('partial' as const) : ('not_executed' as const)
    return { ...common, end: 'failed', outcome, error: { ...error, upstream: upstreamName } }
  }

  const repairPlan = async (task: PerpOrderTask, { entry, exits }: Pick<OrderOutcome, 'entry' | 'exits'>) => {
    const taskData = task.data
    const [fills, state] = await Promise.all([entryFills(taskData, entry), venue.account(taskData.account)])
    const size = sumFills(fills).size
    const missing = wantedExits(taskData).filter(({ leg }) =>
      exits.some((exit) => exit.leg === leg && exit.state === 'missing'),
    )
    const orders = missing.map((exit) =>
      exitOrder(task.id, taskData, { ...exit, size, name: `${exit.leg}${repairSuffix}` }, pricing),
    )
    const held = positionOf(state, taskData.symbol)?.signedSize.replace('-', '')
    // Position exits are OCO and end with the position; they must not apply to an older part of it.
    const grouping =
      held !== undefined && compareDecimals(held, size) === 0 && missing.length === exits.length
        ? ('position' as const)
        : ('none' as const)
    return { orders, legs: missing.map(({ leg }) => `${leg}${repairSuffix}`), grouping }
  }

  const repairBracket = async (
    task: PerpOrderTask,
    { now }: StepContext,
    { entry, exits }: Pick<OrderOutcome, 'entry' | 'exits'>,
    effects: EffectUpdate[],
  ): Promise<RepairResult> => {
    const data = bracketData(entry, exits)
    if (entry.status === 'resting') return { next: 'unwind', state: 'settling', data, effects }
    const taskData = task.data
    const { orders, legs, grouping } = await repairPlan(task, { entry, exits })
    const plan: ActionPlan = {
      actionKey: 'repair',
      ...planOf(taskData),
      facts: factsOf(taskData, { usdMicros: 0n, exit: true }),
      action: { type: 'order', orders, grouping },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: taskData.symbol })),
    }
    const onRefused = (): RepairResult => ({ next: 'unwind', state: 'settling', data, effects })
    return signedActions.sign(task, plan, { now, next: 'repaired', data, effects, onRefused })
  }

  const repair: Step<PerpOrderTaskData, RepairStep> = (task, context) =>
    repairBracket(task, context, storedOutcome(task), [])

  const confirmRepair = (task: PerpOrderTask, signal: AbortSignal, wanted: ExitLeg[]) => {
    return signedActions.confirm<PlacedExits>({
      task,
      actionKey: 'repair',
      signal,
      parseReply: (legs) =>
        legs.length === wanted.length ? { exits: exitsOfReply(wanted, legs), landedAtMs: 0 } : undefined,
      lookUp: ({ allRecords }) =>
        lookUpExits(venue, task, { legs: wanted, suffix: repairSuffix, allRecords }),
    })
  }

  const repaired: Step<PerpOrderTaskData, RepairStep> = async (task, { signal, now: at }) => {
    const { entry, exits } = storedOutcome(task)
    const missing = exits.filter(({ state }) => state === 'missing')
    let effects: EffectUpdate[] = []
    let { repairs } = task.data
    if (!repairs) {
      const wanted = missing.map(({ leg }) => leg)
      const actionOutcome = await confirmRepair(task, signal, wanted)
      effects = actionOutcome.effects
      if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'repaired', actionOutcome)
      const retry = signedActions.retryThrottled(task, actionOutcome, {
        actionKey: 'repair',
        next: 'repair',
        now: at,
      })
      if (retry) return retry
      const { exits: placed, landedAtMs } =
        actionOutcome.type === 'executed'
          ? actionOutcome.value
          : {
              exits: missing.map((exit) => ({ ...exit, orderId: null, error: actionOutcome.message })),
              landedAtMs: 0,
            }
      repairs = { exits: placed, landedAtMs: await landedMs(venue, task, 'repair', landedAtMs) }
    }
    const found = await completeExits(venue, task, { ...repairs, signal, suffix: repairSuffix })
    if (!found.isComplete) {
      const waiting = signedActions.pollLater(task, 'repaired', { effects })
      const known: PlacedExits = { ...repairs, exits: found.exits }
      return { ...waiting, data: { ...waiting.data, repairs: known } }
    }
    const placed = found.exits
    const now = exits.map((exit) =>
      exit.state === 'missing' ? placed.find(({ leg }) => leg === exit.leg)! : exit,
    )
    const without = now.filter(({ state }) => state === 'missing')
    if (without.some(({ leg }) => leg === 'sl') || (without.length > 0 && !task.data.sl))
      return { next: 'unwind', state: 'settling', data: bracketData(entry, now), effects }
    const lost = without[0]
    const error = lost
      ? { code: 'venue_rejected', message: `The take-profit was not placed: ${lost.error}` }
      : null
    return finish(task, { entry, exits: now }, effects, error)
  }

  return {
    repairBracket,
    steps: { repair, repaired, ...unwindSteps({ venue, signedActions, pricing, finish }) },
  }
}
