import { deriveCloid, orderKeys, repairSuffix } from '#engines/venue/orders/action-outcome.ts'
import { positionOf } from '#engines/venue/orders/consistent-reads.ts'
import { upstreamName } from '#engines/venue/orders/order-failures.ts'
import { fillViews, type OrderOutcome, orderResult } from '#engines/venue/orders/order-result.ts'
import type { PlacedExits } from '#engines/venue/orders/order-task.ts'
import { completePlacement, exitsPlan, exitsSearch } from '#engines/venue/orders/place-exits.ts'
import { positionNote } from '#engines/venue/orders/position-after-fills.ts'
import { type VenuePlan, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import { type Entry, type Exit, type ExitLeg, sumFills } from '#engines/venue/records/bracket.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { StepContext, StepResult } from '#kernel/task/task.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  coversSize,
  type Finish,
  onlyEntryFills,
  type PerpOrderTask,
  type PerpOrderTaskData,
  readAllFills,
  storedOutcome,
  type UnwindDeps,
  type UnwindStep,
  unwindSteps,
} from './unwind-unprotected-entry.ts'

/** This module repairs a position without its requested stop: it places the exits again, or closes the position. */

export type BracketRepairDeps = UnwindDeps & { venue: Pick<Hyperliquid, 'timeMs' | 'passedMs'> }

const actionKey = 'repair'

export type RepairStep = 'repair' | 'repaired' | UnwindStep
type RepairResult = StepResult<PerpOrderTaskData, RepairStep>
type PlacedOrder = Pick<OrderOutcome, 'entry' | 'exits'>

const missingLegs = (exits: readonly Exit[]): ExitLeg[] =>
  exits.filter(({ state }) => state === 'missing').map(({ leg }) => leg)
const unwind = (order_outcome: PlacedOrder): RepairResult => ({
  next: 'unwind',
  state: 'settling',
  data: { order_outcome },
})

export function createBracketRepair(deps: BracketRepairDeps) {
  const { venue } = deps
  const finish = createFinish(venue)
  const repair = createEffect({
    steps: { sign: 'repair', confirm: 'repaired' },
    driver: venueDriver<PerpOrderTaskData, PlacedExits, RepairStep>(deps, {
      actionKey,
      search: (task) =>
        exitsSearch(venue, task, {
          legs: missingLegs(storedOutcome(task).exits),
          suffix: repairSuffix,
          placed: task.data.repairs,
        }),
      onRejected(task, { message: error }) {
        const { exits } = storedOutcome(task)
        return afterRepair(
          finish,
          task,
          exits.map((exit) => ({ ...exit, orderId: null, error })),
        )
      },
    }),
    plan: (task) => planRepair(deps, task),
    async settle(task, found, { signal }) {
      const placed = task.data.repairs
      const completion = { actionKey, found, placed, signal, suffix: repairSuffix }
      const { exits, waiting } = await completePlacement(venue, task, completion)
      return waiting
        ? deps.signedActions.waitForRecords(task, 'repaired', { repairs: waiting })
        : afterRepair(finish, task, exits)
    },
  })
  return {
    begin: (task: PerpOrderTask, context: StepContext, { entry, exits }: OrderOutcome) =>
      repair.sign({ ...task, data: { ...task.data, order_outcome: { entry, exits } } }, context),
    steps: { repair: repair.sign, repaired: repair.confirm, ...unwindSteps(deps, finish) },
  }
}

/** Ends the task after a repair, or closes the position if its stop is still missing. */
function afterRepair(finish: Finish, task: PerpOrderTask, placed: readonly Exit[]) {
  const { entry, exits } = storedOutcome(task)
  const now = exits.map((exit) =>
    exit.state === 'missing' ? placed.find(({ leg }) => leg === exit.leg)! : exit,
  )
  const without = now.filter(({ state }) => state === 'missing')
  if (without.some(({ leg }) => leg === 'sl') || (without.length > 0 && !task.data.sl))
    return unwind({ entry, exits: now })
  const lost = without[0]
  const error = lost
    ? { code: 'venue_rejected', message: `The take-profit was not placed: ${lost.error}` }
    : null
  return finish(task, { entry, exits: now }, error)
}

async function planRepair(
  { venue, pricing }: BracketRepairDeps,
  task: PerpOrderTask,
): Promise<VenuePlan<PerpOrderTaskData, RepairStep> | RepairResult> {
  const order_outcome = storedOutcome(task)
  const { entry, exits } = order_outcome
  if (entry.status === 'resting') return unwind(order_outcome)
  const { account, symbol } = task.data
  const [fills, state] = await Promise.all([entryFills(venue, task, entry), venue.account(account)])
  const size = sumFills(fills).size
  const missing = missingLegs(exits)
  const held = positionOf(state, symbol)?.signedSize.replace('-', '')
  // Exits with the grouping `position` are OCO and cover the whole position, so they are used only if the entry opened
  // all of it.
  const coversPosition = held !== undefined && compareDecimals(held, size) === 0
  const grouping = coversPosition && missing.length === exits.length ? 'position' : 'none'
  const only = (leg: ExitLeg) => missing.includes(leg)
  return {
    ...exitsPlan(task, pricing, { size, grouping, suffix: repairSuffix, only }),
    data: { order_outcome },
    onRefused: () => unwind(order_outcome),
  }
}

const entryFills = (
  venue: Pick<Hyperliquid, 'fillsSince'>,
  { data }: PerpOrderTask,
  entry: Entry,
): Promise<Fill[]> =>
  readAllFills(
    async () => onlyEntryFills(await venue.fillsSince(data.account, data.since_ms), entry),
    (fills) => coversSize(fills, entry.filledSize),
  )

async function ownFills(
  venue: Pick<Hyperliquid, 'order' | 'fillsSince'>,
  { executionId, data }: PerpOrderTask,
): Promise<Fill[]> {
  const cloids = new Set(orderKeys.map((name) => deriveCloid(executionId, name)))
  const found = await Promise.all([...cloids].map((cloid) => venue.order(data.account, cloid)))
  const own = new Set(found.flatMap((each) => (each ? [each.order.orderId] : [])))
  return (await venue.fillsSince(data.account, data.since_ms)).filter(
    ({ orderId, cloid }) => own.has(orderId) || (cloid !== null && cloids.has(cloid)),
  )
}

const createFinish =
  (venue: Pick<Hyperliquid, 'order' | 'fillsSince'>): Finish =>
  async (task, { entry, exits, closedSize = null }, error) => {
    const isEntry = ({ orderId }: Fill) => orderId === entry.orderId
    // The fills of all orders of the task are read, so that the result of an unwound position has both sides.
    const fills = await readAllFills(
      () => ownFills(venue, task),
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
      data: { fills: fillViews(fills), ...positionNote('perp', fills) },
      result: orderResult(task.executionId, task.data, { entry: ended, exits, fills }),
    }
    if (!error) return { ...common, end: 'completed', outcome: 'partial' }
    const outcome = fills.length > 0 ? ('partial' as const) : ('not_executed' as const)
    return { ...common, end: 'failed', outcome, error: { ...error, upstream: upstreamName } }
  }
