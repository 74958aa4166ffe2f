import type { Caller } from '#kernel/caller.ts'
import { later } from '#kernel/clock.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type {
  Admission,
  EffectUpdate,
  JsonObject,
  Step,
  StepContext,
  StepResult,
  TaskView,
} from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type ActPlan, readLagMs, type VenueActs } from './act.ts'
import { phaseOf } from './bracket.ts'
import { type CancelTarget, cancelView, settleCancels } from './cancel-many.ts'
import type { EvidenceSource } from './order-evidence.ts'
import { failedBy, orderTtlMs, type PlaceNeeds, refusedBy, upstreamName } from './place.ts'
import { recentlyCancelled } from './read-after-write.ts'
import { isVenueOrderId, type RecentOrders, recentOrders } from './store.ts'
import { assetKey, type MarketKind } from './symbol.ts'
import { type AgentNeeds, aheadOf, demandAgent, tradeMs } from './trade.ts'

/** Cancels every open order of a section, or those of one market. */

export type CancelAllSection = {
  kind: MarketKind
  operation: string
  /** The one market that was asked for, by its symbol; undefined for all. */
  symbol: string | undefined
  /** Undefined for an order of another section. */
  marketOf(order: OpenOrder): { symbol: string; asset: number } | undefined
}
export type CancelAllDeps = {
  on: Queryable
  venue: Pick<Hyperliquid, 'openOrders' | 'account' | 'order'>
  policy: Pick<Policy, 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  chainId: string
} & AgentNeeds
/** An order with what became of its cancel, as it is told. */
type Cancelled = { order_id: string; oid: string; asset: string; cancelled: boolean; venue_status: string }
type CancelAllData = {
  operation: string
  tokens: string[]
  account: string
  agent: string
  ahead_ms: number
  since_ms: number
  orders: CancelTarget[]
  /** How many of them have an outcome. */
  done: number
  outcomes: Cancelled[]
}
/** Orders that the gateway keeps itself, which a section cancels before those of the venue. */
export type KeptOrders = { symbols: readonly string[]; first: string; data: JsonObject }

const dataOf = (task: TaskView) => task.data as unknown as CancelAllData
/** The venue counts an action of up to so many cancels as one request. */
const cancelsPerAction = 39

export async function admitCancelAll(
  needs: CancelAllDeps,
  section: CancelAllSection,
  { userId }: Caller,
  kept?: KeptOrders,
): Promise<Admission> {
  const { on, venue, policy, chainId, clock } = needs
  const { kind, operation, symbol } = section
  const account = await needs.evmAddressOf(userId)
  const since = later(clock.now(), -readLagMs)
  const [open, state, recent, gone] = await Promise.all([
    venue.openOrders(account),
    venue.account(account),
    recentOrders(on, { userId, kind, since }),
    recentlyCancelled(needs, userId),
  ])
  const targets = new Map<number, CancelTarget>()
  for (const order of open) {
    const market = section.marketOf(order)
    if (market) targets.set(order.orderId, { order_id: order.orderId, ...market, left: order.size })
  }
  for (const target of await unlistedOf(venue, account, recent, targets)) targets.set(target.order_id, target)
  const orders = [...targets.values()].filter(
    (each) => !gone.has(each.order_id) && (symbol === undefined || each.symbol === symbol),
  )
  const symbols = new Set([...orders.map((each) => each.symbol), ...(kept?.symbols ?? [])])
  const tokens = [...symbols].map((each) => assetKey(kind, each))
  const agent = orders.length > 0 ? (await demandAgent(needs, userId)).address : ''
  const action: Omit<Action, 'taskId'> = {
    userId,
    operation,
    chainId,
    tokens,
    recipients: [],
    usdMicros: 0n,
    exit: true,
  }
  const data: CancelAllData = {
    operation,
    tokens,
    account,
    agent,
    ahead_ms: aheadOf(clock, state.timeMs),
    since_ms: state.timeMs,
    orders,
    done: 0,
    outcomes: [],
  }
  return {
    first: kept?.first ?? 'begin',
    deadlineMs: tradeMs,
    data: { ...(data as unknown as JsonObject), ...kept?.data },
    opens: kept === undefined && orders.length > 0,
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

/** Orders of ours that are too young for the list of open orders. */
async function unlistedOf(
  venue: CancelAllDeps['venue'],
  account: string,
  recent: readonly RecentOrders[],
  listed: ReadonlyMap<number, CancelTarget>,
): Promise<CancelTarget[]> {
  const young = recent.flatMap(({ resting, tp_oids, sl_oids, asset, symbol }) =>
    [...(resting === null ? [] : [resting]), ...tp_oids, ...sl_oids]
      // An exit that the gateway keeps has an id of another form.
      .filter((id) => isVenueOrderId(id) && !listed.has(Number(id)))
      .map((id) => ({ order_id: Number(id), asset, symbol })),
  )
  const known = await Promise.all(young.map(({ order_id: orderId }) => venue.order(account, orderId)))
  return young.filter((_, at) => {
    const order = known[at]
    return !order || phaseOf(order.status) === 'open'
  })
}

type Deps = { venue: EvidenceSource; acts: VenueActs } & Pick<PlaceNeeds, 'refusals' | 'agentLost'>

export function cancelAllSteps(needs: Deps): Record<'begin' | 'confirm', Step> {
  const { acts } = needs
  const legOf = (done: number): string => `cancel${done}`
  const nextOf = ({ orders, done }: CancelAllData) => orders.slice(done, done + cancelsPerAction)

  /** The next action, or the end of the task where every order has its outcome. */
  const proceed = (
    task: TaskView,
    { now }: StepContext,
    { done, outcomes }: Pick<CancelAllData, 'done' | 'outcomes'>,
    effects: EffectUpdate[],
  ): StepResult | Promise<StepResult> => {
    const data = { ...dataOf(task), done, outcomes }
    const targets = nextOf(data)
    if (targets.length === 0) return allEnded(outcomes, effects)
    const plan: ActPlan = {
      leg: legOf(done),
      account: data.account,
      agent: data.agent,
      aheadMs: data.ahead_ms,
      ttlMs: orderTtlMs,
      facts: { operation: data.operation, tokens: data.tokens, recipients: [], usdMicros: 0n, exit: true },
      action: {
        type: 'cancel',
        cancels: targets.map(({ asset, order_id: orderId }) => ({ asset, orderId })),
      },
    }
    const refused = (fault: Parameters<typeof failedBy>[0]) =>
      outcomes.some(({ cancelled }) => cancelled)
        ? stopped(data, effects, { code: fault.code, message: fault.message })
        : failedBy(fault, effects)
    return acts.intend(task, plan, { now, next: 'confirm', data: { done, outcomes }, effects, refused })
  }

  return {
    begin: async (task, context) => proceed(task, context, dataOf(task), []),

    async confirm(task, context) {
      const data = dataOf(task)
      const targets = nextOf(data)
      const { account, since_ms: sinceMs, done } = data
      const { signal } = context
      const question = { task, leg: legOf(done), signal, account, sinceMs, targets }
      const verdict = await settleCancels(needs, question)
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
      const retry = acts.retryThrottled(task, verdict, { leg: legOf(done), next: 'begin', now: context.now })
      if (retry) return retry
      if (verdict.is === 'done') {
        const outcomes = [...data.outcomes, ...verdict.value.map(cancelView)]
        return proceed(task, context, { done: done + targets.length, outcomes }, verdict.effects)
      }
      const failure = await refusedBy(needs, task, verdict)
      if (!data.outcomes.some(({ cancelled }) => cancelled) || !('error' in failure)) return failure
      return stopped(data, verdict.effects, failure.error)
    },
  }
}

const resultOf = (orders: readonly Cancelled[]): JsonObject => ({
  cancelled: orders.filter(({ cancelled }) => cancelled).length,
  not_cancelled: orders.filter(({ cancelled }) => !cancelled).length,
  orders: [...orders],
})

/** Nothing to cancel is a success: afterwards nothing is open. */
export function allEnded(outcomes: readonly Cancelled[], effects: EffectUpdate[] = []): StepResult {
  const result = resultOf(outcomes)
  const left = outcomes.filter(({ cancelled }) => !cancelled)
  if (left.length === 0) return { end: 'completed', outcome: 'executed', result, effects }
  if (left.length < outcomes.length) return { end: 'completed', outcome: 'partial', result, effects }
  const message = `No order could be cancelled: they are ${[...new Set(left.map(({ venue_status }) => venue_status))].join(', ')}`
  return {
    end: 'failed',
    outcome: 'not_executed',
    error: { code: 'order_not_cancellable', message, retryable: false, upstream: upstreamName },
    result,
    effects: effects.map((each) => ({ ...each, status: 'rejected' as const })),
  }
}

/** Some are cancelled, and the rest was not: the result names both. */
function stopped(
  { orders, done, outcomes }: CancelAllData,
  effects: EffectUpdate[],
  { code, message }: { code: string; message: string },
): StepResult {
  const rest = orders.slice(done).map((each) => cancelView({ ...each, status: 'open', isCancelled: false }))
  return {
    end: 'failed',
    outcome: 'partial',
    error: { code, message, retryable: true, upstream: upstreamName },
    result: resultOf([...outcomes, ...rest]),
    effects,
  }
}
