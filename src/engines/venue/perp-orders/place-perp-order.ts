import {
  evaluateOrder,
  orderRules,
  placeOrderSteps,
  withObserved,
} from '#engines/venue/orders/place-order.ts'
import type { OrderStep, PlaceOrderDeps } from '#engines/venue/orders/place-order-deps.ts'
import { ofTask } from '#engines/venue/orders/venue-effect.ts'
import { match } from '#kernel/match-union.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { Steps } from '#kernel/task/task.ts'
import { endOrTrim, type OwnExitsDeps, type OwnExitsStep, ownExitsSteps } from './own-exits.ts'
import { type BracketRepairDeps, createBracketRepair, type RepairStep } from './repair-bracket.ts'
import type { PerpOrderTaskData } from './unwind-unprotected-entry.ts'

/** This module builds the steps of a perp order: an incomplete bracket is repaired, and a run's close trims its exits. */

export type PerpOrderStep = OrderStep | RepairStep | OwnExitsStep

export function placePerpOrderSteps(
  deps: PlaceOrderDeps & BracketRepairDeps & OwnExitsDeps,
): Steps<PerpOrderTaskData, PerpOrderStep> {
  const repair = createBracketRepair(deps)
  const order = createEffect({
    ...orderRules<PerpOrderTaskData, RepairStep | OwnExitsStep>(deps),
    async settle(task, seen, context) {
      const evaluated = await evaluateOrder(deps, task, seen, context)
      return match(evaluated, {
        decided: async ({ result }) => ofTask(result),
        incomplete: ({ orderOutcome }) => repair.begin(task, context, orderOutcome),
        complete: async ({ end, observed }) => ofTask(withObserved(endOrTrim(task, end), observed)),
      })
    },
  })
  return { ...placeOrderSteps(deps, order), ...repair.steps, ...ownExitsSteps(deps) }
}
