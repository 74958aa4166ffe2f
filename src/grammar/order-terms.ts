import { indexOf, indexWhere, quantityAt, type Reader, type Slots, take } from './clause-reader.ts'
import { type Concept, list } from './feature-rules.ts'
import { type Quantity, quantityText } from './quantity.ts'
import { has } from './tag.ts'

/**
 * Reads prices, stop and target legs, leverage and slippage: the numbers that an anchor word such as `stop` names.
 */

const anchors = list('STOP TARGET TRAILING LEVERAGE SLIPPAGE')
const isPrice = ({ unit }: Quantity): boolean => unit === 'usd' || unit === 'number' || unit === 'id'
const isPercent = ({ unit }: Quantity): boolean => unit === 'percent' || unit === 'bps'
const priceText = ({ value }: Quantity): string => value
const unsigned = (quantity: Quantity): Quantity => ({ ...quantity, value: quantity.value.replace(/^-/, '') })

/** Returns the position of the quantity that belongs to an anchor word: behind the anchor, or right before it. */
function beside(reader: Reader, anchor: number, fits: (quantity: Quantity) => boolean): number {
  for (let at = anchor + 1; at < reader.tokens.length && at <= anchor + 8; at++) {
    const token = reader.tokens[at]
    if (has(token, ...anchors)) break
    const quantity = quantityAt(reader, at)
    if (quantity && fits(quantity)) return at
  }
  const before = quantityAt(reader, anchor - 1)
  if (before && fits(before)) return anchor - 1
  const earlier = quantityAt(reader, anchor - 2)
  return earlier && fits(earlier) && has(reader.tokens[anchor - 1], 'FILLER', 'TO', 'OF') ? anchor - 2 : -1
}

export function readLeverage(reader: Reader, slots: Slots): void {
  const times = indexWhere(reader, ({ quantity }) => quantity?.unit === 'times')
  const anchor = indexOf(reader, 'LEVERAGE')
  const at = times >= 0 ? times : anchor < 0 ? -1 : beside(reader, anchor, ({ unit }) => unit === 'number')
  const quantity = quantityAt(reader, at)
  // Leverage that is no whole number is not taken, so that the user is asked about it.
  if (!quantity || !/^[1-9]\d{0,2}$/.test(quantity.value)) return
  take(reader, at)
  slots.leverage = quantity.value
}

export function readSlippage(reader: Reader, slots: Slots): void {
  const anchor = indexOf(reader, 'SLIPPAGE')
  if (anchor < 0) return
  const at = beside(reader, anchor, isPercent)
  const quantity = quantityAt(reader, at)
  if (!quantity) return
  take(reader, at)
  slots.slippage = quantityText(quantity)
}

function readLeg(reader: Reader, slots: Slots, { concept, slot }: { concept: Concept; slot: string }): void {
  const anchor = indexOf(reader, concept)
  if (anchor < 0) return
  const at = beside(reader, anchor, (quantity) => isPrice(quantity) || isPercent(quantity))
  const quantity = quantityAt(reader, at)
  if (!quantity) return
  take(reader, at, anchor)
  slots[slot] = isPercent(quantity) ? quantityText(unsigned(quantity)) : priceText(quantity)
}

export function readLegs(reader: Reader, slots: Slots): void {
  readLeg(reader, slots, { concept: 'TRAILING', slot: 'trailing' })
  readLeg(reader, slots, { concept: 'STOP', slot: 'stop' })
  readLeg(reader, slots, { concept: 'TARGET', slot: 'target' })
}

/**
 * Reads the price of an order, such as `at 2900` or `once it hits 3`, and whether the order waits above or below
 * it.
 */
export function readPrice(reader: Reader, slots: Slots): void {
  const anchorOf = (...concepts: readonly Concept[]) =>
    indexWhere(reader, (token, at) => {
      if (!has(token, ...concepts)) return false
      return [1, 2].some((step) => {
        const quantity = quantityAt(reader, at + step)
        const between = step === 1 ? undefined : reader.tokens[at + 1]
        return (
          quantity !== undefined &&
          isPrice(quantity) &&
          (between === undefined || has(between, 'FILLER', 'AT', 'TO', 'ABOVE', 'BELOW', 'OF'))
        )
      })
    })
  const spoken = anchorOf('ABOVE', 'BELOW', 'AT')
  const anchor = spoken >= 0 ? spoken : indexOf(reader, 'BUY', 'SELL') >= 0 ? -1 : anchorOf('LIMIT')
  if (anchor < 0) return
  const at = quantityAt(reader, anchor + 1) ? anchor + 1 : anchor + 2
  const quantity = quantityAt(reader, at)
  if (!quantity) return
  take(reader, at)
  slots.price = priceText(quantity)
  const around = [reader.tokens[anchor], reader.tokens[anchor + 1], reader.tokens[anchor - 1]]
  const isBelow = around.some((token) => has(token, 'BELOW'))
  const isAbove = around.some((token) => has(token, 'ABOVE'))
  if (isBelow !== isAbove) slots.condition = isBelow ? 'lte' : 'gte'
}
