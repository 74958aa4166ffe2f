import { findPosition } from '#engines/venue/orders/consistent-reads.ts'
import { assertWorth, limitPriceOf, orderPrice } from '#engines/venue/orders/order-checks.ts'
import {
  exitFacts,
  type OrderTaskData,
  orderBasis,
  startsWithOrder,
} from '#engines/venue/orders/order-task.ts'
import { accountAfterTasks } from '#engines/venue/orders/read-after-write.ts'
import { tradeDeadlineMs, withAgent } from '#engines/venue/orders/require-trading-key.ts'
import { positionBalanceKey } from '#engines/venue/records/expected-balances.ts'
import { assetKey, requireKnownMarket } from '#engines/venue/records/markets.ts'
import { ownPartOf, placedExits, reduciblePart } from '#engines/venue/records/reducible-part.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Attempt, createAdmission } from '#kernel/task/admission.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { PerpInput } from './contract.ts'
import type { TradeDeps } from './open.ts'

/** A close that fills later could not end the exits of its part, which would then close what the user owns. */
async function assertNoExits(
  db: Queryable,
  run: Attempt['run'],
  { userId, symbol, isBuy }: { userId: string; symbol: string; isBuy: boolean },
): Promise<void> {
  if (!run?.reducesOwn) return
  const { schedule } = run
  const placed = await placedExits(db, { userId, market: 'perp', symbol, isBuy, schedule })
  if (placed.size > 0)
    throw new Fault(
      'policy_denied',
      `The schedule has exits in ${symbol}, so a run of it closes at the market only`,
      { extras: { rule: 'own_position', reason: 'a limit order could fill beside the exits' } },
    )
}

export const admitClose = (deps: TradeDeps) =>
  createAdmission({
    policy: deps.policy,
    check: (input: PerpInput<'close'>, attempt) => checkClose(deps, input, attempt),
    start: ({ data }) => ({
      first: 'begin',
      deadlineMs: tradeDeadlineMs,
      data,
      signOnAccept: startsWithOrder(data),
    }),
  })

async function checkClose(
  deps: TradeDeps,
  input: PerpInput<'close'>,
  { userId, run }: Pick<Attempt, 'userId' | 'run'>,
): Promise<{ action: PlannedAction; data: OrderTaskData }> {
  const { venue, pricing, chainId, clock, limits } = deps
  const market = requireKnownMarket('perp', await venue.perps(), input.asset)
  const limit = limitPriceOf(input, market, pricing)
  const account = await deps.evmAddressOf(userId)
  const { agent, read } = await withAgent(deps, userId, () =>
    Promise.all([accountAfterTasks(deps, { userId, account, symbol: market.symbol }), venue.mids()]),
  )
  const [state, mids] = read
  const position = await findPosition(venue, { account, symbol: market.symbol }, state)
  if (!position)
    throw new Fault(
      'no_position',
      `There is no position in ${market.symbol} to close; \`perp_orders\` lists yours`,
    )
  const isBuy = position.signedSize.startsWith('-')
  const held = position.signedSize.replace('-', '')
  const { symbol } = market
  const record = { balance_key: positionBalanceKey(symbol), total: held }
  const holding = { userId, market: 'perp', symbol, isLong: !isBuy, held, ...record } as const
  const sizeMax = await reduciblePart(deps.db, run, holding)
  if (limit !== undefined) await assertNoExits(deps.db, run, { userId, symbol, isBuy })
  const asked = input.size === undefined ? sizeMax : pricing.roundSize(input.size, market)
  const size = compareDecimals(asked, sizeMax) > 0 ? sizeMax : asked
  const mid = mids.get(market.symbol) ?? market.markPrice
  const price = orderPrice(input, { limit, mid, isBuy, market }, pricing)
  // The venue values an order at its own price, which for a sale is below the mid price.
  const worthPrice = isBuy ? (limit ?? mid) : price
  // A full close has no minimum, as dust could otherwise never be closed.
  if (size !== held)
    assertWorth({ size, price: worthPrice, minimum: limits.minOrderUsd, field: 'size', market }, pricing)
  const operation = 'perp_close'
  const tokens = [assetKey('perp', market.symbol)]
  const basis = {
    operation,
    kind: 'perp' as const,
    market,
    account,
    agent: agent.address,
    sinceMs: state.timeMs,
  }
  const data: OrderTaskData = {
    ...orderBasis(basis, clock),
    role: 'close',
    exit: true,
    is_buy: isBuy,
    size,
    ...(compareDecimals(asked, held) > 0 && { asked_size: asked }),
    price,
    tif: limit === undefined ? 'ioc' : 'gtc',
    reduce_only: true,
    usd_micros: '0',
    ...ownPartOf(run, record),
  }
  return { action: { userId, chainId, ...exitFacts(operation, tokens) }, data }
}
