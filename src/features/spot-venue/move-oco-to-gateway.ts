import { cancelOf } from '#engines/venue/orders/cancel.ts'
import { type CancelTarget, cancelSearch, type OrderCancelled } from '#engines/venue/orders/cancel-batch.ts'
import type { OrderLookupSource } from '#engines/venue/orders/order-lookup.ts'
import type { OrderOutcome } from '#engines/venue/orders/order-result.ts'
import { factsOf, planOf, wantedExits } from '#engines/venue/orders/order-task.ts'
import { completed } from '#engines/venue/orders/place-order.ts'
import type { OrderEnd } from '#engines/venue/orders/place-order-deps.ts'
import { type VenueDriverDeps, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import type { Exit } from '#engines/venue/records/bracket.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { StepContext } from '#kernel/task/task.ts'
import {
  type SpotOrderStep,
  type SpotOrderTask,
  type SpotOrderTaskData,
  withGatewayTriggers,
} from './gateway-triggers.ts'

/**
 * If the venue rejects an exit, nothing is sold: the gateway holds the exit instead. It also takes over the
 * sibling, because only a host that holds both can let one exit cancel the other.
 */

function storedOutcome({ id, data }: SpotOrderTask): OrderOutcome {
  if (data.order_outcome) return data.order_outcome
  throw new Error(`task ${id} has no stored outcome of its order`)
}
const isAtVenue = ({ state, orderId }: Exit): boolean =>
  orderId !== null && (state === 'open' || state === 'waiting')
const hasFired = (exits: readonly Exit[]): boolean => exits.some(({ state }) => state === 'closed')

/** The gateway takes the missing exits, unless the other exit has fired and sold the balance. */
function movedResult(task: SpotOrderTask, { now }: StepContext, orderOutcome: OrderOutcome): OrderEnd {
  const { exits } = orderOutcome
  const missing = wantedExits(task.data).filter(({ leg }) =>
    exits.some((exit) => exit.leg === leg && exit.state === 'missing'),
  )
  return withGatewayTriggers(task, now, {
    orderOutcome,
    result: completed(task, orderOutcome, now),
    gatewayExits: hasFired(exits) ? [] : missing.map(({ leg, wanted }) => ({ leg, price: wanted.price })),
  })
}

const siblingsOf = ({ asset, symbol, size }: SpotOrderTaskData, { exits }: OrderOutcome): CancelTarget[] =>
  exits.filter(isAtVenue).map(({ orderId }) => ({ order_id: orderId!, asset, symbol, left: size }))

const cancelEffect = (deps: VenueDriverDeps & { venue: OrderLookupSource }) =>
  createEffect({
    steps: { sign: 'confirm', confirm: 'siblings_cancelled' },
    driver: venueDriver<SpotOrderTaskData, OrderCancelled[], SpotOrderStep>(deps, {
      actionKey: 'cancel_siblings',
      search: (task) =>
        cancelSearch(deps.venue, {
          account: task.data.account,
          sinceMs: task.data.since_ms,
          targets: siblingsOf(task.data, storedOutcome(task)),
        }),
      // If the cancel is rejected, the sibling stays at the venue, and the gateway holds the missing exit at once.
      retry: false,
      onRejected: (task, _outcome, context) => movedResult(task, context, storedOutcome(task)),
    }),
    async plan(task, context) {
      const { data } = task
      const order_outcome = storedOutcome(task)
      const siblings = siblingsOf(data, order_outcome)
      const result = movedResult(task, context, order_outcome)
      if (siblings.length === 0 || hasFired(order_outcome.exits)) return result
      return {
        ...planOf(data),
        facts: factsOf(data, { usdMicros: 0n, exit: true }),
        action: cancelOf(siblings),
        // The fills are stored too, because a later read may lag behind the one that showed them.
        data: { order_outcome },
        onRefused: () => result,
      }
    },
    settle(task, cancels, context) {
      const order = storedOutcome(task)
      const state = cancels.every(({ isCancelled }) => isCancelled) ? 'missing' : 'closed'
      const exits = order.exits.map((exit): Exit => (isAtVenue(exit) ? { ...exit, state } : exit))
      return movedResult(task, context, { ...order, exits })
    },
  })

export function createOcoMove(deps: VenueDriverDeps & { venue: OrderLookupSource }) {
  const cancel = cancelEffect(deps)
  return {
    begin: (task: SpotOrderTask, context: StepContext, order_outcome: OrderOutcome) =>
      cancel.sign({ ...task, data: { ...task.data, order_outcome } }, context),
    steps: { siblings_cancelled: cancel.confirm },
  }
}
