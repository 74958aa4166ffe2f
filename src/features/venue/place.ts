import { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { type ActPlan, cloidOf, type VenueActs } from './act.ts'
import { type Entry, type Exit, exitStateOf, isEnding, judgeBracket, sumOf } from './bracket.ts'
import { fillsOfEntry } from './entry-fills.ts'
import { exitOrder, type Pricing } from './exits.ts'
import type { Gathering } from './gather.ts'
import { entryOrder, type Memory, memoryOf, wantedExits } from './memory.ts'
import { fillsOf, resultOf, type Standing } from './report.ts'
import { assetKey } from './symbol.ts'

/** Leverage where it differs, then the order with its exits, then the truth about all of it. */

export type Refusals = {
  codeOfRefusal(message: string): string
  codeOfStatus(status: string): string
  isUnknownSigner(message: string): boolean
}
export type PlaceNeeds = {
  venue: Pick<Hyperliquid, 'order' | 'fillsSince' | 'standing'>
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
  /** The last word of a section on a task that stands; by default what was found. */
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
  ...{ end: 'failed', outcome: 'not_executed', effects },
  error: { code, message, retryable: false, upstream: upstreamName },
})
export const failedBy = (fault: Fault, effects: EffectUpdate[] = []): StepResult =>
  failed(fault.code, fault.message, effects)

export const factsOf = (memory: Memory, change: Partial<ActPlan['facts']> = {}): ActPlan['facts'] => ({
  ...{ operation: memory.operation, tokens: [assetKey(memory.market, memory.symbol)], recipients: [] },
  ...{ usdMicros: BigInt(memory.usd_micros), exit: memory.exit },
  ...change,
})
export const planOf = (memory: Memory): Pick<ActPlan, 'account' | 'agent' | 'aheadMs' | 'ttlMs'> => ({
  ...{ account: memory.account, agent: memory.agent, aheadMs: memory.ahead_ms, ttlMs: orderTtlMs },
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
    const legs = ['entry', ...exits.map(({ leg }) => leg)]
    const notes = orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: memory.symbol }))
    const grouping = exits.length > 0 ? ('bracket' as const) : ('none' as const)
    const plan: ActPlan = {
      ...{ leg: 'entry', ...planOf(memory), facts: factsOf(memory), notes },
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
    if (verdict.is === 'doubt') return acts.wait(task, 'gathered', verdict.effects)
    if (verdict.is !== 'done') return refusedBy(needs, task, verdict)
    const onward = await setLeverage(task, context, verdict.effects)
    return { ...onward, also: needs.gathering.store(task, context, verdict.value) }
  }

  const setLeverage = async (task: TaskView, context: StepContext, effects: EffectUpdate[]) => {
    const memory = memoryOf(task)
    if (!memory.leverage) return order(task, context, effects)
    const { is_cross: isCross, value: leverage } = memory.leverage
    const plan: ActPlan = {
      ...{ leg: 'leverage', ...planOf(memory), facts: factsOf(memory, { usdMicros: 0n }) },
      action: { type: 'set_leverage', asset: memory.asset, isCross, leverage },
    }
    const refused = (fault: Fault) => failedBy(fault, effects)
    return acts.intend(task, plan, { now: context.now, next: 'leverage', effects, refused })
  }

  const leverage: Step = async (task, context) => {
    const memory = memoryOf(task)
    const wanted = memory.leverage!
    const verdict = await acts.settle({
      ...{ task, leg: 'leverage', signal: context.signal, read: () => true as const },
      async look() {
        const { isCross, leverage: value } = await venue.standing(memory.account, memory.symbol)
        return isCross === wanted.is_cross && value === wanted.value ? (true as const) : undefined
      },
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'leverage', verdict.effects)
    if (verdict.is === 'done') return order(task, context, verdict.effects)
    return refusedBy(needs, task, verdict)
  }

  const confirm: Step = async (task, context) => {
    const memory = memoryOf(task)
    const verdict = await acts.settle<Seen>({
      ...{ task, leg: 'entry', signal: context.signal, read: (legs) => entryRead(legs, memory, refusals) },
      look: () => entryLook(needs, task),
    })
    if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict.effects)
    if (verdict.is !== 'done') return refusedBy(needs, task, verdict)
    const { entry, legErrors, replied } = verdict.value
    if (entry.status === 'rejected' && entry.error) return rejected(task, memory, entry, verdict.effects)
    const [fills, exits] = await Promise.all([
      fillsOfEntry(needs, memory, entry, replied),
      exitsOf(needs, task, legErrors),
    ])
    const standing = { entry, exits, fills }
    const judgement = judgeBracket(entry, sumOf(fills).size, exits)
    if (judgement === 'stands') {
      const result = completed(task, memory, standing, verdict.effects)
      return needs.conclude?.(task, context, standing, result) ?? result
    }
    if (judgement === 'nothing')
      return failed('slippage', 'Nothing was filled within the accepted price', verdict.effects)
    return needs.mend(task, context, standing, verdict.effects)
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
  effects: EffectUpdate[],
): StepResult {
  return {
    end: 'completed',
    outcome: standing.entry.status === 'part' ? 'partial' : 'executed',
    result: resultOf(task.id, memory, standing),
    data: { fills: fillsOf(standing.fills) },
    effects,
  }
}

/** `replied`: by the venue's reply to the order itself, so that the stream is as new. */
type Seen = { entry: Entry; legErrors: Partial<Record<'tp' | 'sl', string>>; replied: boolean }

/** The reply holds one status for each order, in the order in which they were sent. */
function entryRead(legs: LegStatus[], memory: Memory, refusals: Refusals): Seen | undefined {
  const [first, ...rest] = legs
  if (!first || first.is === 'accepted') return undefined
  const legErrors: Seen['legErrors'] = {}
  const replied = true
  wantedExits(memory).forEach(({ leg }, at) => {
    const said = rest[at]
    if (said?.is === 'error') legErrors[leg] = said.message
  })
  if (first.is === 'error') {
    const error = { code: refusals.codeOfRefusal(first.message), message: first.message }
    return { entry: { orderId: null, status: 'rejected', filledSize: null, error }, legErrors, replied }
  }
  const filledSize = first.is === 'filled' ? first.size : null
  const status = first.is === 'resting' ? 'resting' : filledSize === memory.size ? 'filled' : 'part'
  return { entry: { orderId: first.orderId, status, filledSize, error: null }, legErrors, replied }
}

/** By its own id: the only way to learn of an order whose reply was lost. */
async function entryLook({ venue, refusals }: PlaceNeeds, task: TaskView): Promise<Seen | undefined> {
  const memory = memoryOf(task)
  const found = await venue.order(memory.account, cloidOf(task.id, 'entry'))
  if (!found) return undefined
  const { order, status } = found
  const entry = (as: Entry['status'], error: Entry['error'] = null): Seen => ({
    entry: { orderId: order.orderId, status: as, filledSize: null, error },
    ...{ legErrors: {}, replied: false },
  })
  if (status === 'open') return entry('resting')
  if (status === 'filled' || status === 'triggered') return entry('filled')
  // It is there, whatever the word means: nothing may be concluded from not understanding it.
  if (!isEnding(status))
    throw new Fault('upstream_changed', `Hyperliquid tells an order status that is not known: ${status}`)
  const fills = await venue.fillsSince(memory.account, memory.since_ms)
  if (fills.some(({ orderId }) => orderId === order.orderId)) return entry('part')
  return entry('rejected', {
    code: refusals.codeOfStatus(status),
    message: `The venue ended the order: ${status}`,
  })
}

/** Asked one by one, since the reply names no order that sleeps. */
export async function exitsOf(
  { venue }: { venue: Pick<Hyperliquid, 'order'> },
  task: TaskView,
  errors: Partial<Record<'tp' | 'sl', string>>,
  suffix = '',
): Promise<Exit[]> {
  const memory = memoryOf(task)
  return Promise.all(
    wantedExits(memory).map(async ({ leg }): Promise<Exit> => {
      const found = await venue.order(memory.account, cloidOf(task.id, `${leg}${suffix}`))
      if (!found)
        return { leg, orderId: null, state: 'gone', error: errors[leg] ?? 'The venue has no such order' }
      const state = exitStateOf(found.status)
      const error = state === 'gone' ? (errors[leg] ?? `The venue ended the order: ${found.status}`) : null
      return { leg, orderId: found.order.orderId, state, error }
    }),
  )
}
