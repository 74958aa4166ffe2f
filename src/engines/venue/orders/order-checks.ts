import { compareDecimals } from '#kernel/decimal-fields.ts'
import { invalid } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import type { Direction, Grid } from '#upstreams/hyperliquid/rounding.ts'

/** Validation of sizes and prices in a request. */

/** Rounding to lots and ticks, injected from the venue's adapter. */
export type Sizing = {
  isOnTick(price: string, grid: Grid): boolean
  tickAt(price: string, grid: Grid): string
  roundSize(size: string, grid: Grid): string
  sizeOfNotional(usd: string, price: string, grid: Grid, direction?: Direction): string
  notionalMicros(price: string, size: string, direction?: Direction): bigint
}

export function assertTick(price: string, grid: Grid, field: string, { isOnTick, tickAt }: Sizing): void {
  if (isOnTick(price, grid)) return
  const tick = tickAt(price, grid)
  throw invalid(field, 'tick_invalid', `Input should be a multiple of the tick ${tick}`, { tick })
}

type Priced = { order_type?: 'market' | 'limit'; limit_price?: string }

/** Undefined for a market order. */
export function limitPriceOf(input: Priced, grid: Grid, sizing: Sizing): string | undefined {
  const { order_type = 'market', limit_price } = input
  if (order_type === 'market') {
    if (limit_price === undefined) return undefined
    throw invalid('limit_price', 'extra_forbidden', 'A market order takes no limit price')
  }
  if (limit_price === undefined) throw invalid('limit_price', 'missing', 'Field required')
  assertTick(limit_price, grid, 'limit_price', sizing)
  return limit_price
}

/** A market order takes liquidity, which post-only forbids. */
export function assertTif({ order_type = 'market', tif }: Priced & { tif?: 'gtc' | 'ioc' | 'alo' }): void {
  if (order_type !== 'market' || tif !== 'alo') return
  throw invalid(
    'tif',
    'literal_error',
    'A market order takes liquidity: use `alo` (post only) with `order_type` limit only',
    { expected: "'ioc' or 'gtc'" },
  )
}

type Sized = { size: string | undefined; notional: string | undefined }
type SizeRules = {
  market: Grid
  price: string
  /** The price by which the venue computes the order's value; default `price`. */
  worthPrice?: string
  minimum: string
  /** The section's field name of the notional. */
  notionalField: string
  /** Rounds up to the minimum where the notional suffices and the rounded size is worth less. */
  mayRoundUp?: boolean
}

/** Rounds down to lots; throws where the result is zero or below the minimum. */
export function orderSize({ size, notional }: Sized, rules: SizeRules, sizing: Sizing): string {
  const { market, price, worthPrice = price, minimum, notionalField, mayRoundUp = false } = rules
  if ((size === undefined) === (notional === undefined))
    throw invalid('size', 'exactly_one_of', `Exactly one of size and ${notionalField} is required`, {
      fields: ['size', notionalField],
    })
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

/** Throws 422 with the rounded size and the smallest sufficient size. */
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

type ExitCheck = { leg: 'tp' | 'sl'; price: string; isBuy: boolean; reference: string; field: string }

/** A trigger on the wrong side of the price would fire at once. */
export function assertExit({ leg, price, isBuy, reference, field }: ExitCheck): void {
  const above = (leg === 'tp') === isBuy
  const order = compareDecimals(price, reference)
  if (above ? order > 0 : order < 0) return
  throw above
    ? invalid(field, 'greater_than', `Input should be greater than ${reference}`, { gt: reference })
    : invalid(field, 'less_than', `Input should be less than ${reference}`, { lt: reference })
}
