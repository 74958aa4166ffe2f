import type { Caller } from '#kernel/caller.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type { Admission, JsonObject, Step, TaskView } from '#kernel/task.ts'
import type { Hyperliquid, LegStatus, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { ActPlan, VenueActs } from './act.ts'
import { isEnding } from './bracket.ts'
import { failed, failedBy, orderTtlMs, type PlaceNeeds, refusedBy } from './place.ts'
import { assetKey, bareSymbol, type MarketKind } from './symbol.ts'
import { type AgentNeeds, aheadOf, demandAgent, tradeMs } from './trade.ts'

export type CancelInput = { order_id?: string | number; oid?: string | number; asset?: string }
/** Which section the order belongs to, and the markets of it. */
export type Section = {
  kind: MarketKind
  operation: string
  /** By the name under which the venue's orders carry them. */
  marketOf(order: OpenOrder): Promise<{ symbol: string; asset: number } | undefined>
}
export type CancelAdmissionNeeds = {
  venue: Pick<Hyperliquid, 'openOrders' | 'account' | 'order'>
  policy: Pick<Policy, 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  chainId: string
} & AgentNeeds
type Memory = {
  operation: string
  token: string
  order_id: number
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
  needs: CancelAdmissionNeeds,
  { kind, operation, marketOf }: Section,
  input: CancelInput,
  { userId }: Caller,
): Promise<Admission> {
  const { venue, policy, chainId, clock } = needs
  const orderId = orderIdOf(input)
  const account = await needs.evmAddressOf(userId)
  const [open, state] = await Promise.all([venue.openOrders(account), venue.account(account)])
  const order = open.find((each) => each.orderId === orderId)
  const market = order && (await marketOf(order))
  // It may stand in the other section, which has its own door.
  if (order && !market) throw notFound('order')
  if (!order || !market) throw await absent(venue, account, orderId)
  const { symbol, asset } = market
  if (input.asset !== undefined && bareSymbol(kind, input.asset).toLowerCase() !== symbol.toLowerCase())
    throw invalid('body.asset', 'unsupported_asset', `The order is in ${symbol}`, { asset: symbol })
  const agent = await demandAgent(needs, userId)
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation, chainId, tokens: [assetKey(kind, symbol)], recipients: [] },
    ...{ usdMicros: 0n, exit: true },
  }
  const memory: Memory = {
    ...{ operation, token: assetKey(kind, symbol), order_id: orderId, asset },
    ...{ account, agent: agent.address },
    ahead_ms: aheadOf(clock, state.timeMs),
  }
  return {
    ...{ first: 'begin', deadlineMs: tradeMs, data: memory as unknown as JsonObject, opens: true },
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
      const { operation, token, order_id: orderId, asset, account, agent } = memoryOf(task)
      const { ahead_ms: aheadMs } = memoryOf(task)
      const plan: ActPlan = {
        ...{ leg: 'cancel', account, agent, aheadMs, ttlMs: orderTtlMs },
        facts: {
          ...{ operation, tokens: [token], recipients: [] },
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
