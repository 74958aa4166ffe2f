import type { Formula } from './input-formula.ts'
import { type CloseFormulaName, closeFormulas } from './input-formulas-close.ts'
import { type MarketFormulaName, marketFormulas } from './input-formulas-market.ts'
import { type PredictionFormulaName, predictionFormulas } from './input-formulas-predictions.ts'
import { type SwapFormulaName, swapFormulas } from './input-formulas-swap.ts'
import { type VenueFormulaName, venueFormulas } from './input-formulas-venue.ts'

/** Every formula that fills an input field from slots and from outputs of earlier steps. */
export type FormulaName =
  | SwapFormulaName
  | VenueFormulaName
  | CloseFormulaName
  | PredictionFormulaName
  | MarketFormulaName
export const formulas: Readonly<Record<FormulaName, Formula>> = {
  ...swapFormulas,
  ...venueFormulas,
  ...closeFormulas,
  ...predictionFormulas,
  ...marketFormulas,
}
