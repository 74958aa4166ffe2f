import { rescale, toFixedPoint, toUnits } from '#kernel/money/money.ts'
import {
  type Account,
  applyEntry,
  applyExit,
  applyLiquidation,
  type ClosedTrade,
  feeOf,
  liquidationPriceUnits,
  type MarketTable,
  type OpenPosition,
  type Protective,
  priceDecimals,
  type SimulatedFill,
  worthMicros,
} from './account.ts'
import { makerPpm, takerPpm } from './entry.ts'
import type { MarketRules, OrderIntent, ProtectiveOrder } from './strategy.ts'

/**
 * Moves the price of an asset along a path, and fills what waits for it: orders that were decided before, orders that rest,
 * stops, targets, and the venue's liquidation. Backtests derive the path from a candle, paper reads it from the venue.
 */

export type Orders = {
  account: Account
  /** Market orders that the next price fills. */
  pending: readonly OrderIntent[]
  /** Limit and stop orders that open a position. */
  resting: readonly OrderIntent[]
}
export type PriceMove = {
  asset: string
  atMs: number
  /** The prices in their order; the first may be far from the last one before. */
  path: readonly bigint[]
  /** Whether the path is what happened, and not one that a candle allows. */
  isExact: boolean
  /** Fills an order as far as the book allows. */
  execute: Execute
}
export type ExecutedOrder = {
  isBuy: boolean
  sizeUnits: bigint
  priceUnits: bigint
  isTaker: boolean
  /** The most that it may pay beyond the best price; left out: the limit of the execution. */
  slippageBps?: number
}
export type Execute = (
  order: ExecutedOrder,
  rules: MarketRules,
) => { sizeUnits: bigint; valueMicros: bigint } | undefined

/** A fill as it is recorded; `netMicros` is what an exit has realised after fees and funding. */
export type MatchedFill = SimulatedFill & { netMicros: bigint | null }
export type Matched = Orders & {
  entries: number
  trades: readonly ClosedTrade[]
  fills: readonly MatchedFill[]
}

type Context = { move: PriceMove; rules: MarketRules; markets: MarketTable; filled: Set<string> }
/** Something that happens where the price reaches it; `touch` says that reaching it is enough, and passing it is not needed. */
type Trigger = { key: string; priceUnits: bigint; isBelow: boolean; isTouched: boolean; run: Run }
type Run = (matched: Matched, context: Context, priceUnits: bigint) => Matched

export const unitsOfSize = (size: string, { size_decimals }: MarketRules): bigint =>
  rescale(toFixedPoint(size), 18, size_decimals)
export const unitsOfPrice = (price: string): bigint => rescale(toUnits(price, 18), 18, priceDecimals)

export function movePrice(orders: Orders, move: PriceMove, markets: MarketTable): Matched {
  const matched: Matched = { ...orders, entries: 0, trades: [], fills: [] }
  const rules = markets[move.asset]
  const [first, ...later] = move.path
  if (!rules || first === undefined) return matched
  const context: Context = { move, rules, markets, filled: new Set() }
  // A stop that the price has jumped over comes before an order that was decided earlier.
  let now = walk(matched, context, first, first)
  now = fillPending(now, context, first)
  let from = first
  for (const to of later) {
    now = walk(now, context, from, to)
    from = to
  }
  return now
}

/** Fills what lies between two prices, the nearest first. */
function walk(matched: Matched, context: Context, from: bigint, to: bigint): Matched {
  let now = matched
  let at = from
  for (;;) {
    const next = nearest(triggersOf(now, context), context, at, to)
    if (!next) return now
    context.filled.add(next.trigger.key)
    now = next.trigger.run(now, context, next.priceUnits)
    at = next.priceUnits
  }
}

function nearest(triggers: readonly Trigger[], { filled }: Context, from: bigint, to: bigint) {
  let found: { trigger: Trigger; priceUnits: bigint; distance: bigint } | undefined
  for (const trigger of triggers) {
    if (filled.has(trigger.key)) continue
    const priceUnits = reached(trigger, from, to)
    if (priceUnits === undefined) continue
    const distance = priceUnits > from ? priceUnits - from : from - priceUnits
    // The worst of several at one price comes first: liquidation, stop, target.
    if (!found || distance < found.distance) found = { trigger, priceUnits, distance }
  }
  return found
}

/** Returns where a trigger is reached on the way between two prices: at once where the first is beyond it. */
function reached({ priceUnits, isBelow, isTouched }: Trigger, from: bigint, to: bigint): bigint | undefined {
  const isBeyond = (price: bigint) =>
    isTouched && price === priceUnits ? true : isBelow ? price < priceUnits : price > priceUnits
  if (isBeyond(from)) return from
  return isBeyond(to) ? priceUnits : undefined
}

function triggersOf({ account, resting }: Matched, { move, rules }: Context): Trigger[] {
  const { asset, atMs } = move
  const triggers: Trigger[] = []
  const held = account.positions.get(asset)
  if (held) {
    const { isLong, stop, target, openedMs } = held
    const key = `${asset} ${openedMs}`
    const liquidation = liquidationPriceUnits(account, asset, rules)
    if (liquidation !== undefined)
      triggers.push({
        key: `liquidation ${key}`,
        priceUnits: liquidation,
        isBelow: isLong,
        isTouched: true,
        run: liquidate,
      })
    if (stop)
      triggers.push({
        key: `stop ${key}`,
        priceUnits: stop.priceUnits,
        isBelow: isLong,
        isTouched: true,
        run: runStop,
      })
    if (target && atMs >= held.targetFromMs)
      triggers.push({
        key: `target ${key}`,
        priceUnits: target.priceUnits,
        isBelow: !isLong,
        // A resting order at a price that is only touched may not be filled.
        isTouched: target.isMarket,
        run: runTarget,
      })
  }
  for (const [index, order] of resting.entries())
    if (order.asset === asset && order.price !== undefined) {
      const isLimit = order.order_type === 'limit'
      triggers.push({
        key: `entry ${order.side} ${order.price} ${index}`,
        priceUnits: unitsOfPrice(order.price),
        isBelow: isLimit === (order.side === 'buy'),
        isTouched: !isLimit,
        run: (matched, context, priceUnits) => fillResting(matched, context, { order, priceUnits }),
      })
    }
  return triggers
}

type ExitOrder = { priceUnits: bigint; sizeUnits: bigint; isTaker: boolean; reason: string }

function exitAt(matched: Matched, { move, rules }: Context, order: ExitOrder): Matched {
  const held = matched.account.positions.get(move.asset)
  if (!held) return matched
  const { priceUnits, isTaker, reason } = order
  const sizeUnits = order.sizeUnits > held.sizeUnits ? held.sizeUnits : order.sizeUnits
  const isBuy = !held.isLong
  const got = move.execute({ isBuy, sizeUnits, priceUnits, isTaker }, rules)
  if (!got || got.sizeUnits === 0n) return matched
  const feeMicros = feeOf(got.valueMicros, isTaker ? takerPpm : makerPpm)
  const fill = { asset: move.asset, isBuy, ...got, feeMicros, atMs: move.atMs, reason }
  const { account, trade } = applyExit(matched.account, fill)
  return trade ? withTrade({ ...matched, account }, fill, trade) : matched
}

const withTrade = (matched: Matched, fill: SimulatedFill, trade: ClosedTrade): Matched => ({
  ...matched,
  trades: [...matched.trades, trade],
  fills: [...matched.fills, { ...fill, netMicros: trade.netMicros }],
})

const heldUnits = ({ account }: Matched, asset: string): bigint =>
  account.positions.get(asset)?.sizeUnits ?? 0n

function protectiveExit(matched: Matched, context: Context, exit: Protective & { reason: string }): Matched {
  const sizeUnits = heldUnits(matched, context.move.asset)
  return exitAt(matched, context, {
    priceUnits: exit.priceUnits,
    sizeUnits,
    isTaker: exit.isMarket,
    reason: exit.reason,
  })
}

const runStop: Run = (matched, context, priceUnits) =>
  // A stop takes liquidity where it triggers; a limit beyond it would not change that in a book that moves.
  protectiveExit(matched, context, { priceUnits, isMarket: true, reason: 'stop' })

const runTarget: Run = (matched, context, priceUnits) => {
  const target = matched.account.positions.get(context.move.asset)?.target
  if (!target) return matched
  const at = target.isMarket ? priceUnits : target.priceUnits
  return protectiveExit(matched, context, { priceUnits: at, isMarket: target.isMarket, reason: 'target' })
}

const liquidate: Run = (matched, { move, rules }, priceUnits) => {
  const { asset, atMs } = move
  const held = matched.account.positions.get(asset)
  const { account, trade } = applyLiquidation(matched.account, asset, atMs)
  if (!held || !trade) return matched
  const { sizeUnits, isLong } = held
  const valueMicros = worthMicros(sizeUnits, priceUnits, rules)
  const taken = { asset, isBuy: !isLong, sizeUnits, valueMicros, feeMicros: 0n, atMs, reason: 'liquidation' }
  return withTrade({ ...matched, account }, taken, trade)
}

function fillResting(
  matched: Matched,
  context: Context,
  { order, priceUnits }: { order: OrderIntent; priceUnits: bigint },
): Matched {
  const isLimit = order.order_type === 'limit'
  const at = isLimit ? unitsOfPrice(order.price ?? '0') : priceUnits
  const without = { ...matched, resting: matched.resting.filter((other) => other !== order) }
  return enterAt(without, context, { order, priceUnits: at, isTaker: !isLimit })
}

function enterAt(
  matched: Matched,
  { move, rules }: Context,
  { order, priceUnits, isTaker }: { order: OrderIntent; priceUnits: bigint; isTaker: boolean },
): Matched {
  const { asset, atMs, isExact } = move
  const isBuy = order.side === 'buy'
  const held = matched.account.positions.get(asset)
  if (held && held.isLong !== isBuy) return matched
  const sizeUnits = unitsOfSize(order.size, rules)
  const { slippage_bps: slippageBps } = order
  const limit = slippageBps !== undefined && { slippageBps }
  const got = move.execute({ isBuy, sizeUnits, priceUnits, isTaker, ...limit }, rules)
  if (!got || got.sizeUnits === 0n) return matched
  const feeMicros = feeOf(got.valueMicros, isTaker ? takerPpm : makerPpm)
  const fill = { asset, isBuy, ...got, feeMicros, atMs, reason: 'entry' }
  const account = applyEntry(matched.account, fill, {
    leverage: order.leverage ?? 1,
    isCross: order.is_cross ?? false,
    // An order that rested was filled somewhere within a candle.
    targetFromMs: isExact || order.order_type === 'market' ? atMs : atMs + 1,
    ...exitsOf(order),
  })
  const fills = [...matched.fills, { ...fill, netMicros: null }]
  return { ...matched, account, fills, entries: matched.entries + 1 }
}

const protectiveOf = ({ price, is_market }: ProtectiveOrder): Protective => ({
  priceUnits: unitsOfPrice(price),
  isMarket: is_market,
})
const exitsOf = ({ stop_loss, take_profit }: OrderIntent): Pick<OpenPosition, 'stop' | 'target'> => ({
  ...(stop_loss && { stop: protectiveOf(stop_loss) }),
  ...(take_profit && { target: protectiveOf(take_profit) }),
})

/** Fills the market orders of an asset at a price. An exit that the book fills in part is decided again, an entry is not. */
function fillPending(matched: Matched, context: Context, priceUnits: bigint): Matched {
  const { asset } = context.move
  let now: Matched = { ...matched, pending: matched.pending.filter((order) => order.asset !== asset) }
  for (const order of matched.pending) {
    if (order.asset !== asset) continue
    now = order.reduce_only
      ? exitAt(now, context, {
          priceUnits,
          sizeUnits: unitsOfSize(order.size, context.rules),
          isTaker: true,
          reason: 'decision',
        })
      : enterAt(now, context, { order, priceUnits, isTaker: true })
  }
  return now
}
