import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import {
  fromFixedPoint,
  fromUnits,
  mulDiv,
  toFixedPoint,
  toMicros,
  toUnits,
  unitsWorth,
} from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { defaultSlippageBps, riseBps } from '#market/strategies/entry.ts'
import type { OrderIntent } from '#market/strategies/strategy.ts'
import type { Queryable } from '#store/query.ts'
import type { SkipReason } from '#store/tables/strategies.ts'
import {
  keyOf,
  type LiveCall,
  type LiveCallDeps,
  type Refusal,
  reducingCaller,
  type Started,
  skipReasonOf,
  startCall,
} from './live-calls.ts'
import { type ChildTask, isOpen, readTasks, startedAtOf, taskOfKey } from './live-records.ts'
import type { OrderedRun, StrategyTerms } from './mode-driver.ts'

/** Carries out the orders of a decision that opens or adjusts positions, each by one task, and waits for their ends. */

export type OrderDeps = LiveCallDeps & {
  db: Queryable
  /** The clock by which runs begin. */
  scheduleClock: Clock
  /** Returns the middle price of each market. */
  mids(): Promise<ReadonlyMap<string, string>>
  /** Returns why an entry in a market may not be made now, by what the venue shows. */
  entryRefusalAtVenue(order: OrderIntent, terms: StrategyTerms): Promise<Refusal | undefined>
}
/** What is known of the orders of a decision, by their places in it. */
type OrdersData = { tasks?: Record<string, string>; refused?: Record<string, Refusal> }
type Progress = { tasks: Record<string, string>; refused: Record<string, Refusal>; isBusy: boolean }

const waitMs = 1_000
/** An entry is not made later than this after its run began: its decision is of a price that has passed. */
const entryMsMax = 120_000

export async function actOnOrders(deps: OrderDeps, run: OrderedRun, terms: StrategyTerms): Promise<LiveAct> {
  const { tasks = {}, refused = {} } = run.data as OrdersData
  const progress: Progress = { tasks: { ...tasks }, refused: { ...refused }, isBusy: false }
  const madeAt = await startedAtOf(deps.db, run.executionId)
  for (const [n, order] of run.decision.orders.entries()) {
    if (progress.tasks[n] !== undefined || progress.refused[n] !== undefined) continue
    note(progress, n, await startOrder(deps, run, { order, n, terms, madeAt }))
  }
  const { isBusy, ...data } = progress
  const states = await readTasks(deps.db, Object.values(progress.tasks))
  const isWaiting = [...states.values()].some(isOpen)
  if (isBusy || isWaiting) return { waitMs, data: data as JsonObject }
  return {
    end: endOf([...states.values()], Object.values(progress.refused)),
    hasActed: states.size > 0,
    data: data as JsonObject,
  }
}

function note(progress: Progress, n: number, started: Started): void {
  if ('taskId' in started) progress.tasks[n] = started.taskId
  else if ('refusal' in started) progress.refused[n] = started.refusal
  else progress.isBusy = true
}

type Starting = { order: OrderIntent; n: number; terms: StrategyTerms; madeAt: Date | null }

async function startOrder(deps: OrderDeps, run: OrderedRun, starting: Starting): Promise<Started> {
  const { order, n, terms, madeAt } = starting
  const name = `${run.executionId} order ${run.seq} ${n}`
  // An earlier run of the step has started it, whatever has happened since.
  const earlier = await taskOfKey(deps.db, terms.userId, keyOf(name))
  if (earlier !== undefined) return { taskId: earlier }
  if (order.order_type === 'stop')
    return { refusal: { code: 'conflict', message: 'It waits for a close beyond the price' } }
  if (order.reduce_only) return startCall(deps, { ...saleOf(order, run.caller), name, madeAt })
  const now = deps.scheduleClock.now()
  if (now.getTime() - (madeAt ?? now).getTime() > entryMsMax)
    return { refusal: { code: 'conflict', message: 'The decision is too old for an entry' } }
  const refusal = await deps.entryRefusalAtVenue(order, terms)
  if (refusal) return { refusal }
  const sized = await withinMaximum(deps, order, terms)
  return startCall(deps, {
    operation: 'perp_open',
    input: openInput(sized),
    caller: run.caller,
    name,
    madeAt,
  })
}

const wholeBps = 10_000n

/**
 * Makes a market order smaller whose price has risen since the decision, so that it costs no more than the decision
 * allows: limits count it at its worst price.
 */
async function withinMaximum(
  { mids }: OrderDeps,
  order: OrderIntent,
  terms: StrategyTerms,
): Promise<OrderIntent> {
  const { asset, side, size, usd_max, slippage_bps = defaultSlippageBps } = order
  const decimals = terms.config.decision.markets[asset]?.size_decimals
  const mid = usd_max === undefined ? undefined : (await mids()).get(asset)
  if (usd_max === undefined || mid === undefined || decimals === undefined) return order
  const slippage = side === 'buy' ? BigInt(slippage_bps) : 0n
  const worst = mulDiv(toFixedPoint(mid), wholeBps + slippage + BigInt(riseBps), wholeBps, 'up')
  const units = unitsWorth(toMicros(usd_max), decimals, fromFixedPoint(worst))
  const wanted = toUnits(size, decimals)
  return units < wanted ? { ...order, size: fromUnits(units, decimals) } : order
}

const saleOf = (
  { asset, size, slippage_bps }: OrderIntent,
  caller: Caller,
): Pick<LiveCall, 'operation' | 'input' | 'caller'> => ({
  operation: 'perp_close',
  input: { asset, size, ...slippageOf(slippage_bps) },
  caller: reducingCaller(caller),
})

const slippageOf = (bps: number | undefined) =>
  bps === undefined ? {} : { slippage_pct: fromUnits(BigInt(bps), 2) }

export function openInput(order: OrderIntent): JsonObject {
  const { asset, side, size, price, leverage = 1, is_cross = false, take_profit, stop_loss } = order
  return {
    asset,
    side: side === 'buy' ? 'long' : 'short',
    size,
    leverage,
    is_cross,
    ...(order.order_type === 'limit' && price !== undefined
      ? { order_type: 'limit', limit_price: price, tif: 'gtc' }
      : slippageOf(order.slippage_bps)),
    ...(take_profit && { tp_price: take_profit.price, tp_is_market: take_profit.is_market }),
    ...(stop_loss && { sl_price: stop_loss.price, sl_is_market: stop_loss.is_market }),
  }
}

/** The result of one pass over the orders of a run: the run waits, or it has ended. */
export type LiveAct =
  | { waitMs: number; data: JsonObject }
  | {
      end: LiveEnd
      hasActed: boolean
      data: JsonObject
      /** The markets in which an exit has left what the venue does not close alone. */
      left?: readonly string[]
    }
export type LiveEnd = {
  outcome: 'executed' | 'partial' | 'not_executed'
  error: { code: string; message: string; retryable: boolean } | null
  skipReason: SkipReason | null
}

/** Returns what the orders have done together; a run that has done nothing says why by its first refusal. */
export function endOf(tasks: readonly ChildTask[], refusals: readonly Refusal[]): LiveEnd {
  const executed = tasks.filter(({ outcome }) => outcome === 'executed').length
  const hasActed = tasks.some(({ outcome }) => outcome !== null && outcome !== 'not_executed')
  const isWhole = executed === tasks.length && refusals.length === 0
  const refusal = refusals.find((each) => skipReasonOf(each) !== null) ?? refusals[0] ?? failureOf(tasks)
  const outcome = isWhole ? 'executed' : hasActed ? 'partial' : 'not_executed'
  return {
    outcome,
    error: refusal ? { code: refusal.code, message: refusal.message, retryable: false } : null,
    skipReason: outcome === 'not_executed' && refusal ? skipReasonOf(refusal) : null,
  }
}

function failureOf(tasks: readonly ChildTask[]): Refusal | undefined {
  const failed = tasks.find(({ error }) => error !== null)
  if (!failed) return undefined
  const { code = 'internal', message = 'The order did not execute' } = failed.error ?? {}
  return { code, message }
}
