import type { Formula } from './formula.ts'
import { type CloseFormulaName, closeFormulas } from './formulas-close.ts'
import { type SwapFormulaName, swapFormulas } from './formulas-swap.ts'
import { type VenueFormulaName, venueFormulas } from './formulas-venue.ts'

/** Every formula that fills an input field from slots and from outputs of earlier steps. */
export type FormulaName = SwapFormulaName | VenueFormulaName | CloseFormulaName
export const formulas: Readonly<Record<FormulaName, Formula>> = {
  ...swapFormulas,
  ...venueFormulas,
  ...closeFormulas,
}
