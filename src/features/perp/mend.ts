import { type ActPlan, cloidOf, type VenueActs } from '#features/venue/act.ts'
import { type Entry, type Exit, type ExitLeg, sumOf } from '#features/venue/bracket.ts'
import { completeExits, exitsOfReply, type PlacedExits } from '#features/venue/entry-outcome.ts'
import { exitOrder, type Pricing } from '#features/venue/exits.ts'
import { type Memory, memoryOf, wantedExits } from '#features/venue/memory.ts'
import { gatherEvidence, positionOf } from '#features/venue/order-evidence.ts'
import { factsOf, planOf, upstreamName } from '#features/venue/place.ts'
import { positionNote } from '#features/venue/read-after-write.ts'
import { fillsOf, resultOf, type Standing } from '#features/venue/report.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Fill, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { closings, type Finish, isAtLeast, ofEntry, standingOf, unwinding, wholeFills } from './unwind.ts'

/** A position never stays without the stop that was asked for: the exits are placed again, or the position goes. */

type Needs = {
  venue: Pick<
    Hyperliquid,
    'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account' | 'timeMs' | 'passedMs'
  >
  acts: VenueActs
  pricing: Pricing
}

const again = '2'

const kept = (entry: Entry, exits: Exit[]): JsonObject => ({
  standing: { entry, exits } as unknown as JsonObject,
})

export function mending({ venue, acts, pricing }: Needs) {
  const entryFills = (memory: Memory, entry: Entry): Promise<Fill[]> =>
    wholeFills(
      async () => ofEntry(await venue.fillsSince(memory.account, memory.since_ms), entry),
      (fills) => isAtLeast(fills, entry.filledSize),
    )

  const ownFills = async (task: TaskView): Promise<Fill[]> => {
    const memory = memoryOf(task)
    const names = ['entry', 'tp', 'sl', `tp${again}`, `sl${again}`, ...closings()]
    const cloids = new Set(names.map((name) => cloidOf(task.id, name)))
    const found = await Promise.all([...cloids].map((cloid) => venue.order(memory.account, cloid)))
    const own = new Set(found.flatMap((each) => (each ? [each.order.orderId] : [])))
    return (await venue.fillsSince(memory.account, memory.since_ms)).filter(
      ({ orderId, cloid }) => own.has(orderId) || (cloid !== null && cloids.has(cloid)),
    )
  }

  const finish: Finish = async (task, { entry, exits, closedSize = null }, effects, error) => {
    const isEntry = ({ orderId }: Fill) => orderId === entry.orderId
    // Every order of ours that filled, so that an unwound position is told with both of its sides.
    const fills = await wholeFills(
      () => ownFills(task),
      (all) =>
        isAtLeast(ofEntry(all, entry), entry.filledSize) &&
        isAtLeast(
          all.filter((fill) => !isEntry(fill)),
          closedSize,
        ),
    )
    const common = {
      effects,
      data: { fills: fillsOf(fills), ...positionNote('perp', fills) },
      result: resultOf(task.id, memoryOf(task), { entry, exits, fills }),
    }
    if (!error) return { ...common, end: 'completed', outcome: 'partial' }
    const outcome = fills.length > 0 ? ('partial' as const) : ('not_executed' as const)
    return { ...common, end: 'failed', outcome, error: { ...error, upstream: upstreamName } }
  }

  const repairPlan = async (task: TaskView, { entry, exits }: Pick<Standing, 'entry' | 'exits'>) => {
    const memory = memoryOf(task)
    const [fills, state] = await Promise.all([entryFills(memory, entry), venue.account(memory.account)])
    const size = sumOf(fills).size
    const missing = wantedExits(memory).filter(({ leg }) =>
      exits.some((exit) => exit.leg === leg && exit.state === 'gone'),
    )
    const orders = missing.map((exit) =>
      exitOrder(task.id, memory, { ...exit, size, name: `${exit.leg}${again}` }, pricing),
    )
    const held = positionOf(state, memory.symbol)?.signedSize.replace('-', '')
    // Exits of the whole position cancel each other and end with it; beside an older position they must not touch it.
    const grouping =
      held !== undefined && compareDecimals(held, size) === 0 && missing.length === exits.length
        ? ('position' as const)
        : ('none' as const)
    return { orders, legs: missing.map(({ leg }) => `${leg}${again}`), grouping }
  }

  const mend = async (
    task: TaskView,
    { now }: StepContext,
    { entry, exits }: Standing,
    effects: EffectUpdate[],
  ): Promise<StepResult> => {
    const data = kept(entry, exits)
    if (entry.status === 'resting') return { next: 'unwind', state: 'settling', data, effects }
    const memory = memoryOf(task)
    const { orders, legs, grouping } = await repairPlan(task, { entry, exits })
    const plan: ActPlan = {
      leg: 'repair',
      ...planOf(memory),
      facts: factsOf(memory, { usdMicros: 0n, exit: true }),
      action: { type: 'order', orders, grouping },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: memory.symbol })),
    }
    const refused = (): StepResult => ({ next: 'unwind', state: 'settling', data, effects })
    return acts.intend(task, plan, { now, next: 'repaired', data, effects, refused })
  }

  const repair: Step = (task, context) => mend(task, context, standingOf(task) as Standing, [])

  const settleRepair = (task: TaskView, signal: AbortSignal, wanted: ExitLeg[]) => {
    const { account, since_ms: sinceMs } = memoryOf(task)
    return acts.settle<Exit[]>({
      task,
      leg: 'repair',
      signal,
      read: (legs) => (legs.length === wanted.length ? exitsOfReply(wanted, legs) : undefined),
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        const names = wanted.map((leg) => cloidOf(task.id, `${leg}${again}`))
        const found = await Promise.all(names.map((cloid) => evidence.find({ cloid })))
        return found.some((each) => each !== undefined) ? exitsOfReply(wanted, []) : undefined
      },
    })
  }

  const repaired: Step = async (task, { signal, now: at }) => {
    const { entry, exits } = standingOf(task)
    const missing = exits.filter(({ state }) => state === 'gone')
    let effects: EffectUpdate[] = []
    let repairs = task.data.repairs as unknown as PlacedExits | undefined
    if (!repairs) {
      const wanted = missing.map(({ leg }) => leg)
      const verdict = await settleRepair(task, signal, wanted)
      effects = verdict.effects
      if (verdict.is === 'doubt') return acts.wait(task, 'repaired', verdict)
      const retry = acts.retryThrottled(task, verdict, { leg: 'repair', next: 'repair', now: at })
      if (retry) return retry
      const placed =
        verdict.is === 'done'
          ? verdict.value
          : missing.map((exit) => ({ ...exit, orderId: null, error: verdict.message }))
      repairs = { exits: placed, landedAtMs: await venue.timeMs(memoryOf(task).account) }
    }
    const found = await completeExits(venue, task, { ...repairs, signal, suffix: again })
    if (!found.isComplete) {
      const waiting = acts.wait(task, 'repaired', { effects })
      const known: PlacedExits = { ...repairs, exits: found.exits }
      return { ...waiting, data: { ...waiting.data, repairs: known as unknown as JsonObject } }
    }
    const placed = found.exits
    const now = exits.map((exit) =>
      exit.state === 'gone' ? placed.find(({ leg }) => leg === exit.leg)! : exit,
    )
    const without = now.filter(({ state }) => state === 'gone')
    if (without.some(({ leg }) => leg === 'sl') || (without.length > 0 && !memoryOf(task).sl))
      return { next: 'unwind', state: 'settling', data: kept(entry, now), effects }
    const lost = without[0]
    const error = lost
      ? { code: 'venue_rejected', message: `The take-profit is missing: ${lost.error}` }
      : null
    return finish(task, { entry, exits: now }, effects, error)
  }

  return { mend, steps: { repair, repaired, ...unwinding({ venue, acts, pricing, finish }) } }
}
