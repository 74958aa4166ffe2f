import { type CancelOutcome, lookUpEnd } from '#engines/venue/orders/cancel.ts'
import type { OrderOutcome } from '#engines/venue/orders/order-result.ts'
import { factsOf, planOf, wantedExits } from '#engines/venue/orders/order-task.ts'
import { completed } from '#engines/venue/orders/place-order.ts'
import type { OrderEnd, PlaceOrderDeps } from '#engines/venue/orders/place-order-deps.ts'
import type { ActionPlan, SignedActions } from '#engines/venue/orders/signed-action.ts'
import type { Exit } from '#engines/venue/records/bracket.ts'
import type { EffectUpdate, Step, StepContext } from '#kernel/task.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  type GatewayExit,
  type SpotOrderStep,
  type SpotOrderTask,
  type SpotOrderTaskData,
  withGatewayTriggers,
} from './gateway-triggers.ts'

/**
 * An exit that the venue rejects does not cause a sale: the gateway holds the exit instead. It also takes over the
 * sibling, because an OCO pair must be at one host for one exit to cancel the other.
 */

type OcoMoveDeps = {
  signedActions: SignedActions
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'>
}

const actionKey = 'cancel_siblings'
function storedOutcome({ id, data }: SpotOrderTask): OrderOutcome {
  if (data.order_outcome) return data.order_outcome
  throw new Error(`task ${id} has no stored outcome of its order`)
}
const isAtVenue = ({ state, orderId }: Exit): boolean =>
  orderId !== null && (state === 'open' || state === 'waiting')

const exitsOf = (
  task: SpotOrderTask,
  isSelected: (exit: Exit) => boolean,
  exits: readonly Exit[],
): GatewayExit[] =>
  wantedExits(task.data)
    .filter((wanted) => exits.some((exit) => exit.leg === wanted.leg && isSelected(exit)))
    .map(({ leg, wanted }) => ({ leg, price: wanted.price }))

/** The result, with the exits that the gateway holds. */
function movedResult(
  task: SpotOrderTask,
  context: StepContext,
  orderOutcome: OrderOutcome,
  { gatewayExits, effects }: { gatewayExits: GatewayExit[]; effects: EffectUpdate[] },
): OrderEnd {
  const found = completed(task, task.data, orderOutcome, { effects, now: context.now })
  return withGatewayTriggers(task, context, { orderOutcome, result: found, gatewayExits })
}

const isMissing = ({ state }: Exit): boolean => state === 'missing'

type RepairBracket = PlaceOrderDeps<SpotOrderTaskData, 'siblings_cancelled'>['repairBracket']

export function createOcoMove({ signedActions, venue }: OcoMoveDeps): {
  repairBracket: RepairBracket
  steps: Record<'siblings_cancelled', Step<SpotOrderTaskData, SpotOrderStep>>
} {
  const repairBracket: RepairBracket = async (task, context, orderOutcome, effects) => {
    const { exits } = orderOutcome
    const fired = exits.some(({ state }) => state === 'closed')
    const gatewayExits = fired ? [] : exitsOf(task, isMissing, exits)
    const siblings = exits.filter(isAtVenue)
    if (fired || siblings.length === 0)
      return movedResult(task, context, orderOutcome, { gatewayExits, effects })
    const taskData = task.data
    const plan: ActionPlan = {
      actionKey,
      ...planOf(taskData),
      facts: factsOf(taskData, { usdMicros: 0n, exit: true }),
      action: {
        type: 'cancel',
        cancels: siblings.map(({ orderId }) => ({ asset: taskData.asset, orderId: orderId! })),
      },
    }
    const onRefused = () => movedResult(task, context, orderOutcome, { gatewayExits, effects })
    // Store the fills too: a later read may lag behind the one that showed them.
    const data = { order_outcome: orderOutcome }
    return signedActions.sign(task, plan, {
      now: context.now,
      next: 'siblings_cancelled',
      data,
      effects,
      onRefused,
    })
  }

  const siblingsCancelled: Step<SpotOrderTaskData, SpotOrderStep> = async (task, context) => {
    const { entry, exits, fills } = storedOutcome(task)
    const { account, since_ms: sinceMs, size } = task.data
    const siblings = exits.filter(isAtVenue)
    const actionOutcome = await signedActions.confirm<CancelOutcome[]>({
      task,
      actionKey,
      signal: context.signal,
      parseReply: (legs: LegStatus[]) =>
        legs.length === siblings.length && legs.every((each) => each.type === 'accepted')
          ? legs.map(() => ({ status: 'canceled', isCancelled: true }))
          : undefined,
      async lookUp(how) {
        const outcomes = await Promise.all(
          siblings.map(({ orderId }) =>
            lookUpEnd(venue, { account, sinceMs, orderId: orderId!, left: size, ...how }),
          ),
        )
        return outcomes.every((outcome) => outcome !== undefined) ? outcomes : undefined
      },
    })
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'siblings_cancelled',
      executed(cancels, effects) {
        const ended = cancels.every(({ isCancelled }) => isCancelled)
        const left = exits.map(
          (exit): Exit => (isAtVenue(exit) ? { ...exit, state: ended ? 'missing' : 'closed' } : exit),
        )
        // A sibling that fired meanwhile sells the balance, so no exit is needed.
        const gatewayExits = ended ? exitsOf(task, isMissing, left) : []
        return movedResult(task, context, { entry, exits: left, fills }, { gatewayExits, effects })
      },
      // The sibling could not be cancelled: it stays at the venue, and the gateway holds the other exit.
      notExecuted({ effects }) {
        const gatewayExits = exitsOf(task, isMissing, exits)
        return movedResult(task, context, { entry, exits, fills }, { gatewayExits, effects })
      },
    })
  }

  return { repairBracket, steps: { siblings_cancelled: siblingsCancelled } }
}
