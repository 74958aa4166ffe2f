import type { ReservedSpend } from '#durable/accept/reserve-spend.ts'
import { fundSwap, soldData } from './admission.ts'
import type { SwapInput } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import { costedSteps } from './record-swap-cost.ts'
import { type PreparedSwap, type PrepareOptions, prepareSwap } from './route/prepare-swap.ts'
import type { NamedSwapSteps } from './steps.ts'
import type { SwapStepNames, SwapTaskData } from './task-data.ts'

/** A swap as part of another task, with the same checks, limits and proofs as a swap that is a task itself. */
export type SwapLegs = {
  chains: SwapDeps['chains']
  /** Checks a request; `fields` maps the fields of a swap to the names that they have in the request. */
  prepare(input: SwapInput, request: PrepareOptions): Promise<PreparedSwap>
  /** Reads the balance, simulates the swap and computes the charge for its gas. */
  fund(prepared: PreparedSwap, options?: { isExit: boolean }): Promise<FundedLeg>
  /** Returns the data of a swap that was executed before; it reads no balance and reserves nothing. */
  quoteSold(prepared: PreparedSwap): SwapTaskData
  steps<Names extends string>(names: SwapStepNames<Names>): NamedSwapSteps<Names>
}
export type FundedLeg = { data: SwapTaskData; spend: ReservedSpend }

export const createSwapLegs = (deps: SwapDeps): SwapLegs => ({
  chains: deps.chains,
  // Money that is on its way to or from the venue closes no position, so its quotes have the urgency of a trade.
  prepare: (input, request) =>
    prepareSwap(deps, input, { ...request, urgency: 'trade', asksPolicy: 'on_shortage' }),
  fund: (prepared, options) => fundLeg(deps, prepared, options),
  quoteSold: (prepared) => soldData(deps, prepared),
  steps: (names) => costedSteps(deps, names),
})

export async function fundLeg(
  deps: SwapDeps,
  prepared: PreparedSwap,
  options?: { isExit: boolean },
): Promise<FundedLeg> {
  const { data, spend } = await fundSwap(deps, prepared, options)
  return { data, spend }
}
