import {
  evaluateOrder,
  orderRules,
  placeOrderSteps,
  withObserved,
} from '#engines/venue/orders/place-order.ts'
import { ofTask } from '#engines/venue/orders/venue-effect.ts'
import { match } from '#kernel/match-union.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { Steps } from '#kernel/task/task.ts'
import type { SpotDeps } from './deps.ts'
import { createTriggerUpdate, type SpotOrderStep, type SpotOrderTaskData } from './gateway-triggers.ts'
import { createOcoMove } from './move-oco-to-gateway.ts'

/** This module builds the steps of a spot order: the gateway takes over the exits that the venue does not hold. */
export function placeSpotOrderSteps(deps: SpotDeps): Steps<SpotOrderTaskData, SpotOrderStep> {
  const ocoMove = createOcoMove(deps)
  const updateTriggers = createTriggerUpdate(deps)
  const order = createEffect({
    ...orderRules<SpotOrderTaskData, 'siblings_cancelled'>(deps),
    async settle(task, seen, context) {
      const evaluated = await evaluateOrder(deps, task, seen, context)
      return match(evaluated, {
        decided: async ({ result }) => ofTask(result),
        incomplete: ({ orderOutcome }) => ocoMove.begin(task, context, orderOutcome),
        complete: async (complete) =>
          ofTask(withObserved(await updateTriggers(task, context, complete), complete.observed)),
      })
    },
  })
  return { ...placeOrderSteps(deps, order), ...ocoMove.steps }
}
