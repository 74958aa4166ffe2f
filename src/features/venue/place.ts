import type { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { ActPlan, VenueActs } from './act.ts'
import { type Entry, judgeBracket, sumOf } from './bracket.ts'
import { completeOutcome, entryOfReply, lookUpEntry, type Seen } from './entry-outcome.ts'
import { exitOrder, type Pricing } from './exits.ts'
import type { Gathering } from './gather.ts'
import { entryOrder, legOfOrder, type Memory, memoryOf, wantedExits } from './memory.ts'
import { positionNote } from './read-after-write.ts'
import { fillsOf, noteOf, resultOf, type Standing } from './report.ts'
import { noteSpent } from './spending.ts'
import { assetKey } from './symbol.ts'

/** Leverage where it differs, then the order with its exits, then the truth about all of it. */

export type Refusals = {
  codeOfRefusal(message: string): string
  codeOfStatus(status: string): string
  isUnknownSigner(message: string): boolean
}
export type PlaceNeeds = {
  venue: Pick<
    Hyperliquid,
    | 'order'
    | 'openOrders'
    | 'fillsSince'
    | 'recentFills'
    | 'account'
    | 'spotBalances'
    | 'timeMs'
    | 'passedMs'
    | 'standing'
  >
  /** What the stream told of an order, where the account is followed. */
  orderHeard: VenueStreams['orderOf']
  acts: VenueActs
  pricing: Pricing
  refusals: Refusals
  gathering: Gathering
  /** The venue knows the agent no more. */
  agentLost(task: TaskView, agent: string): Promise<void>
  /** Steps for what `confirm` finds to be missing. */
  mend(task: TaskView, context: StepContext, standing: Standing, effects: EffectUpdate[]): Promise<StepResult>
  /** Ends a task whose order is complete, or parks it at `confirm`; by default the result as it is. */
  conclude?(
    task: TaskView,
    context: StepContext,
    standing: Standing,
    result: StepResult,
  ): StepResult | Promise<StepResult>
}

export const orderTtlMs = 20_000
export const upstreamName = 'Hyperliquid'

export const failed = (code: string, message: string, effects: EffectUpdate[] = []): StepResult => ({
  end: 'failed',
  outcome: 'not_executed',
  effects,
  error: { code, message, retryable: code === 'rate_limited', upstream: upstreamName },
})
export const failedBy = (fault: Fault, effects: EffectUpdate[] = []): StepResult =>
  failed(fault.code, fault.message, effects)

export const factsOf = (memory: Memory, change: Partial<ActPlan['facts']> = {}): ActPlan['facts'] => ({
  operation: memory.operation,
  tokens: [assetKey(memory.market, memory.symbol)],
  recipients: [],
  usdMicros: BigInt(memory.usd_micros),
  exit: memory.exit,
  ...change,
})
export const planOf = (memory: Memory): Pick<ActPlan, 'account' | 'agent' | 'aheadMs' | 'ttlMs'> => ({
  account: memory.account,
  agent: memory.agent,
  aheadMs: memory.ahead_ms,
  ttlMs: orderTtlMs,
})

export function placing(
  needs: PlaceNeeds,
): Record<'begin' | 'gathered' | 'leverage' | 'order' | 'confirm', Step> {
  const { acts, venue, pricing, refusals } = needs

  const order = async (task: TaskView, { now }: StepContext, effects: EffectUpdate[]) => {
    if (now > task.deadline) return failed('expired', 'The deadline passed before anything was sent', effects)
    const memory = memoryOf(task)
    const exits = wantedExits(memory)
    const orders = [
      entryOrder(task.id, memory),
      ...exits.map((exit) =>
        exitOrder(
          task.id,
          memory,
          { ...exit, size: memory.exit_size ?? memory.size, name: exit.leg },
          pricing,
        ),
      ),
    ]
    const legs = [legOfOrder(memory), ...exits.map(({ leg }) => leg)]
    const notes = orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: memory.symbol }))
    const grouping = exits.length > 0 ? ('bracket' as const) : ('none' as const)
    const plan: ActPlan = {
      leg: 'entry',
      ...planOf(memory),
      facts: factsOf(memory),
      notes,
      action: { type: 'order', orders, grouping },
    }
    const refused = (fault: Fault) => failedBy(fault, effects)
    return acts.intend(task, plan, { now, next: 'confirm', effects, refused })
  }

  const begin: Step = async (task, context) => {
    const { gather, operation, exit } = memoryOf(task)
    if (gather === null) return setLeverage(task, context, [])
    return needs.gathering.intend(task, context, { operation, exit }, (fault) => failedBy(fault))
  }

  const gathered: Step = async (task, context) => {
    const verdict = await needs.gathering.settle(task, context)
    if (verdict.is === 'doubt') return acts.wait(task, 'gathered', verdict)
    if (verdict.is !== 'done') return refusedBy(needs, task, verdict)
    const onward = await setLeverage(task, context, verdict.effects)
    return needs.gathering.store(task, context, verdict.value, onward)
  }

  const setLeverage = async (task: TaskView, context: StepContext, effects: EffectUpdate[]) => {
    const memory = memoryOf(task)
    if (!memory.leverage) return order(task, context, effects)
    const { is_cross: isCross, value: leverage } = memory.leverage
    const plan: ActPlan = {
      leg: 'leverage',
      ...planOf(memory),
      facts: factsOf(memory, { usdMicros: 0n }),
      action: { type: 'set_leverage', asset: memory.asset, isCross, leverage },
    }
    const refused = (fault: Fault) => failedBy(fault, effects)
    return acts.intend(task, plan, { now: context.now, next: 'leverage', effects, refused })
  }

  const leverage: Step = async (task, context) => {
    const memory = memoryOf(task)
    const wanted = memory.leverage!
    const verdict = await acts.settle({
      task,
      leg: 'leverage',
      signal: context.signal,
      read: () => true as const,
      async look() {
        const { isCross, leverage: value } = await venue.standing(memory.account, memory.symbol)
        return isCross === wanted.is_cross && value === wanted.value ? (true as const) : undefined
      },
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'leverage', verdict)
    if (verdict.is === 'done') return order(task, context, verdict.effects)
    return refusedBy(needs, task, verdict)
  }

  const settleEntry = (task: TaskView, { signal }: StepContext) =>
    acts.settle<Seen>({
      task,
      leg: 'entry',
      signal,
      read: (legs) => entryOfReply(legs, memoryOf(task), refusals),
      look: (how) => lookUpEntry(needs, task, how),
    })

  const finish = async (task: TaskView, context: StepContext, seen: Seen, effects: EffectUpdate[]) => {
    const memory = memoryOf(task)
    const { entry } = seen
    if (entry.status === 'rejected' && entry.error) return rejected(task, memory, entry, effects)
    const { standing, seen: now } = await completeOutcome(needs, task, seen, context.signal)
    if (!standing) {
      const waiting = acts.wait(task, 'confirm', { effects })
      return { ...waiting, data: { ...waiting.data, seen: now as unknown as JsonObject } }
    }
    const judgement = judgeBracket(entry, sumOf(standing.fills).size, standing.exits)
    if (judgement === 'stands') {
      const result = completed(task, memory, standing, { effects, now: context.now })
      const concluded = (await needs.conclude?.(task, context, standing, result)) ?? result
      if ('end' in concluded) return concluded
      return { ...concluded, data: { ...concluded.data, seen: now as unknown as JsonObject } }
    }
    if (judgement === 'nothing')
      return failed('slippage', 'Nothing was filled within the accepted price', effects)
    return needs.mend(task, context, standing, effects)
  }

  const confirm: Step = async (task, context) => {
    // What the venue has said once is not asked for again.
    const known = task.data.seen as unknown as Seen | undefined
    if (known) return finish(task, context, known, [])
    const verdict = await settleEntry(task, context)
    if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
    const retry = acts.retryThrottled(task, verdict, { leg: 'entry', next: 'order', now: context.now })
    if (retry) return retry
    if (verdict.is !== 'done') return refusedBy(needs, task, verdict)
    return finish(task, context, verdict.value, verdict.effects)
  }

  return { begin, gathered, leverage, order: (task, context) => order(task, context, []), confirm }
}

type Lost = { is: 'refused' | 'dead'; message: string; effects: EffectUpdate[] }

export async function refusedBy(
  { refusals, agentLost }: Pick<PlaceNeeds, 'refusals' | 'agentLost'>,
  task: TaskView,
  { is, message, effects }: Lost,
): Promise<StepResult> {
  if (refusals.isUnknownSigner(message)) await agentLost(task, memoryOf(task).agent)
  const code = refusals.codeOfRefusal(message)
  return failed(is === 'dead' && code === 'venue_rejected' ? 'expired' : code, message, effects)
}

function rejected(task: TaskView, memory: Memory, entry: Entry, effects: EffectUpdate[]): StepResult {
  const { code, message } = entry.error ?? { code: 'venue_rejected', message: 'The venue refused the order' }
  return {
    ...failed(
      code,
      message,
      effects.map((each) => ({ ...each, status: 'rejected' as const })),
    ),
    result: resultOf(task.id, memory, { entry, exits: [], fills: [] }),
  } as StepResult
}

export function completed(
  task: TaskView,
  memory: Memory,
  standing: Standing,
  { effects, now }: { effects: EffectUpdate[]; now: Date },
): StepResult {
  return {
    end: 'completed',
    outcome: standing.entry.status === 'part' ? 'partial' : 'executed',
    result: resultOf(task.id, memory, standing),
    data: {
      fills: fillsOf(standing.fills),
      ...noteOf(memory, standing),
      ...positionNote(memory.market, standing.fills),
      ...noteSpent(task, memory, standing, now),
    },
    effects,
  }
}
