import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money/money.ts'
import type { Direction, Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { OrderTaskData, WantedExit } from './order-task.ts'

const defaultSlippagePercent = '0.5'

/** Rounding to lots and ticks, which the venue's adapter supplies. */
export type Sizing = {
  isOnTick(price: string, grid: Grid): boolean
  tickAt(price: string, grid: Grid): string
  roundSize(size: string, grid: Grid): string
  sizeOfNotional(usd: string, price: string, grid: Grid, direction?: Direction): string
  notionalMicros(price: string, size: string, direction?: Direction): bigint
}

/** Rounding of prices, which the venue's adapter supplies. */
export type Pricing = {
  boundPrice(
    price: string,
    bound: {
      percent: string
      isBuy: boolean
      grid: { sizeDecimals: number; priceDecimals: number }
    },
  ): string
}

export function assertTick(price: string, grid: Grid, field: string, { isOnTick, tickAt }: Sizing): void {
  if (isOnTick(price, grid)) return
  const tick = tickAt(price, grid)
  throw invalid(
    field,
    'tick_invalid',
    `Input should be a multiple of the tick ${tick}: round the price to it`,
    { tick },
  )
}

type Priced = { order_type?: 'market' | 'limit'; limit_price?: string; tif?: OrderTaskData['tif'] }

/** Returns the limit price of an order; undefined for a market order, which must not be post-only. */
export function limitPriceOf(input: Priced, grid: Grid, sizing: Sizing): string | undefined {
  const { order_type = 'market', limit_price, tif } = input
  if (order_type === 'market') {
    if (tif === 'alo')
      throw invalid(
        'tif',
        'literal_error',
        'A market order takes liquidity, which `alo` (post only) forbids: send `order_type` limit with it',
        { expected: "'ioc' or 'gtc'" },
      )
    if (limit_price === undefined) return undefined
    throw invalid(
      'limit_price',
      'extra_forbidden',
      'A market order takes no limit price: leave it out, or send `order_type` limit',
    )
  }
  if (limit_price === undefined)
    throw invalid('limit_price', 'missing', 'Field required: a limit order needs `limit_price`')
  assertTick(limit_price, grid, 'limit_price', sizing)
  return limit_price
}

type PricedOrder = { limit: string | undefined; mid: string; isBuy: boolean; market: Grid }

/** Returns an order's limit price; for a market order, the worst price that the slippage allows. */
export const orderPrice = (
  { slippage_pct: percent = defaultSlippagePercent }: { slippage_pct?: string },
  { limit, mid, isBuy, market }: PricedOrder,
  { boundPrice }: Pricing,
): string => limit ?? boundPrice(mid, { percent, isBuy, grid: market })

type Sized = { size: string | undefined; notional: string | undefined }
type SizeRules = {
  market: Grid
  price: string
  /** The price by which the venue values the order; if absent, `price`. */
  worthPrice?: string
  minimum: string
  notionalField: string
  /** Whether a size is rounded up to the minimum, if the notional suffices and the rounded size is worth less. */
  mayRoundUp?: boolean
}

/** Returns the size of an order, rounded down to lots. Throws if the size is zero or below the minimum. */
export function orderSize({ size, notional }: Sized, rules: SizeRules, sizing: Sizing): string {
  const { market, price, worthPrice = price, minimum, notionalField, mayRoundUp = false } = rules
  if ((size === undefined) === (notional === undefined))
    throw exactlyOneOf('size', notionalField, { hasBoth: size !== undefined })
  const field = size === undefined ? notionalField : 'size'
  const rounded =
    size === undefined ? sizing.sizeOfNotional(notional!, price, market) : sizing.roundSize(size, market)
  const worth: Worth = { size: rounded, price: worthPrice, minimum, field, market }
  const suffices = notional !== undefined && compareDecimals(notional, minimum) >= 0
  if (!mayRoundUp || !suffices || isWorth(worth, sizing)) {
    assertWorth(worth, sizing)
    return rounded
  }
  return sizing.sizeOfNotional(minimum, worthPrice, market, 'up')
}

type Worth = { size: string; price: string; minimum: string; field: string; market?: Grid }

const isWorth = ({ size, price, minimum }: Worth, { notionalMicros }: Sizing): boolean =>
  compareDecimals(size, '0') > 0 && notionalMicros(price, size) >= toUnits(minimum, usdDecimals)

/** Throws 422 with the rounded size and the smallest sufficient size if an order is worth too little. */
export function assertWorth(worth: Worth, sizing: Sizing): void {
  if (isWorth(worth, sizing)) return
  const { size, price, minimum, field, market } = worth
  const worthUsd = fromUnits(sizing.notionalMicros(price, size), usdDecimals)
  const minimumSize = market && sizing.sizeOfNotional(minimum, price, market, 'up')
  const enough = minimumSize === undefined ? '' : `; use a size of at least ${minimumSize}`
  throw invalid(
    field,
    'below_minimum',
    `Input should be worth at least ${minimum} USD: rounded to the lot it is ${size}, worth ${worthUsd} USD at ${price}${enough}`,
    {
      minimum,
      unit: 'USD',
      rounded_size: size,
      worth_usd: worthUsd,
      ...(minimumSize !== undefined && { minimum_size: minimumSize }),
    },
  )
}

const exitNames = { tp: 'take-profit', sl: 'stop-loss' } as const
type ExitCheck = {
  leg: 'tp' | 'sl'
  price: string
  isBuy: boolean
  reference: string
  field: string
  /** Whether the reference is the limit price of the entry, and not the price of the market. */
  isLimit?: boolean
}

/** Throws if an exit's trigger is on the wrong side of the price, where it would fire at once. */
export function assertExit({ leg, price, isBuy, reference, field, isLimit = false }: ExitCheck): void {
  const above = (leg === 'tp') === isBuy
  const order = compareDecimals(price, reference)
  if (above ? order > 0 : order < 0) return
  const rule = `The ${exitNames[leg]} of a ${isBuy ? 'long' : 'short'} must be ${above ? 'above' : 'below'}`
  const msg = `${rule} the price, ${isLimit ? 'here the limit' : 'now'} ${reference}`
  throw above
    ? invalid(field, 'greater_than', msg, { gt: reference })
    : invalid(field, 'less_than', msg, { lt: reference })
}

type ExitInput = Partial<Record<'limit_price' | 'tp_price' | 'sl_price', string>> &
  Partial<Record<'tp_is_market' | 'sl_is_market', boolean>>
type Exited = Pick<ExitCheck, 'isBuy' | 'reference'> & { market: Grid }

/** Returns the exits that the request has for a position. */
export function checkedExits(
  input: ExitInput,
  { market, isBuy, reference }: Exited,
  sizing: Sizing,
): Record<'tp' | 'sl', WantedExit | null> {
  const exit = (leg: 'tp' | 'sl'): WantedExit | null => {
    const field = `${leg}_price` as const
    const price = input[field]
    if (price === undefined) return null
    assertTick(price, market, field, sizing)
    assertExit({ leg, price, isBuy, reference, field, isLimit: reference === input.limit_price })
    return { price, isMarket: input[`${leg}_is_market`] ?? true }
  }
  return { tp: exit('tp'), sl: exit('sl') }
}
