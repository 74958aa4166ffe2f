import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import * as T from '#kernel/contract/schema.ts'
import { DecIn } from '#kernel/contract/wire-types.ts'
import type { TriggerDirection } from '#kernel/task/trigger-order.ts'
import { profitPrice, stopPrice } from './trigger-price.ts'

/** Checks the stops and profits of a request, and makes them triggers around a reference price. */

export const tpSlMax = 10

export const HookLeg = T.Object(
  {
    price_percentage: T.Optional(
      DecIn({
        description: 'A fraction of the reference: 0.1 is 10 %; either this or `price_usd`',
        example: '0.1',
      }),
    ),
    price_usd: T.Optional(
      DecIn({
        exclusiveMinimum: 0,
        description: 'In USD; either this or `price_percentage`',
        example: '19.5',
      }),
    ),
    sell_percentage: T.Optional(
      DecIn({ description: 'The fraction of the balance that is sold; omitted: all of it', example: '0.5' }),
    ),
  },
  { $id: 'HookLeg', additionalProperties: false },
)
export type HookLegInput = T.Static<typeof HookLeg>

export const tpSlTypes = ['stop_loss', 'take_profit', 'trailing'] as const
type TpSlType = (typeof tpSlTypes)[number]
export type WantedTpSl = { leg: HookLegInput; field: string; type: Exclude<TpSlType, 'trailing'> }
export type CheckedTpSl = {
  type: TpSlType
  field: string
  /** The distance of the trigger as a fraction of the reference price, or null if a price is given. */
  fraction: string | null
  price: string | null
  sell: string
}

const profitMax = '10'

export const listedTpSl = (
  legs: readonly HookLegInput[] | undefined,
  name: string,
  type: WantedTpSl['type'],
): WantedTpSl[] => (legs ?? []).map((leg, at) => ({ leg, field: `${name}.${at}`, type }))

export const singleTpSl = (leg: HookLegInput | undefined, type: WantedTpSl['type']): WantedTpSl[] =>
  leg ? [{ leg, field: type, type }] : []

export type FixedTpSl = CheckedTpSl & { type: WantedTpSl['type'] }

export function checkTpSl({ leg, field, type }: WantedTpSl): FixedTpSl {
  const { price_percentage: fraction, price_usd: price, sell_percentage: sell = '1' } = leg
  if ((fraction === undefined) === (price === undefined))
    throw exactlyOneOf(`${field}.price_percentage`, `${field}.price_usd`, { hasBoth: price !== undefined })
  assertFraction(sell, `${field}.sell_percentage`, { atMost: '1' })
  if (fraction !== undefined)
    assertFraction(
      fraction,
      `${field}.price_percentage`,
      type === 'stop_loss' ? { below: '1' } : { atMost: profitMax },
    )
  return { type, field, fraction: fraction ?? null, price: price ?? null, sell }
}

export function trailingTpSl(trail: string, field: string): CheckedTpSl {
  assertFraction(trail, field, { below: '1' })
  return { type: 'trailing', field, fraction: trail, price: null, sell: '1' }
}

function assertFraction(
  value: string,
  field: string,
  { below, atMost }: { below?: string; atMost?: string },
): void {
  const max = below ?? atMost!
  const compared = compareDecimals(value, max)
  if (compareDecimals(value, '0') > 0 && (below === undefined ? compared <= 0 : compared < 0)) return
  throw invalid(
    field,
    'fraction_expected',
    `Input should be a fraction above 0 and ${below === undefined ? 'at most' : 'below'} ${max}: 0.1 is 10 %`,
    { gt: 0, ...(below === undefined ? { le: Number(max) } : { lt: Number(max) }) },
  )
}

export type Trigger = { direction: TriggerDirection; triggerPrice: string; referencePrice: string | null }

export function triggerOf(
  { type, fraction, price }: Pick<CheckedTpSl, 'type' | 'fraction' | 'price'>,
  { reference, mark }: { reference: string; mark: string },
): Trigger {
  const isProfit = type === 'take_profit'
  const direction = isProfit ? 'gte' : 'lte'
  if (fraction === null) return { direction, triggerPrice: price!, referencePrice: null }
  // A trailing stop follows the market from its start on, so its reference is the present price.
  const base = type === 'trailing' ? mark : reference
  return {
    direction,
    triggerPrice: isProfit ? profitPrice(base, fraction) : stopPrice(base, fraction),
    referencePrice: base,
  }
}

/** Throws if a trigger price is on the wrong side of the current price, where it would fire at once. */
export function assertSide({ type, field, price }: CheckedTpSl, mark: string): void {
  if (price === null) return
  const isProfit = type === 'take_profit'
  const side = compareDecimals(price, mark)
  if (isProfit ? side > 0 : side < 0) return
  throw invalid(
    `${field}.price_usd`,
    isProfit ? 'greater_than' : 'less_than',
    `Input should be ${isProfit ? 'above' : 'below'} the present price: ${mark} USD`,
    { [isProfit ? 'gt' : 'lt']: mark },
  )
}
