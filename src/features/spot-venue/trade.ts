import { portionFor } from '#features/venue/collateral.ts'
import { movableFromPerp } from '#features/venue/gather.ts'
import { asData, type Memory, opensAtOnce } from '#features/venue/memory.ts'
import type { HeldBefore } from '#features/venue/order-evidence.ts'
import { rereadBalances } from '#features/venue/read-after-write.ts'
import { recentSpendings, SpendingNotShown } from '#features/venue/spending.ts'
import { assetKey } from '#features/venue/symbol.ts'
import { aheadOf, besideAgent, orForbidden, slippageDefault, tradeMs } from '#features/venue/trade.ts'
import { demandExit, demandTick, demandTif, demandWorth, limitPriceOf, sizeOf } from '#features/venue/wish.ts'
import type { Caller } from '#kernel/caller.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { fromUnits, mulDiv, toUnits, usdDecimals } from '#kernel/money.ts'
import type { Action } from '#kernel/signer.ts'
import type { Admission } from '#kernel/task.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { freeOf, midOf, quoteToken, smallestLot, spotNamed, tooLittle } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { demandRoom } from './triggers.ts'

/** What is decided before anything is bought or sold: a request that cannot succeed is refused here. */

type Order = {
  asset: string
  size?: string
  notional_usdc?: string
  order_type?: 'market' | 'limit'
  limit_price?: string
  tif?: 'gtc' | 'ioc' | 'alo'
  slippage_pct?: string
}
export type BuyInput = Order & { tp_price?: string; sl_price?: string }
export type SellInput = Order

/** Exits of a purchase that the gateway keeps, since the venue takes none. */
export type SpotMemory = Memory & { kept: { leg: 'tp' | 'sl'; price: string }[] }
export const spotData = (memory: SpotMemory) => asData(memory)

/** The fee of a purchase comes out of what was bought; no tier of the venue takes more. */
export const feeReserve = { taken: 999n, of: 1000n }
const scale = 18

export const spotAction = (
  { chainId }: Pick<SpotNeeds, 'chainId'>,
  facts: { userId: string; operation: string; symbol: string; usdMicros: bigint; exit: boolean },
): Omit<Action, 'taskId'> => {
  const { userId, operation, symbol, usdMicros, exit } = facts
  const tokens = [assetKey('spot', symbol)]
  return { userId, operation, chainId, tokens, recipients: [], usdMicros, exit }
}

export const heldOf = (
  balances: readonly { coin: string; total: string }[],
  { base, coin }: Pick<SpotMarket, 'base' | 'coin'>,
): HeldBefore => ({
  coin: base,
  market: coin,
  total: balances.find((each) => each.coin === base)?.total ?? '0',
})

type Placing = { operation: string; market: SpotMarket; account: string; agent: string; sinceMs: number }

export const memoryFor = (
  { operation, market, account, agent, sinceMs }: Placing,
  clock: SpotNeeds['clock'],
): Omit<SpotMemory, 'is_buy' | 'size' | 'price' | 'tif' | 'exit' | 'usd_micros'> => ({
  operation,
  market: 'spot',
  symbol: market.symbol,
  asset: market.asset,
  account,
  agent,
  size_decimals: market.sizeDecimals,
  price_decimals: market.priceDecimals,
  ahead_ms: aheadOf(clock, sinceMs),
  since_ms: sinceMs,
  reduce_only: false,
  gather: null,
  leverage: null,
  tp: null,
  sl: null,
  kept: [],
})

type Bracket = { market: SpotMarket; reference: string; size: string; minimum: string }

function exitsOf(
  input: BuyInput,
  { market, reference, size, minimum }: Bracket,
  pricing: SpotNeeds['pricing'],
) {
  return (['tp', 'sl'] as const).flatMap((leg) => {
    const price = input[`${leg}_price`]
    if (price === undefined) return []
    const field = `body.${leg}_price`
    demandTick(price, market, field, pricing)
    demandExit({ leg, price, isBuy: true, reference, field })
    demandWorth({ size, price, minimum, field }, pricing)
    return [{ leg, price }]
  })
}

/** What comes over from the perpetual side, where the spot side does not have it. */
const gatherFor = (
  { venue }: Pick<SpotNeeds, 'venue'>,
  {
    account,
    balances,
    spendings,
  }: Pick<Awaited<ReturnType<typeof standingOf>>, 'account' | 'balances' | 'spendings'>,
  { required, isLast }: { required: bigint; isLast: boolean },
) =>
  portionFor(
    {
      what: 'The purchase',
      required,
      available: toUnits(freeOf(balances, quoteToken), scale) / 10n ** BigInt(scale - usdDecimals),
      unseen: spendings.spotCash(balances),
      isLast,
    },
    (missing) => movableFromPerp(venue, account, missing, spendings),
  )

async function standingOf(needs: SpotNeeds, userId: string, tokens: readonly string[]) {
  const { venue } = needs
  const account = await needs.evmAddressOf(userId)
  const reading = Promise.all([
    venue.spotBalances(account, tokens),
    venue.account(account),
    venue.mids(),
    recentSpendings(needs, userId),
  ])
  const { agent, read } = await besideAgent(needs, userId, reading)
  const [balances, state, mids, spendings] = read
  return { account, agent: agent.address, balances, sinceMs: state.timeMs, mids, spendings }
}

export const admitBuy = (needs: SpotNeeds, input: BuyInput, { userId }: Pick<Caller, 'userId'>) =>
  rereadBalances(needs, userId, (isLast) => admitBuyOnce(needs, input, userId, isLast))

async function admitBuyOnce(
  needs: SpotNeeds,
  input: BuyInput,
  userId: string,
  isLast: boolean,
): Promise<Admission> {
  const { pricing, policy, clock, limits } = needs
  const market = await spotNamed(needs.venue, input.asset)
  demandTif(input)
  const limit = limitPriceOf(input, market, pricing)
  const standing = await standingOf(needs, userId, [quoteToken, market.base])
  const { account, agent, balances, sinceMs, mids } = standing
  const mid = midOf(mids, market)
  const price = limit ?? pricing.boundPrice(mid, input.slippage_pct ?? slippageDefault, true, market)
  const size = sizeOf(
    { size: input.size, notional: input.notional_usdc },
    // What is spent never passes what was asked for, whatever the slippage turns out to be.
    { market, price, minimum: limits.minOrderUsd, notionalField: 'notional_usdc' },
    pricing,
  )
  const reference = limit !== undefined && compareDecimals(limit, mid) < 0 ? limit : mid
  const reserved = mulDiv(toUnits(size, scale), feeReserve.taken, feeReserve.of)
  const exitSize = pricing.roundSize(fromUnits(reserved, scale), market)
  const exits = exitsOf(input, { market, reference, size: exitSize, minimum: limits.minOrderUsd }, pricing)
  if (exits.length > 0) await demandRoom(needs.on, userId)
  const required = pricing.notionalMicros(price, size, 'up')
  const action = spotAction(needs, {
    userId,
    operation: 'spot_buy',
    symbol: market.symbol,
    usdMicros: required,
    exit: false,
  })
  const gather = await orForbidden(policy, action, () => gatherFor(needs, standing, { required, isLast }))
  const atVenue = needs.keeper === 'venue'
  const wanted = (leg: 'tp' | 'sl') => {
    const exit = atVenue ? exits.find((each) => each.leg === leg) : undefined
    return exit ? { price: exit.price, isMarket: true } : null
  }
  const memory: SpotMemory = {
    ...memoryFor({ operation: 'spot_buy', market, account, agent, sinceMs }, clock),
    is_buy: true,
    size,
    price,
    tif: limit === undefined ? 'ioc' : (input.tif ?? 'gtc'),
    exit: false,
    usd_micros: String(required),
    tp: wanted('tp'),
    sl: wanted('sl'),
    held_before: heldOf(balances, market),
    ...gather,
    kept: atVenue ? [] : exits,
    exit_size: exitSize,
  }
  return {
    first: 'begin',
    deadlineMs: tradeMs,
    data: spotData(memory),
    opens: opensAtOnce(memory),
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

type Held = { market: SpotMarket; price: string; free: string; minimum: string }

/** No size and no notional: everything that is free, cut to the lot. */
function saleSize(input: SellInput, held: Held, pricing: SpotNeeds['pricing']): string {
  const { market, price, free, minimum } = held
  const { size: asked, notional_usdc: notional } = input
  if (asked === undefined && notional === undefined) {
    const size = pricing.roundSize(free, market)
    const lot = fromUnits(1n, market.sizeDecimals)
    if (compareDecimals(size, '0') === 0)
      throw tooLittle(market, { what: 'The sale', required: lot, free, note: smallestLot(lot) })
    demandWorth({ size, price, minimum, field: 'body.size', market }, pricing)
    return size
  }
  const setting = { market, price, minimum, notionalField: 'notional_usdc' }
  const size = sizeOf({ size: asked, notional }, setting, pricing)
  if (compareDecimals(size, free) > 0) throw tooLittle(market, { what: 'The sale', required: size, free })
  return size
}

export const admitSell = (needs: SpotNeeds, input: SellInput, { userId }: Pick<Caller, 'userId'>) =>
  rereadBalances(needs, userId, (isLast) => admitSellOnce(needs, input, userId, isLast))

async function admitSellOnce(
  needs: SpotNeeds,
  input: SellInput,
  userId: string,
  isLast: boolean,
): Promise<Admission> {
  const { pricing, policy, clock, limits } = needs
  const market = await spotNamed(needs.venue, input.asset)
  demandTif(input)
  const limit = limitPriceOf(input, market, pricing)
  const { account, agent, balances, sinceMs, mids, spendings } = await standingOf(needs, userId, [
    market.base,
  ])
  const price =
    limit ?? pricing.boundPrice(midOf(mids, market), input.slippage_pct ?? slippageDefault, false, market)
  const free = freeOf(balances, market.base)
  const size = saleSize(input, { market, price, free, minimum: limits.minOrderUsd }, pricing)
  const unseen = spendings.onSpot(balances, market.base)
  // A sale is never refused for what may be sold already: of more than there is, the venue sells nothing.
  if (!isLast && toUnits(size, scale) > toUnits(free, scale) - unseen.amount) throw new SpendingNotShown()
  const action = spotAction(needs, {
    userId,
    operation: 'spot_sell',
    symbol: market.symbol,
    usdMicros: 0n,
    exit: true,
  })
  const memory: SpotMemory = {
    ...memoryFor({ operation: 'spot_sell', market, account, agent, sinceMs }, clock),
    is_buy: false,
    size,
    price,
    tif: limit === undefined ? 'ioc' : (input.tif ?? 'gtc'),
    exit: true,
    usd_micros: '0',
    held_before: heldOf(balances, market),
  }
  return {
    first: 'begin',
    deadlineMs: tradeMs,
    data: spotData(memory),
    opens: opensAtOnce(memory),
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}
