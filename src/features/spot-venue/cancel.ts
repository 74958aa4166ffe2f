import { admitCancel, type CancelInput, type Section } from '#engines/venue/orders/cancel.ts'
import { tradeDeadlineMs } from '#engines/venue/orders/trade-admission.ts'
import { bareSymbol } from '#engines/venue/records/markets.ts'
import type { Caller } from '#kernel/caller.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import type { Admission, Step } from '#kernel/task.ts'
import type { SpotDeps } from './deps.ts'
import { usdcMarkets } from './market.ts'
import { spotAction } from './trade.ts'
import { cancelTriggers, findTrigger, isOpenTrigger } from './triggers.ts'

const operation = 'spot_cancel'
const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const ended = (status: string): Fault =>
  new Fault('order_not_cancellable', `The trigger cannot be cancelled: its status is ${status}`, {
    extras: { status, reason: `the trigger is ${status}` },
  })

/** The id format distinguishes a trigger held by the gateway from an order at the venue. */
export async function admitSpotCancel(
  deps: SpotDeps,
  input: CancelInput,
  caller: Caller,
): Promise<Admission> {
  const { db, venue, policy } = deps
  const id = String(input.order_id ?? input.oid ?? '')
  if (!idForm.test(id) || (input.order_id !== undefined && input.oid !== undefined)) {
    const section: Section = {
      kind: 'spot',
      operation,
      marketOf: async ({ symbol }) => (await usdcMarkets(venue)).markets.find(({ coin }) => coin === symbol),
    }
    return admitCancel(deps, section, input, caller)
  }
  const { userId } = caller
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

export function cancelTriggerSteps({ db }: Pick<SpotDeps, 'db'>): Record<'disarm', Step> {
  return {
    async disarm(task) {
      const id = String(task.data.trigger_id)
      const status = (await findTrigger(db, task.userId, id))?.status ?? 'missing'
      const isOpen = isOpenTrigger(status)
      if (isOpen || status === 'cancelled')
        return {
          end: 'completed',
          outcome: 'executed',
          result: { order_id: id, venue_status: 'canceled' },
          writes: (tx) => cancelTriggers(tx, task.userId, isOpen ? [id] : []),
        }
      const { code, message } = ended(status)
      return { end: 'failed', outcome: 'not_executed', error: { code, message, retryable: false } }
    },
  }
}
