import type { TransferAmount } from '#engines/venue/orders/collateral-transfer.ts'
import { positionOf } from '#engines/venue/orders/consistent-reads.ts'
import {
  checkedExits,
  limitPriceOf,
  orderPrice,
  orderSize,
  type Pricing,
  type Sizing,
} from '#engines/venue/orders/order-checks.ts'
import { clockToleranceMs } from '#engines/venue/orders/order-lookup.ts'
import { type OrderTaskData, orderBasis, startsWithOrder } from '#engines/venue/orders/order-task.ts'
import { recentSpendings } from '#engines/venue/orders/pending-spends.ts'
import { accountAfterTasks, rereadBalances } from '#engines/venue/orders/read-after-write.ts'
import { type AgentDeps, tradeDeadlineMs, withAgent } from '#engines/venue/orders/require-trading-key.ts'
import { type LeverageSetting, leverageSettingOf } from '#engines/venue/records/leverage-store.ts'
import { assetKey, requireMarket } from '#engines/venue/records/markets.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms } from '#kernel/task/approval.ts'
import type { PlannedAction, Policy } from '#kernel/task/signer.ts'
import type { Hyperliquid, PerpMarket, Position } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'
import type { PerpLimits } from './limits.ts'
import { marginOf, marginText, transferForMargin } from './open-margin.ts'

export type TradeDeps = {
  venue: Pick<
    Hyperliquid,
    | 'perps'
    | 'mids'
    | 'account'
    | 'recentFills'
    | 'timeMs'
    | 'openOrders'
    | 'order'
    | 'spotBalances'
    | 'accountMode'
  >
  pricing: Pricing & Sizing
  policy: Pick<Policy, 'check'>
  evmAddressOf: (userId: string) => Promise<string>
  chainId: string
  limits: PerpLimits
} & AgentDeps
type OpenRequest = PerpInput<'open'>
type OpenInput = Omit<OpenRequest, 'leverage' | 'side'> & { leverage?: number; side?: 'long' | 'short' }

/** Normalises the spellings of leverage and side that the interface accepts. */
const openInputOf = ({ leverage, side, ...rest }: OpenRequest): OpenInput => ({
  ...rest,
  ...(leverage !== undefined && { leverage: Number(leverage) }),
  ...(side && { side: side === 'long' || side === 'LONG' ? 'long' : 'short' }),
})

function sideOf({ is_buy, side }: OpenInput): boolean {
  if ((is_buy === undefined) === (side === undefined))
    throw exactlyOneOf('side', 'is_buy', { hasBoth: side !== undefined })
  return is_buy ?? side === 'long'
}

type Leverage = { is_cross: boolean; value: number }

/** Returns the leverage that the request asks for; throws if the market does not allow it. */
function askedLeverage(
  { leverage, is_cross }: OpenInput,
  { maxLeverage, onlyIsolated, symbol }: PerpMarket,
): Partial<Leverage> {
  if (leverage !== undefined && leverage > maxLeverage)
    throw invalid(
      'leverage',
      'less_than_equal',
      `Input should be less than or equal to ${maxLeverage}, the maximum of ${symbol}`,
      { le: maxLeverage },
    )
  if (is_cross === true && onlyIsolated)
    throw invalid(
      'is_cross',
      'literal_error',
      `Input should be false: ${symbol} allows isolated margin only`,
      { expected: 'false' },
    )
  return { ...(leverage !== undefined && { value: leverage }), ...(is_cross !== undefined && { is_cross }) }
}

/** Returns the leverage of the order: of the request, else of the position or the market's setting, else 1. */
const leverageOf = (
  { value, is_cross }: Partial<Leverage>,
  known: Position | LeverageSetting | undefined,
  { maxLeverage, onlyIsolated }: PerpMarket,
): Leverage => ({
  is_cross: (is_cross ?? known?.isCross ?? true) && !onlyIsolated,
  value: value ?? Math.min(known?.leverage ?? 1, maxLeverage),
})

/** A setting older than this may have been changed by another client, and setting it again costs little. */
const settingTrustedMs = 3_600_000

function isSet(
  { is_cross, value }: Leverage,
  position: Position | undefined,
  setting: LeverageSetting | undefined,
  nowMs: number,
): boolean {
  if (position) return position.isCross === is_cross && position.leverage === value
  const trusted = setting && nowMs - setting.setAt.getTime() < settingTrustedMs ? setting : undefined
  return trusted?.isCross === is_cross && trusted.leverage === value
}

type Wanted = { reduces: boolean; isBuy: boolean; leverage: Leverage }

function assertPosition(
  position: Position | undefined,
  { symbol }: PerpMarket,
  { reduces, isBuy, leverage }: Wanted,
): void {
  if (reduces && position?.signedSize.startsWith('-') !== isBuy)
    throw new Fault(
      'no_position',
      `There is no position in ${symbol} that this order reduces: leave \`reduce_only\` out, or send the other \`side\``,
    )
  if (!reduces && position && position.isCross !== leverage.is_cross)
    throw new Fault(
      'conflict',
      'The margin mode of an open position cannot be changed: leave `is_cross` out',
      {
        extras: { reason: `the position in ${symbol} has ${position.isCross ? 'cross' : 'isolated'} margin` },
      },
    )
}

function assertNoExits({ reduce_only, tp_price, sl_price }: OpenInput): void {
  if (!reduce_only || (tp_price ?? sl_price) === undefined) return
  throw invalid(
    tp_price === undefined ? 'sl_price' : 'tp_price',
    'exactly_one_of',
    'A reduce-only order takes no `tp_price` or `sl_price`: leave them out, or set them later with `perp_tp_sl`',
    { fields: ['reduce_only', 'tp_price', 'sl_price'] },
  )
}

type Entry = { isBuy: boolean; limit: string | undefined; mark: string }

/** The best price of the entry: its limit, unless the mark price is better. */
const referenceOf = ({ isBuy, limit, mark }: Entry): string =>
  limit === undefined || compareDecimals(limit, mark) > 0 === isBuy ? mark : limit

export const admitOpen = (deps: TradeDeps) =>
  createAdmission({
    policy: deps.policy,
    reread: (userId, admit) => rereadBalances(deps, userId, admit),
    async check(request: OpenRequest, { userId }) {
      const market = requireMarket('perp', await deps.venue.perps(), request.asset)
      return checkOpen(deps, openInputOf(request), { userId, market })
    },
    async fund(order, { isLast }) {
      assertPosition(order.position, order.market, order)
      return order.reduces ? { transfer_usd: null } : transferForMargin(deps.venue, order, { isLast })
    },
    start(order, transfer, { run }) {
      const data = { ...openTaskData(order, transfer, deps.clock), ...(run && { is_of_run: true as const }) }
      return { first: 'begin', deadlineMs: tradeDeadlineMs, data, signOnAccept: startsWithOrder(data) }
    },
  })

const readFor = (deps: TradeDeps, query: { userId: string; account: string; symbol: string }) =>
  Promise.all([
    accountAfterTasks(deps, query),
    deps.venue.mids(),
    leverageSettingOf(deps.db, query.userId, query.symbol),
    recentSpendings(deps, query.userId),
  ])

async function checkOpen(
  deps: TradeDeps,
  input: OpenInput,
  { userId, market }: { userId: string; market: PerpMarket },
) {
  const { pricing } = deps
  const isBuy = sideOf(input)
  const asked = askedLeverage(input, market)
  assertNoExits(input)
  const limit = limitPriceOf(input, market, pricing)
  const account = await deps.evmAddressOf(userId)
  const { agent, read } = await withAgent(deps, userId, () =>
    readFor(deps, { userId, account, symbol: market.symbol }),
  )
  const [state, mids, setting, spendings] = read
  const position = positionOf(state, market.symbol)
  const leverage = leverageOf(asked, position ?? setting, market)
  const mid = mids.get(market.symbol) ?? market.markPrice
  const price = orderPrice(input, { limit, mid, isBuy, market }, pricing)
  const size = orderSize(
    { size: input.size, notional: input.notional_usd },
    {
      market,
      price: limit ?? mid,
      // The venue values an order at its own price, which for a sale is below the mid price.
      worthPrice: isBuy ? (limit ?? mid) : price,
      minimum: deps.limits.minOrderUsd,
      notionalField: 'notional_usd',
      mayRoundUp: true,
    },
    pricing,
  )
  const reference = referenceOf({ isBuy, limit, mark: mid })
  const notional = pricing.notionalMicros(price, size, 'up')
  const reduces = input.reduce_only === true
  const order = {
    isBuy,
    reduces,
    size,
    price,
    tif: limit === undefined ? ('ioc' as const) : (input.tif ?? 'gtc'),
    exits: checkedExits(input, { market, isBuy, reference }, pricing),
    notional,
    leverage,
    margin: reduces ? 0n : marginOf({ notional, leverage, position }),
  }
  const action = { userId, chainId: deps.chainId, ...openFacts(order, market) }
  return { ...order, action, market, account, agent, state, position, spendings, setting }
}
type CheckedOpen = Awaited<ReturnType<typeof checkOpen>>

type OpenFacts = { isBuy: boolean; reduces: boolean; size: string; notional: bigint; leverage: Leverage }

const openFacts = (
  { isBuy, reduces, size, notional, leverage }: OpenFacts,
  { symbol }: PerpMarket,
): Omit<PlannedAction, 'userId' | 'chainId'> => ({
  operation: 'perp_open',
  tokens: [assetKey('perp', symbol)],
  recipients: [],
  usdMicros: reduces ? 0n : notional,
  exit: reduces,
  terms: actionTerms(
    `${isBuy ? 'Buy' : 'Sell'} ${size} ${symbol} perpetuals at ${leverage.value}x leverage on Hyperliquid`,
    {
      venue: 'Hyperliquid',
      asset: symbol,
      amount: size,
      token: symbol,
      cost: `The trading fee of Hyperliquid. About ${marginText(notional, leverage)} USD of your balance there secures the position, and may be lost`,
    },
  ),
})

function openTaskData(
  order: CheckedOpen,
  transfer: TransferAmount | { transfer_usd: null },
  clock: Clock,
): OrderTaskData {
  const { action, market, account, agent, state, position, reduces, leverage, setting } = order
  const { operation } = action
  const basis = {
    operation,
    kind: 'perp' as const,
    market,
    account,
    agent: agent.address,
    sinceMs: state.timeMs,
  }
  return {
    ...orderBasis(basis, clock),
    since_ms: state.timeMs - clockToleranceMs,
    exit: reduces,
    is_buy: order.isBuy,
    size: order.size,
    price: order.price,
    tif: order.tif,
    reduce_only: reduces,
    ...order.exits,
    usd_micros: String(action.usdMicros),
    ...transfer,
    ...(!reduces && { margin_micros: String(order.margin) }),
    leverage: reduces || isSet(leverage, position, setting, clock.now().getTime()) ? null : leverage,
  }
}
