import { transferFor } from '#engines/venue/orders/collateral-shortfall.ts'
import { transferableFromPerp } from '#engines/venue/orders/collateral-transfer.ts'
import type { HeldBefore } from '#engines/venue/orders/consistent-reads.ts'
import {
  assertExit,
  assertTick,
  assertWorth,
  limitPriceOf,
  orderPrice,
  orderSize,
} from '#engines/venue/orders/order-checks.ts'
import { orderBasis, startsWithOrder } from '#engines/venue/orders/order-task.ts'
import { recentSpendings, SpendingNotShown } from '#engines/venue/orders/pending-spends.ts'
import { rereadBalances } from '#engines/venue/orders/read-after-write.ts'
import { tradeDeadlineMs, withAgent } from '#engines/venue/orders/require-trading-key.ts'
import { spotBalanceKey } from '#engines/venue/records/expected-balances.ts'
import { assetKey } from '#engines/venue/records/markets.ts'
import { ownPartOf, reduciblePart } from '#engines/venue/records/reducible-part.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { fromFixedPoint, fromUnits, mulDiv, toFixedPoint, toMicros } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms } from '#kernel/task/approval.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { SpotInput } from './contract.ts'
import type { SpotDeps } from './deps.ts'
import { freeOf, insufficientHolding, smallestLot } from './free-balance.ts'
import type { SpotOrderTaskData } from './gateway-triggers.ts'
import { midOf, quoteToken, requireKnownSpotMarket, requireSpotMarket } from './spot-markets.ts'
import { assertTriggerLimit } from './trigger-store.ts'

type BuyInput = SpotInput<'buy'>
type SellInput = SpotInput<'sell'>

/** A purchase pays its fee in the bought token, and no fee tier of the venue exceeds this reserve. */
export const feeReserve = { numerator: 999n, denominator: 1000n }

export const spotAction = (
  { chainId }: Pick<SpotDeps, 'chainId'>,
  facts: { userId: string; operation: string; symbol: string; usdMicros: bigint; exit: boolean },
): PlannedAction => {
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

export const baseTaskData = (
  basis: Omit<Parameters<typeof orderBasis>[0], 'kind'>,
  clock: SpotDeps['clock'],
): Omit<SpotOrderTaskData, 'is_buy' | 'size' | 'price' | 'tif' | 'exit' | 'usd_micros'> => ({
  ...orderBasis({ ...basis, kind: 'spot' }, clock),
  reduce_only: false,
  gateway_exits: [],
})

type Bracket = { market: SpotMarket; reference: string; size: string; minimum: string }

function exitsOf(
  input: BuyInput,
  { market, reference, size, minimum }: Bracket,
  pricing: SpotDeps['pricing'],
) {
  return (['tp', 'sl'] as const).flatMap((leg) => {
    const price = input[`${leg}_price`]
    if (price === undefined) return []
    const field = `${leg}_price`
    assertTick(price, market, field, pricing)
    assertExit({ leg, price, isBuy: true, reference, field, isLimit: reference === input.limit_price })
    assertWorth({ size, price, minimum, field }, pricing)
    return [{ leg, price }]
  })
}

/** Returns the transfer from the perp side of the USDC that the spot side lacks for a purchase. */
const transferForPurchase = (
  { venue }: Pick<SpotDeps, 'venue'>,
  {
    account,
    balances,
    spendings,
  }: Pick<Awaited<ReturnType<typeof readAccount>>, 'account' | 'balances' | 'spendings'>,
  { required, isLast }: { required: bigint; isLast: boolean },
) =>
  transferFor(
    {
      what: 'The purchase',
      required,
      available: toMicros(freeOf(balances, quoteToken)),
      pendingSpend: spendings.spotCash(balances),
      isLast,
    },
    (shortfall) => transferableFromPerp(venue, account, shortfall, spendings),
  )

async function readAccount(deps: SpotDeps, userId: string, tokens: readonly string[]) {
  const { venue } = deps
  const account = await deps.evmAddressOf(userId)
  const { agent, read } = await withAgent(deps, userId, () =>
    Promise.all([
      venue.spotBalances(account, tokens),
      venue.account(account),
      venue.mids(),
      recentSpendings(deps, userId),
    ]),
  )
  const [balances, state, mids, spendings] = read
  return { account, agent: agent.address, balances, sinceMs: state.timeMs, mids, spendings }
}

export const admitBuy = (deps: SpotDeps) =>
  createAdmission({
    policy: deps.policy,
    reread: (userId, admit) => rereadBalances(deps, userId, admit),
    check: (input: BuyInput, { userId }) => checkBuy(deps, input, userId),
    fund: ({ accountState, required }, { isLast }) =>
      transferForPurchase(deps, accountState, { required, isLast }),
    start: ({ data }, transfer) => startOrder({ ...data, ...transfer }),
  })

const startOrder = (data: SpotOrderTaskData) => ({
  first: 'begin' as const,
  deadlineMs: tradeDeadlineMs,
  data,
  signOnAccept: startsWithOrder(data),
})

async function checkBuy(deps: SpotDeps, input: BuyInput, userId: string) {
  const { pricing, clock, limits } = deps
  const market = await requireSpotMarket(deps.venue, input.asset)
  const limit = limitPriceOf(input, market, pricing)
  const accountState = await readAccount(deps, userId, [quoteToken, market.base])
  const { account, agent, balances, sinceMs, mids } = accountState
  const mid = midOf(mids, market)
  const price = orderPrice(input, { limit, mid, isBuy: true, market }, pricing)
  const size = orderSize(
    { size: input.size, notional: input.notional_usdc },
    // The size follows from the bound price, so that the cost never exceeds the requested notional.
    { market, price, minimum: limits.minOrderUsd, notionalField: 'notional_usdc' },
    pricing,
  )
  const reference = limit !== undefined && compareDecimals(limit, mid) < 0 ? limit : mid
  const reserved = mulDiv(toFixedPoint(size), feeReserve.numerator, feeReserve.denominator)
  const exitSize = pricing.roundSize(fromFixedPoint(reserved), market)
  const exits = exitsOf(input, { market, reference, size: exitSize, minimum: limits.minOrderUsd }, pricing)
  if (exits.length > 0) await assertTriggerLimit(deps.db, userId)
  const required = pricing.notionalMicros(price, size, 'up')
  const action = spotAction(deps, {
    userId,
    operation: 'spot_buy',
    symbol: market.symbol,
    usdMicros: required,
    exit: false,
  })
  const terms = actionTerms(`Buy ${size} ${market.symbol} on Hyperliquid`, {
    venue: 'Hyperliquid',
    asset: market.symbol,
    amount: size,
    token: market.symbol,
    cost: 'The trading fee of Hyperliquid, which is taken from what is bought',
  })
  const atVenue = deps.triggerHost === 'venue'
  const wanted = (leg: 'tp' | 'sl') => {
    const exit = atVenue ? exits.find((each) => each.leg === leg) : undefined
    return exit ? { price: exit.price, isMarket: true } : null
  }
  const data: SpotOrderTaskData = {
    ...baseTaskData({ operation: 'spot_buy', market, account, agent, sinceMs }, clock),
    is_buy: true,
    size,
    price,
    tif: limit === undefined ? 'ioc' : (input.tif ?? 'gtc'),
    exit: false,
    usd_micros: String(required),
    tp: wanted('tp'),
    sl: wanted('sl'),
    held_before: heldOf(balances, market),
    gateway_exits: atVenue ? [] : exits,
    exit_size: exitSize,
  }
  return { action: { ...action, terms }, accountState, required, data }
}

type Held = { market: SpotMarket; price: string; free: string; minimum: string }

/** Returns the size of a sale; without a size and a notional, it is the free balance, rounded down to lots. */
function saleSize(input: SellInput, held: Held, pricing: SpotDeps['pricing']): string {
  const { market, price, free, minimum } = held
  const { size: asked, notional_usdc: notional } = input
  if (asked === undefined && notional === undefined) {
    const size = pricing.roundSize(free, market)
    const lot = fromUnits(1n, market.sizeDecimals)
    if (compareDecimals(size, '0') === 0)
      throw insufficientHolding(market, { what: 'The sale', required: lot, free, note: smallestLot(lot) })
    assertWorth({ size, price, minimum, field: 'size', market }, pricing)
    return size
  }
  const setting = { market, price, minimum, notionalField: 'notional_usdc' }
  const size = orderSize({ size: asked, notional }, setting, pricing)
  if (compareDecimals(size, free) > 0)
    throw insufficientHolding(market, { what: 'The sale', required: size, free })
  return size
}

export const admitSell = (deps: SpotDeps) =>
  createAdmission({
    policy: deps.policy,
    reread: (userId, admit) => rereadBalances(deps, userId, admit),
    check: (input: SellInput, { userId }) => checkSell(deps, input, userId),
    async fund({ input, market, price, accountState }, { userId, run, isLast }) {
      const { balances, spendings } = accountState
      const { symbol, base } = market
      const held = freeOf(balances, base)
      const record = { balance_key: spotBalanceKey(base), total: heldOf(balances, market).total }
      const holding = { userId, market: 'spot', symbol, isLong: true, held, ...record } as const
      const free = await reduciblePart(deps.db, run, holding)
      const { minOrderUsd: minimum } = deps.limits
      const size = saleSize(input, { market, price, free, minimum }, deps.pricing)
      const pending = spendings.onSpot(balances, market.base)
      // On the last attempt a pending spend does not refuse a sale: the venue rejects an excessive size itself.
      if (!isLast && toFixedPoint(size) > toFixedPoint(free) - pending.amount) throw new SpendingNotShown()
      return { size, ...ownPartOf(run, record) }
    },
    start: ({ data }, sized) => startOrder({ ...data, ...sized }),
  })

async function checkSell(deps: SpotDeps, input: SellInput, userId: string) {
  const { pricing, clock } = deps
  const market = await requireKnownSpotMarket(deps.venue, input.asset)
  const limit = limitPriceOf(input, market, pricing)
  const accountState = await readAccount(deps, userId, [market.base])
  const { account, agent, balances, sinceMs, mids } = accountState
  const price = orderPrice(input, { limit, mid: midOf(mids, market), isBuy: false, market }, pricing)
  const action = spotAction(deps, {
    userId,
    operation: 'spot_sell',
    symbol: market.symbol,
    usdMicros: 0n,
    exit: true,
  })
  const data: Omit<SpotOrderTaskData, 'size'> = {
    ...baseTaskData({ operation: 'spot_sell', market, account, agent, sinceMs }, clock),
    is_buy: false,
    price,
    tif: limit === undefined ? 'ioc' : (input.tif ?? 'gtc'),
    exit: true,
    usd_micros: '0',
    held_before: heldOf(balances, market),
  }
  return { input, action, market, price, accountState, data }
}
