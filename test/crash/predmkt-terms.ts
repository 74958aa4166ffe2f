/** Orders that the kills at the prediction market place. */
import type { Market } from '../journeys/predmkt-calls.ts'

export const outcomeOf = ({ outcomes }: Market): string => outcomes[0]!.outcome_id

export const buyTerms = (market: Market, amount: string) => ({
  outcome_id: outcomeOf(market),
  side: 'BUY',
  order_type: 'FOK',
  amount_usd: amount,
})
