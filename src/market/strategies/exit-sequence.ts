/**
 * What to do next about a position that has to end, from what the venue shows now. It is asked again after each answer, and
 * by day trades each minute, until it says `end`. The exit comes before the protective orders are cancelled, so that the
 * position never is without a stop.
 */

export type ExitView = {
  /** Lots, whatever the side; 0: nothing is open. */
  positionUnits: bigint
  /** Lots of reduce-only exits whose outcome is not known yet. */
  exitingUnits: bigint
  /** Orders that could open or increase a position. */
  entries: readonly string[]
  /** The stop and the target of the position. */
  protective: readonly string[]
}
export type ExitStep =
  | { step: 'cancel'; orders: readonly string[] }
  | { step: 'exit'; units: bigint }
  | { step: 'wait' }
  | { step: 'end' }

export function nextExitStep({ positionUnits, exitingUnits, entries, protective }: ExitView): ExitStep {
  if (entries.length > 0) return { step: 'cancel', orders: entries }
  // An exit of unknown outcome may still fill, so what it covers is not sent again.
  if (positionUnits > exitingUnits) return { step: 'exit', units: positionUnits - exitingUnits }
  if (exitingUnits > 0n) return { step: 'wait' }
  return protective.length > 0 ? { step: 'cancel', orders: protective } : { step: 'end' }
}
