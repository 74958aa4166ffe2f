import { fromUnits, toMicros, toUnits, usdDecimals, valueMicros } from '#kernel/money/money.ts'
import {
  applyEntry,
  applyExit,
  type Protective,
  priceDecimals,
  type SimulatedFill,
} from '#market/strategies/account.ts'
import { countEntry, countTrade } from '#market/strategies/guards.ts'
import { unitsOfSize } from '#market/strategies/matching.ts'
import type { MarketRules } from '#market/strategies/strategy.ts'
import type { RunConfig, StrategyRun } from '#market/strategies/strategy-run.ts'
import type { StrategyFillRow } from '#store/tables/strategies.ts'
import type { OwnFill, StoredExit } from './live-records.ts'

/** Applies the fills of a strategy's own orders at the venue to its account. */

export type LiveFillRow = Omit<StrategyFillRow, 'strategy_id' | 'mode'>
export type AppliedFills = {
  run: StrategyRun
  rows: readonly LiveFillRow[]
  /** The orders that have counted as an entry or a trade, the newest last. */
  counted: string[]
}
type Given = { config: RunConfig; counted: readonly string[] }
/** What the orders of these fills have done together: an entry counts once, and the parts of an exit are one trade. */
type OrderEffect = { key: string; atMs: number; hasEntered: boolean; netMicros: bigint | undefined }
type Applying = { run: StrategyRun; rows: LiveFillRow[]; effects: Map<string, OrderEffect> }

const countedMax = 100

export function applyOwnFills(
  before: StrategyRun,
  fills: readonly OwnFill[],
  { config, counted }: Given,
): AppliedFills {
  const applying: Applying = { run: before, rows: [], effects: new Map() }
  for (const fill of fills) {
    const rules = config.decision.markets[fill.asset]
    if (rules) applyFill(applying, fill, rules)
  }
  let { guards } = applying.run
  const effects = [...applying.effects.values()].filter(({ key }) => !counted.includes(key))
  for (const { atMs, hasEntered, netMicros } of effects) {
    if (hasEntered) guards = countEntry(guards, atMs)
    if (netMicros !== undefined) guards = countTrade(guards, netMicros)
  }
  return {
    run: { ...applying.run, guards },
    rows: applying.rows,
    counted: [...counted, ...effects.map(({ key }) => key)].slice(-countedMax),
  }
}

const kindOfLeg = (leg: string): string => leg.replace(/\d+$/, '')

function applyFill(applying: Applying, fill: OwnFill, rules: MarketRules): void {
  const { account } = applying.run
  const simulated = simulatedOf(fill, rules)
  const held = account.positions.get(fill.asset)
  const key = `${fill.task_id} ${kindOfLeg(fill.leg)}`
  const effect = applying.effects.get(key) ?? {
    key,
    atMs: fill.at_ms,
    hasEntered: false,
    netMicros: undefined,
  }
  const isEntry = kindOfLeg(fill.leg) === 'entry' && (!held || held.isLong === fill.is_buy)
  if (isEntry) {
    const terms = {
      leverage: fill.leverage,
      isCross: fill.is_cross,
      targetFromMs: fill.at_ms,
      ...(fill.stop && { stop: protectiveOf(fill.stop) }),
      ...(fill.target && { target: protectiveOf(fill.target) }),
    }
    applying.run = { ...applying.run, account: applyEntry(account, simulated, terms) }
    applying.rows.push(rowOf(fill, simulated, { netMicros: null, isExit: false }))
    applying.effects.set(key, { ...effect, hasEntered: true })
    return
  }
  const { account: after, trade } = applyExit(account, simulated)
  applying.run = { ...applying.run, account: after }
  applying.rows.push(rowOf(fill, simulated, { netMicros: trade?.netMicros ?? null, isExit: true }))
  if (trade) applying.effects.set(key, { ...effect, netMicros: (effect.netMicros ?? 0n) + trade.netMicros })
}

function simulatedOf(fill: OwnFill, rules: MarketRules): SimulatedFill {
  const sizeUnits = unitsOfSize(fill.size, rules)
  return {
    asset: fill.asset,
    isBuy: fill.is_buy,
    sizeUnits,
    valueMicros: valueMicros(sizeUnits, rules.size_decimals, fill.price, fill.is_buy ? 'up' : 'down'),
    feeMicros: toMicros(fill.fee_usd),
    atMs: fill.at_ms,
    reason: reasonOf(fill),
  }
}

const protectiveOf = ({ price, isMarket }: StoredExit): Protective => ({
  priceUnits: toUnits(price, priceDecimals),
  isMarket,
})

/** An exit of an order's own task, which no decision has asked for, ends an entry whose stop could not be placed. */
function reasonOf({ leg, reason }: Pick<OwnFill, 'leg' | 'reason'>): string {
  if (leg === 'entry' || leg === 'close') return reason ?? leg
  const kind = kindOfLeg(leg)
  if (kind === 'sl') return 'stop'
  return kind === 'tp' ? 'target' : 'unprotected'
}

type Booked = { netMicros: bigint | null; isExit: boolean }

const rowOf = (fill: OwnFill, { reason }: SimulatedFill, { netMicros, isExit }: Booked): LiveFillRow => ({
  fill_id: BigInt(fill.fill_id),
  execution_id: fill.execution_id,
  asset: fill.asset,
  is_buy: fill.is_buy,
  size: fill.size,
  price: fill.price,
  fee_usd: fill.fee_usd,
  realized_pnl_usd: netMicros === null ? null : fromUnits(netMicros, usdDecimals),
  reason,
  is_exit: isExit,
  at: new Date(fill.at_ms),
})

/** A part of a position that is gone although no order of the strategy has closed it. */
export type LostPart = {
  asset: string
  units: bigint
  price: string
  atMs: number
  reason: 'by_hand' | 'liquidation'
}

/** Closes a lost part at a price. The rows of such parts count downwards, so that they never have the id of a trade. */
export function applyLostPart(
  before: StrategyRun,
  lost: LostPart,
  { config, fillId }: { config: RunConfig; fillId: bigint },
): { run: StrategyRun; rows: LiveFillRow[] } {
  const { asset, units, price, atMs, reason } = lost
  const [held, rules] = [before.account.positions.get(asset), config.decision.markets[asset]]
  if (!held || !rules || units <= 0n) return { run: before, rows: [] }
  const sizeUnits = units > held.sizeUnits ? held.sizeUnits : units
  const fill: SimulatedFill = {
    asset,
    isBuy: !held.isLong,
    sizeUnits,
    valueMicros: valueMicros(sizeUnits, rules.size_decimals, price, held.isLong ? 'down' : 'up'),
    feeMicros: 0n,
    atMs,
    reason,
  }
  const { account, trade } = applyExit(before.account, fill)
  const guards = trade ? countTrade(before.guards, trade.netMicros) : before.guards
  const row: LiveFillRow = {
    fill_id: fillId,
    execution_id: null,
    asset,
    is_buy: fill.isBuy,
    size: fromUnits(sizeUnits, rules.size_decimals),
    price,
    fee_usd: '0',
    realized_pnl_usd: trade ? fromUnits(trade.netMicros, usdDecimals) : null,
    reason,
    is_exit: true,
    at: new Date(atMs),
  }
  return { run: { ...before, account, guards }, rows: [row] }
}
