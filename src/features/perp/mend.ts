import { type ActPlan, cloidOf, type VenueActs } from '#features/venue/act.ts'
import { type Entry, type Exit, sumOf } from '#features/venue/bracket.ts'
import { type CancelOutcome, lookUpEnd } from '#features/venue/cancel.ts'
import { exitsOfReply, resolveExits } from '#features/venue/entry-outcome.ts'
import { exitOrder, type Pricing } from '#features/venue/exits.ts'
import { gridOf, type Memory, memoryOf, wantedExits } from '#features/venue/memory.ts'
import { agreedPosition, gatherEvidence } from '#features/venue/order-evidence.ts'
import { factsOf, planOf, upstreamName } from '#features/venue/place.ts'
import { fillsOf, resultOf, type Standing } from '#features/venue/report.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import type { Fill, Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'

/** A position never stays without the stop that was asked for: the exits are placed again, or the position goes. */

type Needs = {
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince' | 'recentFills' | 'mids' | 'account'>
  acts: VenueActs
  pricing: Pricing
}

/** What comes down to it is that the position goes; the price is bounded all the same. */
const unwindSlippagePercent = '8'
const closingsMost = 3
const again = '2'

const standingOf = (task: TaskView): Pick<Standing, 'entry' | 'exits'> =>
  task.data.standing as unknown as Pick<Standing, 'entry' | 'exits'>
const kept = (entry: Entry, exits: Exit[]): JsonObject => ({
  standing: { entry, exits } as unknown as JsonObject,
})

export function mending({ venue, acts, pricing }: Needs) {
  const entryFills = async (memory: Memory, { orderId }: Entry): Promise<Fill[]> =>
    (await venue.fillsSince(memory.account, memory.since_ms)).filter((fill) => fill.orderId === orderId)

  /** Every order of ours that filled, so that an unwound position is told with both of its sides. */
  const allFills = async (task: TaskView): Promise<Fill[]> => {
    const memory = memoryOf(task)
    const names = ['entry', 'tp', 'sl', `tp${again}`, `sl${again}`, ...closings()]
    const cloids = new Set(names.map((name) => cloidOf(task.id, name)))
    const found = await Promise.all([...cloids].map((cloid) => venue.order(memory.account, cloid)))
    const own = new Set(found.flatMap((each) => (each ? [each.order.orderId] : [])))
    return (await venue.fillsSince(memory.account, memory.since_ms)).filter(
      ({ orderId, cloid }) => own.has(orderId) || (cloid !== null && cloids.has(cloid)),
    )
  }

  const finish = async (
    task: TaskView,
    { entry, exits }: Pick<Standing, 'entry' | 'exits'>,
    effects: EffectUpdate[],
    error: { code: string; message: string } | null,
  ): Promise<StepResult> => {
    const fills = await allFills(task)
    const common = {
      ...{ effects, data: { fills: fillsOf(fills) } },
      result: resultOf(task.id, memoryOf(task), { entry, exits, fills }),
    }
    if (!error) return { ...common, end: 'completed', outcome: 'partial' }
    const outcome = fills.length > 0 ? ('partial' as const) : ('not_executed' as const)
    return { ...common, end: 'failed', outcome, error: { ...error, upstream: upstreamName } }
  }

  const repairPlan = async (task: TaskView, { entry, exits }: Pick<Standing, 'entry' | 'exits'>) => {
    const memory = memoryOf(task)
    const [fills, { positions }] = await Promise.all([
      entryFills(memory, entry),
      venue.account(memory.account),
    ])
    const size = sumOf(fills).size
    const missing = wantedExits(memory).filter(({ leg }) =>
      exits.some((exit) => exit.leg === leg && exit.state === 'gone'),
    )
    const orders = missing.map((exit) =>
      exitOrder(task.id, memory, { ...exit, size, name: `${exit.leg}${again}` }, pricing),
    )
    const held = positions.find(({ symbol }) => symbol === memory.symbol)?.signedSize.replace('-', '')
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
      ...{ leg: 'repair', ...planOf(memory), facts: factsOf(memory, { usdMicros: 0n, exit: true }) },
      action: { type: 'order', orders, grouping },
      notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: memory.symbol })),
    }
    const refused = (): StepResult => ({ next: 'unwind', state: 'settling', data, effects })
    return acts.intend(task, plan, { now, next: 'repaired', data, effects, refused })
  }

  const repair: Step = (task, context) => mend(task, context, standingOf(task) as Standing, [])

  const repaired: Step = async (task, { signal, now: at }) => {
    const { entry, exits } = standingOf(task)
    const missing = exits.filter(({ state }) => state === 'gone')
    const names = missing.map(({ leg }) => cloidOf(task.id, `${leg}${again}`))
    const { account, since_ms: sinceMs } = memoryOf(task)
    const wanted = missing.map(({ leg }) => leg)
    const verdict = await acts.settle<Exit[]>({
      ...{ task, leg: 'repair', signal },
      read: (legs) => (legs.length === missing.length ? exitsOfReply(wanted, legs) : undefined),
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        const found = await Promise.all(names.map((cloid) => evidence.find({ cloid })))
        return found.some((each) => each !== undefined) ? exitsOfReply(wanted, []) : undefined
      },
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'repaired', verdict.effects, verdict.cause)
    const retry = acts.retryThrottled(task, verdict, { leg: 'repair', next: 'repair', now: at })
    if (retry) return retry
    const said =
      verdict.is === 'done'
        ? verdict.value
        : missing.map((exit) => ({ ...exit, orderId: null, error: verdict.message }))
    const placed = await resolveExits(venue, task, {
      ...{ exits: said, entryRests: false, suffix: again, allRecords: true },
      // One action placed them all: where one of them shows, the others would show as well.
      isSettled: verdict.is === 'done',
    })
    const now = exits.map((exit) =>
      exit.state === 'gone' ? placed.find(({ leg }) => leg === exit.leg)! : exit,
    )
    const without = now.filter(({ state }) => state === 'gone')
    if (without.some(({ leg }) => leg === 'sl') || (without.length > 0 && !memoryOf(task).sl))
      return { next: 'unwind', state: 'settling', data: kept(entry, now), effects: verdict.effects }
    const lost = without[0]
    const error = lost
      ? { code: 'venue_rejected', message: `The take-profit is missing: ${lost.error}` }
      : null
    return finish(task, { entry, exits: now }, verdict.effects, error)
  }

  return { mend, steps: { repair, repaired, ...unwinding({ venue, acts, pricing, finish, entryFills }) } }
}

const closings = () => Array.from({ length: closingsMost }, (_, at) => `close${at + 1}`)

type Finish = (
  task: TaskView,
  standing: Pick<Standing, 'entry' | 'exits'>,
  effects: EffectUpdate[],
  error: { code: string; message: string } | null,
) => Promise<StepResult>
type UnwindNeeds = Needs & {
  finish: Finish
  entryFills: (memory: Memory, entry: Entry) => Promise<Fill[]>
}

function unwinding({ venue, acts, pricing, finish, entryFills }: UnwindNeeds) {
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
  const openSize = async (task: TaskView): Promise<string> => {
    const memory = memoryOf(task)
    const [fills, position] = await Promise.all([
      entryFills(memory, standingOf(task).entry),
      agreedPosition(venue, memory.account, memory.symbol),
    ])
    const filled = sumOf(fills).size
    const sameSide = position.startsWith('-') !== memory.is_buy
    if (!sameSide) return '0'
    const held = position.replace('-', '')
    return compareDecimals(held, filled) < 0 ? held : filled
  }

  const close = async (
    task: TaskView,
    { now }: StepContext,
    effects: EffectUpdate[],
  ): Promise<StepResult> => {
    const memory = memoryOf(task)
    const { entry, exits } = standingOf(task)
    const round = Number(task.data.closings ?? 0)
    const size = await openSize(task)
    if (compareDecimals(size, '0') === 0) return finish(task, { entry, exits }, effects, closedError(exits))
    const stands = { code: 'venue_rejected', message: 'The position stands without its stop: close it' }
    if (round >= closingsMost) return finish(task, { entry, exits }, effects, stands)
    const mid = (await venue.mids()).get(memory.symbol) ?? memory.price
    const isBuy = !memory.is_buy
    const name = `close${round + 1}`
    const order: VenueOrder = {
      ...{ asset: memory.asset, isBuy, size, reduceOnly: true, when: { tif: 'ioc' } },
      price: pricing.boundPrice(mid, unwindSlippagePercent, isBuy, gridOf(memory)),
      cloid: cloidOf(task.id, name),
    }
    const plan: ActPlan = {
      ...{ leg: name, ...planOf(memory), facts: factsOf(memory, { usdMicros: 0n, exit: true }) },
      action: { type: 'order', orders: [order], grouping: 'none' },
      notes: [{ cloid: order.cloid, leg: name, symbol: memory.symbol }],
    }
    const refused = (): StepResult => ({
      park: { afterMs: 1_000, next: 'unwind' },
      state: 'settling',
      effects,
    })
    return acts.intend(task, plan, { now, next: 'closed', data: { closings: round + 1 }, effects, refused })
  }

  const unwind: Step = async (task, context) => {
    const memory = memoryOf(task)
    const { entry } = standingOf(task)
    if (entry.status !== 'resting' || entry.orderId === null) return close(task, context, [])
    const plan: ActPlan = {
      ...{ leg: 'withdrawn', ...planOf(memory), facts: factsOf(memory, { usdMicros: 0n, exit: true }) },
      action: { type: 'cancel', cancels: [{ asset: memory.asset, orderId: entry.orderId }] },
    }
    const refused = (): StepResult => ({ park: { afterMs: 1_000, next: 'unwind' }, state: 'settling' })
    return acts.intend(task, plan, { now: context.now, next: 'withdrawn', refused })
  }

  const withdrawn: Step = async (task, context) => {
    const { account, since_ms: sinceMs, size } = memoryOf(task)
    const verdict = await acts.settle<CancelOutcome>({
      ...{ task, leg: 'withdrawn', signal: context.signal },
      read: ([leg]: LegStatus[]) =>
        leg?.is === 'accepted' ? { status: 'canceled', isCancelled: true } : undefined,
      look: (how) =>
        lookUpEnd(venue, { account, sinceMs, cloid: cloidOf(task.id, 'entry'), left: size, ...how }),
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'withdrawn', verdict.effects, verdict.cause)
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
      ...{
        task,
        leg: name,
        signal: context.signal,
        read: (legs: LegStatus[]) => (legs.length > 0 ? true : undefined),
      },
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        return (await evidence.find({ cloid: cloidOf(task.id, name) })) ? true : undefined
      },
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'closed', verdict.effects, verdict.cause)
    const retry = acts.retryThrottled(task, verdict, { leg: name, next: 'unwind', now: context.now })
    // A refused attempt does not count: the same close is signed again.
    if (retry) return { ...retry, data: { ...retry.data, closings: Number(task.data.closings ?? 1) - 1 } }
    return close(task, context, verdict.effects)
  }

  return { unwind, withdrawn, closed }
}
