import { scheduleNow } from '#engines/venue/records/account-store.ts'
import { type OwnPosition, ownPosition } from '#engines/venue/records/reducible-part.ts'
import { toFixedPoint } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { nextExitStep } from '#market/strategies/exit-sequence.ts'
import type { OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type LiveCallDeps, type Refusal, reducingCaller, type Started, startCall } from './live-calls.ts'
import type { LiveAct } from './live-orders.ts'
import {
  isOpen,
  marketsOfOpenTasks,
  type OwnOrder,
  openOrdersOf,
  readTasks,
  startedAtOf,
} from './live-records.ts'
import { readVenue, type VenueReadDeps, type VenueView } from './live-venue.ts'
import type { OrderedRun, StrategyTerms } from './mode-driver.ts'

/**
 * Closes everything that a strategy has open, and looks again until the venue says that nothing is left. The close comes
 * before the stops are cancelled, and orders that could open another position are cancelled before it.
 */

export type ExitDeps = VenueReadDeps & LiveCallDeps
/** What has been done in one market: the present task, and how many closes and cancels were tried. */
type AssetExit = {
  task?: string
  closes: number
  cancels: number
  hasEnded?: true
  /** The venue takes no order for so small a part of a position, which therefore stays open. */
  isLeft?: true
}
type ExitData = { assets?: Record<string, AssetExit>; refusal?: Refusal }
type Exiting = {
  run: OrderedRun
  terms: StrategyTerms
  madeAt: Date | null
  view: VenueView
  own: ReadonlyMap<string, OwnPosition | undefined>
  orders: readonly OwnOrder[]
  opening: ReadonlySet<string>
}
type AssetStep = { asset: string; at: AssetExit; exiting: Exiting }

const waitMs = 1_000
/** A market whose close or cancel was refused is tried again after this time. */
const refusedWaitMs = 5_000
/** After this many closes and cancels of one market the run ends, and another one goes on. */
const attemptsMax = 20
/** An exit decides again until the record has what the venue has done; so often it asks for that once more. */
const recheckEvery = 5
/** How far a close may be from the middle price, in percent: further with each attempt. */
const slippages = ['0.5', '1', '3', '8'] as const

export async function actOnExit(deps: ExitDeps, run: OrderedRun, terms: StrategyTerms): Promise<LiveAct> {
  const data = run.data as ExitData
  const assets = assetsToClose(run, terms)
  const before = data.assets ?? {}
  const states = await readTasks(
    deps.db,
    assets.flatMap((asset) => before[asset]?.task ?? []),
  )
  const waiting = assets.filter((asset) => {
    const state = states.get(before[asset]?.task ?? '')
    return state !== undefined && isOpen(state)
  })
  const due = assets.filter((asset) => !waiting.includes(asset) && !before[asset]?.hasEnded)
  const after: Record<string, AssetExit> = { ...before }
  let refusal = data.refusal
  let isRefused = false
  if (due.length > 0) {
    const exiting = await readExiting(deps, run, { terms, assets: due })
    if (run.seq % recheckEvery === 1) await importMissing(deps, exiting, due)
    for (const asset of due) {
      const known: AssetExit = before[asset] ?? { closes: 0, cancels: 0 }
      const { task: _ended, ...at } = known
      const stepped = await stepOf(deps, { asset, at, exiting })
      after[asset] = stepped.at
      refusal = stepped.refusal ?? refusal
      isRefused ||= stepped.refusal !== undefined
    }
  }
  const left = assets.filter((asset) => !after[asset]?.hasEnded)
  const isGivenUp = left.every((asset) => attemptsOf(after[asset]) >= attemptsMax)
  if (left.length > 0 && !isGivenUp)
    return {
      waitMs: isRefused ? refusedWaitMs : waitMs,
      data: { assets: after, ...(refusal && { refusal }) } as JsonObject,
    }
  return endOfExit(after, left, refusal)
}

function endOfExit(
  assets: Readonly<Record<string, AssetExit>>,
  open: readonly string[],
  refusal: Refusal | undefined,
): LiveAct {
  const tooSmall = Object.keys(assets).filter((asset) => assets[asset]?.isLeft)
  const isWhole = open.length + tooSmall.length === 0
  const error = open.length > 0 ? leftOpen(open, refusal) : tooSmall.length > 0 ? leftBeside(tooSmall) : null
  return {
    end: { outcome: isWhole ? 'executed' : 'partial', error, skipReason: null },
    hasActed: true,
    ...(open.length === 0 && tooSmall.length > 0 && { left: tooSmall }),
    data: { assets } as JsonObject,
  }
}

const attemptsOf = (at: AssetExit | undefined): number => (at ? at.closes + at.cancels : 0)

/** All markets of the strategy: one without a position may have an order that still opens one. */
const assetsToClose = ({ decision }: OrderedRun, { config }: StrategyTerms): string[] =>
  [...new Set([...Object.keys(config.decision.markets), ...decision.orders.map(({ asset }) => asset)])].sort()

const leftOpen = (assets: readonly string[], refusal: Refusal | undefined) => ({
  code: refusal?.code ?? 'venue_rejected',
  message: `${assets.join(', ')} is still open: ${refusal?.message ?? 'no close was filled whole'}`,
  retryable: false,
})

const leftBeside = (assets: readonly string[]) => ({
  code: 'venue_rejected',
  message: `What the strategy has left of ${assets.join(', ')} is worth less than the least order of the venue, and lies beside a position that it has not opened, so it cannot be closed alone: it keeps its stop and target. Close the whole position with \`perp_close\``,
  retryable: false,
})

async function readExiting(
  deps: ExitDeps,
  run: OrderedRun,
  { terms, assets }: { terms: StrategyTerms; assets: readonly string[] },
): Promise<Exiting> {
  const { userId, strategyId } = terms
  const whose = { userId, strategyId }
  const [view, orders, opening, madeAt, parts] = await Promise.all([
    readVenue(deps, { userId, assets }),
    openOrdersOf(deps.db, { ...whose, assets }),
    marketsOfOpenTasks(deps.db, whose, ['perp_open']),
    startedAtOf(deps.db, run.executionId),
    Promise.all(assets.map((symbol) => ownPosition(deps.db, { userId, symbol, schedule: strategyId }))),
  ])
  const own = new Map(assets.map((asset, at) => [asset, parts[at]]))
  return { run, terms, madeAt, view, own, orders, opening }
}

/** Has the fills imported by which the venue has closed something that the record still has, such as those of a stop. */
async function importMissing(
  { db, clock }: ExitDeps,
  { own, terms, view }: Exiting,
  assets: readonly string[],
): Promise<void> {
  const isMissing = (asset: string): boolean => {
    const part = own.get(asset)
    return (
      part?.isSettled === true && openUnits(part, view.positions.get(asset) ?? '0') < toFixedPoint(part.size)
    )
  }
  if (assets.some(isMissing)) await scheduleNow(db, terms.userId, clock.now())
}

type Stepped = { at: AssetExit; refusal?: Refusal }

async function stepOf(deps: ExitDeps, step: AssetStep): Promise<Stepped> {
  const { asset, at, exiting } = step
  // The fills of an entry that has no end yet may still come.
  if (exiting.opening.has(asset)) return { at }
  const own = exiting.own.get(asset)
  const positionUnits = openUnits(own, exiting.view.positions.get(asset) ?? '0')
  const next = nextExitStep({
    positionUnits,
    exitingUnits: own?.isSettled === false ? positionUnits : 0n,
    ...ownOrders(exiting, asset),
  })
  if (next.step === 'end') return { at: { ...at, hasEnded: true } }
  if (next.step === 'wait' || attemptsOf(at) >= attemptsMax) return { at }
  return next.step === 'exit' ? close(deps, step) : cancel(deps, step, next.orders[0]!)
}

/** What the strategy holds of what the venue shows, without a sign. */
function openUnits(own: OwnPosition | undefined, shown: string): bigint {
  const units = toFixedPoint(shown)
  if (!own || units === 0n || own.isLong !== units > 0n) return 0n
  const held = units < 0n ? -units : units
  const part = toFixedPoint(own.size)
  return part < held ? part : held
}

/** The open orders of the strategy in a market, by their ids at the venue. */
function ownOrders({ view, orders }: Exiting, asset: string): { entries: string[]; protective: string[] } {
  const own = new Set(orders.filter((each) => each.asset === asset).map(({ cloid }) => cloid))
  const open = view.orders.filter(({ cloid }) => cloid !== null && own.has(cloid))
  const idsOf = (isWanted: (order: OpenOrder) => boolean) =>
    open.filter(isWanted).map(({ orderId }) => String(orderId))
  return {
    entries: idsOf(({ reduceOnly }) => !reduceOnly),
    // An exit with a parent ends with the entry that it waits for.
    protective: idsOf(({ reduceOnly, parentId }) => reduceOnly && parentId === null),
  }
}

async function close(deps: ExitDeps, { asset, at, exiting }: AssetStep): Promise<Stepped> {
  const { run, madeAt } = exiting
  const started = await startCall(deps, {
    operation: 'perp_close',
    // Without a size it closes all that the strategy has opened, and no more.
    input: { asset, slippage_pct: slippages[Math.min(at.closes, slippages.length - 1)]! },
    caller: reducingCaller(run.caller),
    name: `${run.executionId} close ${run.seq} ${asset} ${at.closes}`,
    madeAt,
  })
  return after({ ...at, closes: at.closes + 1 }, started, at)
}

async function cancel(deps: ExitDeps, { at, exiting }: AssetStep, orderId: string): Promise<Stepped> {
  const { run, madeAt } = exiting
  const started = await startCall(deps, {
    operation: 'perp_cancel',
    input: { order_id: orderId },
    caller: reducingCaller(run.caller),
    name: `${run.executionId} cancel ${run.seq} ${orderId} ${at.cancels}`,
    madeAt,
  })
  return after({ ...at, cancels: at.cancels + 1 }, started, at)
}

/** A call that was not answered is made again under the same key, so it does not count. */
function after(counted: AssetExit, started: Started, before: AssetExit): Stepped {
  if ('taskId' in started) return { at: { ...counted, task: started.taskId } }
  if (!('refusal' in started)) return { at: before }
  const { refusal } = started
  // A close of a whole position has no minimum, so this one is a part beside what a person has.
  if (refusal.issue === 'below_minimum') return { at: { ...counted, hasEnded: true, isLeft: true } }
  return { at: counted, refusal }
}
