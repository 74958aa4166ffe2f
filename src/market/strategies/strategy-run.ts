import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import {
  type Account,
  applyFunding,
  availableMicros,
  type ClosedTrade,
  equityMicros,
  type Marks,
  openAccount,
} from './account.ts'
import type { Windows } from './candle-columns.ts'
import { decide, decideExit } from './decide.ts'
import {
  countEntry,
  countTrade,
  entryGuard,
  type GuardConfig,
  type GuardState,
  mustFlatten,
  openGuards,
  readGuards,
} from './guards.ts'
import { type MatchedFill, movePrice, type PriceMove } from './matching.ts'
import type { Decision, DecisionConfig, OrderIntent, StrategyState } from './strategy.ts'

/**
 * A strategy with an account that no venue knows: backtests and paper feed it prices, funding and closes, and it decides,
 * fills and guards the same way for both.
 */

export type RunConfig = {
  decision: DecisionConfig
  guards: GuardConfig
  /** What entries may be worth together; null: no budget. */
  budgetMicros: bigint | null
}
export type StrategyRun = {
  account: Account
  guards: GuardState
  marks: Marks
  pending: readonly OrderIntent[]
  resting: readonly OrderIntent[]
}

export const openRun = (cashMicros: bigint, dayEndsMs: number): StrategyRun => ({
  account: openAccount(cashMicros),
  guards: openGuards(cashMicros, dayEndsMs),
  marks: new Map(),
  pending: [],
  resting: [],
})

export const equityOf = ({ account, marks }: StrategyRun, { decision }: RunConfig): bigint =>
  equityMicros(account, marks, decision.markets)

export type Moved = { run: StrategyRun; trades: readonly ClosedTrade[]; fills: readonly MatchedFill[] }

/** Moves the price of an asset, and reads the guards at the last of its prices. */
export function applyPrices(
  run: StrategyRun,
  move: PriceMove,
  { config, dayEndsMs }: { config: RunConfig; dayEndsMs: number },
): Moved {
  const matched = movePrice(run, move, config.decision.markets)
  const last = move.path.at(-1)
  const marks = last === undefined ? run.marks : new Map(run.marks).set(move.asset, last)
  let guards = run.guards
  for (let entry = 0; entry < matched.entries; entry++) guards = countEntry(guards, move.atMs)
  for (const { netMicros } of matched.trades) guards = countTrade(guards, netMicros)
  const { account, pending, resting } = matched
  const moved = { ...run, account, pending, resting, marks, guards }
  const { trades, fills } = matched
  return { run: applyGuards(moved, move.atMs, { config, dayEndsMs }), trades, fills }
}

/** Reads the guards; what rests is cancelled once one of them trips. */
export function applyGuards(
  run: StrategyRun,
  atMs: number,
  { config, dayEndsMs }: { config: RunConfig; dayEndsMs: number },
): StrategyRun {
  const guards = readGuards(run.guards, config.guards, {
    atMs,
    equityMicros: equityOf(run, config),
    dayEndsMs,
  })
  if (guards === run.guards) return run
  const hasTripped = guards.tripped !== null || guards.trippedToday !== null
  return { ...run, guards, resting: hasTripped ? [] : run.resting }
}

export function applyFundingRate(
  run: StrategyRun,
  { asset, rateUnits }: { asset: string; rateUnits: bigint },
  { decision }: RunConfig,
): StrategyRun {
  const priceUnits = run.marks.get(asset)
  if (priceUnits === undefined || !run.account.positions.has(asset)) return run
  return { ...run, account: applyFunding(run.account, { asset, rateUnits, priceUnits }, decision.markets) }
}

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)

/** What a decision reads of a run. */
export function stateOf(run: StrategyRun, nowMs: number, config: RunConfig): StrategyState {
  const { account, guards, resting } = run
  const equity = equityOf(run, config)
  const { markets } = config.decision
  const positions: Record<string, StrategyState['positions'][string]> = {}
  for (const [asset, { isLong, sizeUnits }] of account.positions)
    positions[asset] = {
      side: isLong ? 'long' : 'short',
      size: fromUnits(sizeUnits, markets[asset]?.size_decimals ?? 0),
    }
  const sides: Record<string, ('buy' | 'sell')[]> = {}
  for (const { asset, side } of resting) sides[asset] = [...(sides[asset] ?? []), side]
  return {
    now_ms: nowMs,
    day_ends_ms: guards.dayEndsMs,
    equity_usd: usd(equity),
    available_usd: usd(availableMicros(account, equity)),
    budget_left_usd: config.budgetMicros === null ? null : usd(config.budgetMicros - account.spentMicros),
    blocked_by: entryGuard(guards, config.guards, { atMs: nowMs, openPositions: account.positions.size }),
    must_flatten: mustFlatten(guards, config.guards),
    entries_today: guards.entriesToday,
    positions,
    resting: sides,
    foreign: [],
  }
}

export type Decided = { run: StrategyRun; decision: Decision; state: StrategyState }

/** Decides on a close, and lets the orders of the decision wait for the next price. */
export function decideOnClose(
  run: StrategyRun,
  { windows, nowMs }: { windows: Windows | undefined; nowMs: number },
  config: RunConfig,
): Decided {
  const state = stateOf(run, nowMs, config)
  const decision = decide(windows, state, config.decision)
  return { run: withOrders(run, decision), decision, state }
}

/** Decides between closes whether what is open has to end: each minute, and after each guard. */
export function decideExitNow(run: StrategyRun, nowMs: number, config: RunConfig): Decided | undefined {
  if (run.account.positions.size === 0 || run.pending.length > 0) return undefined
  const state = stateOf(run, nowMs, config)
  const decision = decideExit(state, config.decision)
  return decision && { run: withOrders(run, decision), decision, state }
}

/** An exit cancels what would open another position; the exits of a position end with it, and never before. */
export function withOrders(run: StrategyRun, { action, orders }: Decision): StrategyRun {
  if (orders.length === 0) return run
  const isWaiting = ({ order_type }: OrderIntent) => order_type !== 'market'
  const resting = action === 'exit' ? [] : [...run.resting, ...orders.filter(isWaiting)]
  return { ...run, resting, pending: [...run.pending, ...orders.filter((order) => !isWaiting(order))] }
}
