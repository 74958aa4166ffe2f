import { findPosition } from '#engines/venue/orders/consistent-reads.ts'
import { assertWorth, checkedExits } from '#engines/venue/orders/order-checks.ts'
import { readLagMs } from '#engines/venue/orders/order-lookup.ts'
import {
  exitFacts,
  type OrderTaskData,
  orderBasis,
  type PlacedExits,
} from '#engines/venue/orders/order-task.ts'
import { accountAfterTasks } from '#engines/venue/orders/read-after-write.ts'
import { tradeDeadlineMs, withAgent } from '#engines/venue/orders/require-trading-key.ts'
import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import { assetKey, requireKnownMarket } from '#engines/venue/records/markets.ts'
import { isVenueOrderId, recentOrders } from '#engines/venue/records/order-store.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, OpenOrder, PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'
import type { TradeDeps } from './open.ts'
import { markOf } from './views.ts'

type TpSlInput = PerpInput<'tpSl'>
export type EarlierExit = { order_id: number; leg: ExitLeg }
export type TpSlData = OrderTaskData & {
  /** Whether the exits follow the size of the position. */
  follows_position: boolean
  replace: boolean
  placed?: PlacedExits
  earlier?: EarlierExit[]
}

export const admitTpSl = (deps: TradeDeps) =>
  createAdmission({
    policy: deps.policy,
    check: (input: TpSlInput, { userId }) => checkTpSl(deps, input, userId),
    start: ({ data }) => ({ first: 'sign', deadlineMs: tradeDeadlineMs, data, signOnAccept: true }),
  })

async function checkTpSl(
  deps: TradeDeps,
  input: TpSlInput,
  userId: string,
): Promise<{ action: PlannedAction; data: TpSlData }> {
  const { venue, pricing, chainId, clock } = deps
  if ((input.tp_price ?? input.sl_price) === undefined)
    throw invalid(
      'tp_price',
      'missing',
      'At least one of `tp_price` and `sl_price` is required: add one of them',
      { fields: ['tp_price', 'sl_price'] },
    )
  const market = requireKnownMarket('perp', await venue.perps(), input.asset)
  const account = await deps.evmAddressOf(userId)
  const { agent, read: state } = await withAgent(deps, userId, () =>
    accountAfterTasks(deps, { userId, account, symbol: market.symbol }),
  )
  const position = await findPosition(venue, { account, symbol: market.symbol }, state)
  if (!position)
    throw new Fault(
      'no_position',
      `There is no position in ${market.symbol} to protect: open one with \`perp_open\``,
    )
  const isLong = !position.signedSize.startsWith('-')
  const held = position.signedSize.replace('-', '')
  const mark = markOf(position, market) ?? market.markPrice
  const exits = checkedExits(input, { market, isBuy: isLong, reference: mark }, pricing)
  const operation = 'perp_tp_sl'
  const tokens = [assetKey('perp', market.symbol)]
  const basis = {
    operation,
    kind: 'perp' as const,
    market,
    account,
    agent: agent.address,
    sinceMs: state.timeMs,
  }
  const data: TpSlData = {
    ...orderBasis(basis, clock),
    // This field holds the side of the position; its exits have the opposite side.
    is_buy: isLong,
    size: exitSize(deps, input.size, { held, mark, market }),
    price: mark,
    tif: 'gtc',
    reduce_only: true,
    exit: true,
    usd_micros: '0',
    ...exits,
    follows_position: input.size === undefined,
    replace: input.replace ?? true,
  }
  return { action: { userId, chainId, ...exitFacts(operation, tokens) }, data }
}

type Held = { held: string; mark: string; market: PerpMarket }

/** Returns the size that the exits cover, by default that of the position. */
function exitSize(
  { pricing, limits }: TradeDeps,
  asked: string | undefined,
  { held, mark, market }: Held,
): string {
  if (asked === undefined) return held
  const size = pricing.roundSize(asked, market)
  if (compareDecimals(size, held) > 0)
    throw invalid(
      'size',
      'less_than_equal',
      `Input should be less than or equal to ${held}, the size of the position`,
      { le: held },
    )
  if (size !== held)
    assertWorth({ size, price: mark, minimum: limits.minOrderUsd, field: 'size', market }, pricing)
  return size
}

type EarlierDeps = { db: Queryable; venue: Pick<Hyperliquid, 'openOrders'> }
type EarlierExitQuery = { userId: string; now: Date; legs: readonly ExitLeg[]; placed: ReadonlySet<number> }

/** Returns the exits of the position, from the venue's list and from tasks that the list may not contain yet. */
export async function earlierExits(
  { db, venue }: EarlierDeps,
  { account, symbol, is_buy: isLong }: TpSlData,
  { userId, now, legs, placed }: EarlierExitQuery,
): Promise<EarlierExit[]> {
  const [open, recent] = await Promise.all([
    venue.openOrders(account),
    recentOrders(db, { userId, kind: 'perp', since: later(now, -readLagMs) }),
  ])
  // Order ids ascend and a replacement cancels only older exits, so of two concurrent replacements the later one stays.
  const newest = Math.max(...placed)
  const found = new Map<number, EarlierExit>()
  const protects = ({ symbol: orderSymbol, trigger, reduceOnly, parentId, isBuy }: OpenOrder) =>
    orderSymbol === symbol && trigger !== null && reduceOnly && parentId === null && isBuy !== isLong
  for (const order of open.filter(protects))
    found.set(order.orderId, { order_id: order.orderId, leg: order.trigger!.leg })
  for (const task of recent.filter((each) => each.symbol === symbol && each.is_filled))
    for (const leg of ['tp', 'sl'] as const)
      for (const id of task[`${leg}_oids`].filter(isVenueOrderId))
        found.set(Number(id), { order_id: Number(id), leg })
  return [...found.values()].filter(
    ({ order_id: id, leg }) => legs.includes(leg) && !placed.has(id) && id < newest,
  )
}
