import { asData, type Memory, opensAtOnce } from '#features/venue/memory.ts'
import { positionOf } from '#features/venue/order-evidence.ts'
import { accountAfterTasks } from '#features/venue/read-after-write.ts'
import { assetKey, marketNamed } from '#features/venue/symbol.ts'
import { aheadOf, besideAgent, slippageDefault, tradeMs } from '#features/venue/trade.ts'
import { demandWorth, limitPriceOf } from '#features/venue/wish.ts'
import type { Caller } from '#kernel/caller.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { Action } from '#kernel/signer.ts'
import type { Admission } from '#kernel/task.ts'
import type { TradeNeeds } from './open.ts'

export type CloseInput = {
  asset: string
  size?: string
  order_type?: 'market' | 'limit'
  limit_price?: string
  slippage_pct?: string
}

export async function admitClose(
  needs: TradeNeeds,
  input: CloseInput,
  { userId }: Caller,
): Promise<Admission> {
  const { venue, pricing, policy, chainId, clock, limits } = needs
  const market = marketNamed('perp', (await venue.perps()).markets, input.asset)
  const limit = limitPriceOf(input, market, pricing)
  const account = await needs.evmAddressOf(userId)
  const reading = Promise.all([
    accountAfterTasks(needs, { userId, account, symbol: market.symbol }),
    venue.mids(),
  ])
  const { agent, read } = await besideAgent(needs, userId, reading)
  const [state, mids] = read
  const position = positionOf(state, market.symbol)
  if (!position) throw new Fault('no_position', `There is no position in ${market.symbol} to close`)
  const isBuy = position.signedSize.startsWith('-')
  const held = position.signedSize.replace('-', '')
  const asked = input.size === undefined ? held : pricing.roundSize(input.size, market)
  const size = compareDecimals(asked, held) > 0 ? held : asked
  const mid = mids.get(market.symbol) ?? market.markPrice
  const price = limit ?? pricing.boundPrice(mid, input.slippage_pct ?? slippageDefault, isBuy, market)
  // The venue counts at the price of the order, which for a sale lies below the middle.
  const worthPrice = isBuy ? (limit ?? mid) : price
  // A whole position may be of any size; otherwise dust could never be closed.
  if (size !== held)
    demandWorth({ size, price: worthPrice, minimum: limits.minOrderUsd, field: 'body.size', market }, pricing)
  const action: Omit<Action, 'taskId'> = {
    userId,
    operation: 'perp_close',
    chainId,
    tokens: [assetKey('perp', market.symbol)],
    recipients: [],
    usdMicros: 0n,
    exit: true,
  }
  const memory: Memory = {
    operation: 'perp_close',
    market: 'perp',
    symbol: market.symbol,
    asset: market.asset,
    account,
    agent: agent.address,
    exit: true,
    size_decimals: market.sizeDecimals,
    price_decimals: market.priceDecimals,
    ahead_ms: aheadOf(clock, state.timeMs),
    since_ms: state.timeMs,
    is_buy: isBuy,
    size,
    ...(compareDecimals(asked, held) > 0 && { asked_size: asked }),
    price,
    tif: limit === undefined ? 'ioc' : 'gtc',
    reduce_only: true,
    usd_micros: '0',
    gather: null,
    leverage: null,
    tp: null,
    sl: null,
  }
  return {
    first: 'begin',
    deadlineMs: tradeMs,
    data: asData(memory),
    opens: opensAtOnce(memory),
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}
