import { compareDecimals } from '#kernel/decimal-fields.ts'
import { invalid } from '#kernel/fault.ts'
import { toUnits, usdDecimals } from '#kernel/money.ts'
import type { Direction, Grid } from '#upstreams/hyperliquid/grid.ts'

/** The rules that sizes and prices of a request are held against. */

/** The venue's grid, lent by its adapter. */
export type Sizing = {
  isOnTick(price: string, grid: Grid): boolean
  tickAt(price: string, grid: Grid): string
  roundSize(size: string, grid: Grid): string
  sizeOfNotional(usd: string, price: string, grid: Grid): string
  notionalMicros(price: string, size: string, direction?: Direction): bigint
}

export function demandTick(price: string, grid: Grid, field: string, { isOnTick, tickAt }: Sizing): void {
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
    throw invalid('body.limit_price', 'extra_forbidden', 'A market order takes no limit price')
  }
  if (limit_price === undefined) throw invalid('body.limit_price', 'missing', 'Field required')
  demandTick(limit_price, grid, 'body.limit_price', sizing)
  return limit_price
}

type Sized = { size: string | undefined; notional: string | undefined }
/** `notionalField` is the name under which the section takes the notional. */
type Setting = { market: Grid; price: string; minimum: string; notionalField: string }

/** Rounds down, and refuses what then is nothing or too little. */
export function sizeOf(
  { size, notional }: Sized,
  { market, price, minimum, notionalField }: Setting,
  sizing: Sizing,
): string {
  if ((size === undefined) === (notional === undefined))
    throw invalid('body.size', 'exactly_one_of', `Exactly one of size and ${notionalField} is required`, {
      fields: ['size', notionalField],
    })
  const field = size === undefined ? `body.${notionalField}` : 'body.size'
  const rounded =
    size === undefined ? sizing.sizeOfNotional(notional!, price, market) : sizing.roundSize(size, market)
  demandWorth({ size: rounded, price, minimum, field }, sizing)
  return rounded
}

type Worth = { size: string; price: string; minimum: string; field: string }

export function demandWorth({ size, price, minimum, field }: Worth, { notionalMicros }: Sizing): void {
  const enough = compareDecimals(size, '0') > 0
  if (enough && notionalMicros(price, size) >= toUnits(minimum, usdDecimals)) return
  const message = `Input should be worth at least ${minimum} USD`
  throw invalid(field, 'below_minimum', message, { minimum, unit: 'USD' })
}

type ExitWish = { leg: 'tp' | 'sl'; price: string; isBuy: boolean; reference: string; field: string }

/** A trigger on the wrong side would fire at once; it never leaves the house. */
export function demandExit({ leg, price, isBuy, reference, field }: ExitWish): void {
  const above = (leg === 'tp') === isBuy
  const order = compareDecimals(price, reference)
  if (above ? order > 0 : order < 0) return
  throw above
    ? invalid(field, 'greater_than', `Input should be greater than ${reference}`, { gt: reference })
    : invalid(field, 'less_than', `Input should be less than ${reference}`, { lt: reference })
}
