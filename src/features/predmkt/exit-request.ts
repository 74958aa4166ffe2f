import { exactlyOneOf, invalid } from '#kernel/contract/fault.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { OrderInput } from './order-request.ts'

/** Take-profit and stop-loss of a purchase, as the task stores them until the shares are settled. */

export type ExitTerms = {
  leg: 'tp' | 'sl'
  /** Micro-dollars for one share; null for a percentage above the average price. */
  price: string | null
  /** Ten-thousandths of a percent above the average price; null for a price. */
  percentage: string | null
}

/** `entryMicros` is the highest price that the purchase pays for a share. */
export function exitTermsOf(input: OrderInput, market: PredictionMarket, entryMicros: bigint): ExitTerms[] {
  const { take_profit_price: price, take_profit_percentage: percentage, stop_loss_price: stop } = input
  if (price !== undefined && percentage !== undefined)
    throw exactlyOneOf('take_profit_price', 'take_profit_percentage', { hasBoth: true })
  const exits: ExitTerms[] = []
  if (price !== undefined) {
    const micros = priceOnTick(price, 'take_profit_price', market)
    if (micros <= entryMicros)
      throw invalid('take_profit_price', 'greater_than', 'A take-profit has to be above the purchase price')
    exits.push({ leg: 'tp', price: String(micros), percentage: null })
  }
  if (percentage !== undefined)
    exits.push({ leg: 'tp', price: null, percentage: String(toUnits(percentage, 4)) })
  if (stop !== undefined) {
    const micros = priceOnTick(stop, 'stop_loss_price', market)
    if (micros >= entryMicros)
      throw invalid('stop_loss_price', 'less_than', 'A stop-loss has to be below the purchase price')
    exits.push({ leg: 'sl', price: String(micros), percentage: null })
  }
  return exits
}

function priceOnTick(text: string, field: string, { tickMicros }: PredictionMarket): bigint {
  const micros = toUnits(text, usdcDecimals)
  if (micros >= tickMicros && micros <= 1_000_000n - tickMicros && micros % tickMicros === 0n) return micros
  throw invalid(field, 'tick_size', 'The price has to be on the tick of the market, above 0 and below 1')
}
