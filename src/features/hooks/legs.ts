import { profitPrice, stopPrice } from '#engines/trigger-orders/trigger-price.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { exactlyOneOf, invalid } from '#kernel/fault.ts'
import type { TriggerDirection } from '#kernel/trigger-order.ts'
import type { HooksInput, HookView, LegInput } from './contract.ts'

/** The legs of a request, checked, as triggers around a reference price. */

type Wanted = { leg: LegInput; field: string; type: 'stop_loss' | 'take_profit' }
export type CheckedLeg = {
  type: HookView['type']
  field: string
  /** A fraction of the reference; null where the price is given. */
  fraction: string | null
  price: string | null
  sell: string
}

const profitMax = '10'

export function checkedLegs(input: HooksInput): CheckedLeg[] {
  const legs = [
    ...listed(input.stop_losses, 'stop_losses', 'stop_loss'),
    ...listed(input.take_profits, 'take_profits', 'take_profit'),
    ...single(input.stop_loss, 'stop_loss'),
    ...single(input.take_profit, 'take_profit'),
  ].map(checkLeg)
  const { trailing_percentage: trail } = input
  if (trail !== undefined) {
    assertFraction(trail, 'trailing_percentage', { below: '1' })
    legs.push({ type: 'trailing', field: 'trailing_percentage', fraction: trail, price: null, sell: '1' })
  }
  if (legs.length > 0) return legs
  throw invalid(
    'stop_losses',
    'missing',
    'At least one of `stop_losses`, `take_profits` and `trailing_percentage` is required: add one of them',
    { fields: ['stop_losses', 'take_profits', 'trailing_percentage'] },
  )
}

const listed = (legs: LegInput[] | undefined, name: string, type: Wanted['type']): Wanted[] =>
  (legs ?? []).map((leg, at) => ({ leg, field: `${name}.${at}`, type }))
const single = (leg: LegInput | undefined, type: Wanted['type']): Wanted[] =>
  leg ? [{ leg, field: type, type }] : []

function checkLeg({ leg, field, type }: Wanted): CheckedLeg {
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

/** `mark`: what a sale brings now; a price on the wrong side of it would fire at once. */
export function triggerOf(
  leg: CheckedLeg,
  { reference, mark }: { reference: string; mark: string },
): Trigger {
  const isProfit = leg.type === 'take_profit'
  const direction = isProfit ? 'gte' : 'lte'
  if (leg.fraction !== null) {
    // A trailing stop follows the market from now on.
    const base = leg.type === 'trailing' ? mark : reference
    const triggerPrice = isProfit ? profitPrice(base, leg.fraction) : stopPrice(base, leg.fraction)
    return { direction, triggerPrice, referencePrice: base }
  }
  const price = leg.price!
  const side = compareDecimals(price, mark)
  if (isProfit ? side <= 0 : side >= 0)
    throw invalid(
      `${leg.field}.price_usd`,
      isProfit ? 'greater_than' : 'less_than',
      `Input should be ${isProfit ? 'above' : 'below'} what a sale would bring now: ${mark} USD`,
      { [isProfit ? 'gt' : 'lt']: mark },
    )
  return { direction, triggerPrice: price, referencePrice: null }
}
