import type { Pricing } from '#features/venue/exits.ts'
import { movable, type Portion } from '#features/venue/gather.ts'
import { asData, type Memory, opensAtOnce } from '#features/venue/memory.ts'
import { assetKey, marketNamed } from '#features/venue/symbol.ts'
import {
  type AgentNeeds,
  aheadOf,
  besideAgent,
  orForbidden,
  slippageDefault,
  tradeMs,
} from '#features/venue/trade.ts'
import { demandExit, demandTick, limitPriceOf, type Sizing, sizeOf } from '#features/venue/wish.ts'
import type { Caller } from '#kernel/caller.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault, invalid } from '#kernel/fault.ts'
import { mulDiv, toUnits, usdDecimals } from '#kernel/money.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type { Admission } from '#kernel/task.ts'
import type { Hyperliquid, PerpMarket, Position } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpLimits } from './limits.ts'

/** What is decided before a position exists: a request that cannot succeed is refused here. */

export type TradeNeeds = {
  venue: Pick<
    Hyperliquid,
    | 'perps'
    | 'mids'
    | 'account'
    | 'timeMs'
    | 'standing'
    | 'openOrders'
    | 'order'
    | 'spotBalances'
    | 'accountMode'
  >
  pricing: Pricing & Sizing
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  chainId: string
  limits: PerpLimits
} & AgentNeeds
export type OpenInput = {
  asset: string
  is_buy?: boolean
  side?: 'long' | 'short'
  size?: string
  notional_usd?: string
  leverage?: number
  is_cross?: boolean
  order_type?: 'market' | 'limit'
  limit_price?: string
  tif?: 'gtc' | 'ioc' | 'alo'
  slippage_pct?: string
  tp_price?: string
  sl_price?: string
  tp_is_market?: boolean
  sl_is_market?: boolean
  reduce_only?: boolean
}

const spareShare = 500n
/** More than a clock that was read a moment ago can be wrong by. */
const clockErrorMs = 1_000

function sideOf({ is_buy, side }: OpenInput): boolean {
  if ((is_buy === undefined) === (side === undefined))
    throw invalid('body.side', 'exactly_one_of', 'Exactly one of is_buy and side is required', {
      fields: ['is_buy', 'side'],
    })
  return is_buy ?? side === 'long'
}

function leverageOf(
  { leverage = 1, is_cross }: OpenInput,
  { maxLeverage, onlyIsolated, symbol }: PerpMarket,
) {
  if (leverage > maxLeverage)
    throw invalid(
      'body.leverage',
      'less_than_equal',
      `Input should be less than or equal to ${maxLeverage}`,
      { le: maxLeverage },
    )
  if (is_cross === true && onlyIsolated)
    throw invalid('body.is_cross', 'literal_error', `${symbol} takes isolated margin only`, {
      expected: 'false',
    })
  return { is_cross: is_cross ?? !onlyIsolated, value: leverage }
}

const microsOf = (usd: string): bigint => toUnits(usd, 18) / 10n ** BigInt(18 - usdDecimals)

type Margin = { account: string; notional: bigint; leverage: number; freeUsd: string }

/** Moves a little more than is missing, since the fee comes out of the same balance. */
async function gatherFor(
  venue: TradeNeeds['venue'],
  { account, notional, leverage, freeUsd }: Margin,
): Promise<Portion | null> {
  const required = mulDiv(notional, 1n, BigInt(leverage), 'up')
  const available = microsOf(freeUsd)
  if (available >= required) return null
  const missing = required - available
  const gather = await movable(venue, account, {
    missingMicros: missing,
    spareMicros: notional / spareShare,
  })
  if (gather !== null) return gather
  throw new Fault('insufficient_balance', 'The free collateral does not cover the margin', {
    extras: { token: 'USDC', required: String(required), available: String(available) },
  })
}

type Wanted = { reduces: boolean; isBuy: boolean; isCross: boolean }

/** What the position at hand forbids; the venue would refuse it later. */
function demandPosition(
  positions: readonly Position[],
  { symbol }: PerpMarket,
  { reduces, isBuy, isCross }: Wanted,
): void {
  const position = positions.find((each) => each.symbol === symbol)
  if (reduces && position?.signedSize.startsWith('-') !== isBuy)
    throw new Fault('no_position', `There is no position in ${symbol} that the order could reduce`)
  if (!reduces && position && position.isCross !== isCross)
    throw new Fault('conflict', 'The margin mode of an open position cannot be changed', {
      extras: { reason: `the position in ${symbol} has ${position.isCross ? 'cross' : 'isolated'} margin` },
    })
}

type Exits = { input: OpenInput; market: PerpMarket; isBuy: boolean; reference: string }

function exitsOf({ input, market, isBuy, reference }: Exits, pricing: Sizing): Pick<Memory, 'tp' | 'sl'> {
  const { tp_price, sl_price, tp_is_market = true, sl_is_market = true } = input
  if (input.reduce_only && (tp_price ?? sl_price) !== undefined)
    throw invalid(
      tp_price === undefined ? 'body.sl_price' : 'body.tp_price',
      'exactly_one_of',
      'An order that only reduces takes no bracket',
      { fields: ['reduce_only', 'tp_price', 'sl_price'] },
    )
  const exit = (leg: 'tp' | 'sl', price: string | undefined, isMarket: boolean) => {
    if (price === undefined) return null
    const field = `body.${leg}_price`
    demandTick(price, market, field, pricing)
    demandExit({ leg, price, isBuy, reference, field })
    return { price, isMarket }
  }
  return { tp: exit('tp', tp_price, tp_is_market), sl: exit('sl', sl_price, sl_is_market) }
}

/** Where the entry will trade at best: its own price, unless the mark is better. */
const referenceOf = (isBuy: boolean, limit: string | undefined, mark: string): string =>
  limit === undefined || compareDecimals(limit, mark) > 0 === isBuy ? mark : limit

export async function admitOpen(needs: TradeNeeds, input: OpenInput, { userId }: Caller): Promise<Admission> {
  const { venue, pricing, policy, chainId, clock, limits } = needs
  const isBuy = sideOf(input)
  const { markets } = await venue.perps()
  const market = marketNamed('perp', markets, input.asset)
  const leverage = leverageOf(input, market)
  const limit = limitPriceOf(input, market, pricing)
  const account = await needs.evmAddressOf(userId)
  const reduces = input.reduce_only === true
  const stateRead = reduces ? venue.account(account) : undefined
  const reading = Promise.all([
    venue.standing(account, market.symbol),
    stateRead,
    stateRead?.then(({ timeMs }) => timeMs) ?? venue.timeMs(account),
    limit === undefined ? venue.mids() : undefined,
  ])
  const { agent, read } = await besideAgent(needs, userId, reading)
  const [standing, state, timeMs, mids] = read
  const mid = mids?.get(market.symbol) ?? standing.markPrice
  const price = limit ?? pricing.boundPrice(mid, input.slippage_pct ?? slippageDefault, isBuy, market)
  const reference = referenceOf(isBuy, limit, standing.markPrice)
  const size = sizeOf(
    { size: input.size, notional: input.notional_usd },
    { market, price: limit ?? mid, minimum: limits.minOrderUsd, notionalField: 'notional_usd' },
    pricing,
  )
  const exits = exitsOf({ input, market, isBuy, reference }, pricing)
  const notional = pricing.notionalMicros(price, size, 'up')
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation: 'perp_open', chainId, tokens: [assetKey('perp', market.symbol)], recipients: [] },
    ...{ usdMicros: reduces ? 0n : notional, exit: reduces },
  }
  const gather = await orForbidden(policy, action, async () => {
    // Only a market without a position may have another margin mode than the account has set for it.
    const isMoot = !reduces && standing.isCross === leverage.is_cross
    const { positions } = isMoot ? { positions: [] } : (state ?? (await venue.account(account)))
    demandPosition(positions, market, { reduces, isBuy, isCross: leverage.is_cross })
    const freeUsd = isBuy ? standing.freeUsd.buy : standing.freeUsd.sell
    return reduces ? null : gatherFor(venue, { account, notional, leverage: leverage.value, freeUsd })
  })
  const memory: Memory = {
    ...{ operation: 'perp_open', market: 'perp', symbol: market.symbol, asset: market.asset },
    ...{ account, agent: agent.address, exit: reduces },
    ...{ size_decimals: market.sizeDecimals, price_decimals: market.priceDecimals },
    ...{ ahead_ms: aheadOf(clock, timeMs), since_ms: timeMs - clockErrorMs, is_buy: isBuy, size, price },
    ...{ tif: limit === undefined ? 'ioc' : (input.tif ?? 'gtc'), reduce_only: reduces, ...exits },
    ...{ usd_micros: String(action.usdMicros), ...(gather ?? { gather }) },
    leverage:
      reduces || (standing.isCross === leverage.is_cross && standing.leverage === leverage.value)
        ? null
        : leverage,
  }
  return {
    ...{ first: 'begin', deadlineMs: tradeMs, data: asData(memory), opens: opensAtOnce(memory) },
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}
