import type { Caller } from '#kernel/caller.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import type { Action } from '#kernel/signer.ts'
import type { Admission, JsonObject, Step, TaskView } from '#kernel/task.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { ActPlan, VenueActs } from './act.ts'
import { isEnding } from './bracket.ts'
import { aheadOf, demandAgent, type TradeNeeds, tradeMs } from './open.ts'
import { failed, failedBy, orderTtlMs, type PlaceNeeds, refusedBy } from './place.ts'
import { bareSymbol } from './symbol.ts'

export type CancelInput = { order_id?: string | number; oid?: string | number; asset?: string }
type Memory = {
  order_id: number
  symbol: string
  asset: number
  account: string
  agent: string
  ahead_ms: number
}
const memoryOf = (task: TaskView) => task.data as unknown as Memory

function orderIdOf({ order_id, oid }: CancelInput): number {
  if ((order_id === undefined) === (oid === undefined))
    throw invalid('body.order_id', 'exactly_one_of', 'Exactly one of order_id and oid is required', {
      fields: ['order_id', 'oid'],
    })
  const text = String(order_id ?? oid)
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw notFound('order')
}

/** The market of an order is looked up: with a wrong one the venue denies that the order exists. */
export async function admitCancel(
  needs: TradeNeeds,
  input: CancelInput,
  { userId }: Caller,
): Promise<Admission> {
  const { venue, policy, chainId, clock } = needs
  const orderId = orderIdOf(input)
  const account = await needs.evmAddressOf(userId)
  const [open, { markets }, state] = await Promise.all([
    venue.openOrders(account),
    venue.perps(),
    venue.account(account),
  ])
  const order = open.find((each) => each.orderId === orderId)
  const market = order && markets.find(({ symbol }) => symbol === order.symbol)
  if (!order || !market) throw await absent(venue, account, orderId)
  if (input.asset !== undefined && bareSymbol(input.asset).toLowerCase() !== order.symbol.toLowerCase())
    throw invalid('body.asset', 'unsupported_asset', `The order is in ${order.symbol}`, {
      asset: order.symbol,
    })
  const agent = await demandAgent(needs, userId)
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation: 'perp_cancel', chainId, tokens: [`hl:perp:${order.symbol}`], recipients: [] },
    ...{ usdMicros: 0n, exit: true },
  }
  await policy.check(action)
  const memory: Memory = {
    ...{ order_id: orderId, symbol: order.symbol, asset: market.asset, account, agent: agent.address },
    ahead_ms: aheadOf(clock, state.timeMs),
  }
  return {
    ...{ first: 'begin', deadlineMs: tradeMs, data: memory as unknown as JsonObject },
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

async function absent(venue: Pick<Hyperliquid, 'order'>, account: string, orderId: number): Promise<Fault> {
  const known = await venue.order(account, orderId)
  if (!known) return notFound('order')
  const reason = `the order is ${known.status}`
  return new Fault('order_not_cancellable', `The order has ended: ${reason}`, {
    extras: { status: known.status, reason },
  })
}

type CancelNeeds = {
  venue: Pick<Hyperliquid, 'order'>
  acts: VenueActs
} & Pick<PlaceNeeds, 'refusals' | 'agentLost'>

export function cancelling(needs: CancelNeeds): Record<'begin' | 'confirm', Step> {
  const { acts, venue } = needs
  return {
    async begin(task, { now }) {
      const { order_id: orderId, symbol, asset, account, agent, ahead_ms: aheadMs } = memoryOf(task)
      const plan: ActPlan = {
        ...{ leg: 'cancel', account, agent, aheadMs, ttlMs: orderTtlMs },
        facts: {
          ...{ operation: 'perp_cancel', tokens: [`hl:perp:${symbol}`], recipients: [] },
          ...{ usdMicros: 0n, exit: true },
        },
        action: { type: 'cancel', cancels: [{ asset, orderId }] },
      }
      return acts.intend(task, plan, { now, next: 'confirm', refused: (fault) => failedBy(fault) })
    },

    async confirm(task, { signal }) {
      const { order_id: orderId, account } = memoryOf(task)
      const verdict = await acts.settle<string>({
        ...{ task, leg: 'cancel', signal },
        read: ([leg]: LegStatus[]) => (leg?.is === 'accepted' ? 'canceled' : undefined),
        async look() {
          const found = await venue.order(account, orderId)
          const ended = found && (found.status === 'filled' || isEnding(found.status))
          return ended ? found.status : undefined
        },
      })
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict.effects)
      if (verdict.is !== 'done') return refusedBy(needs, task, verdict)
      const status = verdict.value
      const result = { order_id: String(orderId), venue_status: status }
      if (isEnding(status)) return { end: 'completed', outcome: 'executed', result, effects: verdict.effects }
      const effects = verdict.effects.map((each) => ({ ...each, status: 'rejected' as const }))
      return failed('order_not_cancellable', `The order has ended: it is ${status}`, effects)
    },
  }
}
