import {
  admitCancel,
  type CancelInput,
  type CancelTaskData,
  cancelSteps,
  type Section,
} from '#engines/venue/orders/cancel.ts'
import { tradeDeadlineMs } from '#engines/venue/orders/require-trading-key.ts'
import { bareSymbol } from '#engines/venue/records/markets.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import type { Admission, EndResult, StepContext, Steps, TaskView } from '#kernel/task/task.ts'
import { spotAction } from './buy-and-sell.ts'
import type { SpotDeps } from './deps.ts'
import { usdcMarkets } from './spot-markets.ts'
import { cancelTriggers, findTrigger, isOpenTrigger } from './trigger-store.ts'

/** A cancel task names an order at the venue, or a trigger that the gateway holds. */
export type SpotCancelTaskData = CancelTaskData | { trigger_id: string }
type SpotCancelStep = 'disarm' | 'sign' | 'confirm'

const operation = 'spot_cancel'
const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const ended = (status: string): Fault =>
  new Fault(
    'order_not_cancellable',
    `The trigger cannot be cancelled: its status is ${status}; \`spot_venue_orders\` lists the open ones`,
    {
      extras: { status, reason: `the trigger is ${status}` },
    },
  )

export async function admitSpotCancel(
  deps: SpotDeps,
  input: CancelInput,
  asker: Asker,
): Promise<Admission<SpotCancelTaskData, 'disarm' | 'sign'>> {
  const { db, venue, policy } = deps
  const id = String(input.order_id ?? input.oid ?? '')
  if (!idForm.test(id) || (input.order_id !== undefined && input.oid !== undefined)) {
    const section: Section = {
      kind: 'spot',
      operation,
      marketOf: async ({ symbol }) => (await usdcMarkets(venue)).markets.find(({ coin }) => coin === symbol),
    }
    return admitCancel(deps, section)(input, asker)
  }
  const { userId } = asker
  const trigger = await findTrigger(db, userId, id.toLowerCase())
  if (!trigger) throw notFound('order', 'spot_venue_orders')
  const { symbol } = trigger.input
  if (!isOpenTrigger(trigger.status)) throw ended(trigger.status)
  if (input.asset !== undefined && bareSymbol('spot', input.asset).toLowerCase() !== symbol.toLowerCase())
    throw invalid(
      'asset',
      'unsupported_asset',
      `The order is in ${symbol}: send that, or leave \`asset\` out`,
      { asset: symbol },
    )
  const action = spotAction(deps, { userId, operation, symbol, usdMicros: 0n, exit: true })
  await policy.check(action)
  return { first: 'disarm', deadlineMs: tradeDeadlineMs, data: { trigger_id: trigger.id } }
}

export function spotCancelSteps(
  deps: Parameters<typeof cancelSteps>[0] & Pick<SpotDeps, 'db'>,
): Steps<SpotCancelTaskData, SpotCancelStep> {
  const { sign, confirm } = cancelSteps(deps)
  return { sign: atVenue(sign), confirm: atVenue(confirm), disarm: (task) => disarm(deps, task) }
}

/** Makes a step of the cancel of an order at the venue; a task that cancels a trigger has no such step. */
const atVenue =
  <Result>(step: (task: TaskView<CancelTaskData>, context: StepContext) => Promise<Result>) =>
  async (task: TaskView<SpotCancelTaskData>, context: StepContext): Promise<Result> => {
    const { data } = task
    if ('trigger_id' in data) throw new Error(`task ${task.id} cancels a trigger, not an order`)
    return step({ ...task, data }, context)
  }

export async function disarm(
  { db }: Pick<SpotDeps, 'db'>,
  { data, userId }: TaskView<SpotCancelTaskData>,
): Promise<EndResult<Record<never, never>>> {
  if (!('trigger_id' in data)) throw new Error('the task cancels an order, not a trigger')
  const { trigger_id: id } = data
  const status = (await findTrigger(db, userId, id))?.status ?? 'missing'
  const isOpen = isOpenTrigger(status)
  if (isOpen || status === 'cancelled')
    return {
      end: 'completed',
      outcome: 'executed',
      result: { order_id: id, venue_status: 'canceled' },
      writes: (tx) => cancelTriggers(tx, userId, isOpen ? [id] : []),
    }
  const { code, message } = ended(status)
  return { end: 'failed', outcome: 'not_executed', error: { code, message, retryable: false } }
}
