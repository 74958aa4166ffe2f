import type { Exit, ExitLeg } from '#engines/venue/records/bracket.ts'
import type { VenueGrouping } from '#kernel/money/venue-actions.ts'
import type { TaskView } from '#kernel/task/task.ts'
import { deriveCloid } from './action-outcome.ts'
import { exitOrder } from './bracket-action.ts'
import { completeExits, exitsOfReply, landedMs, lookUpExits } from './entry-outcome.ts'
import type { Pricing } from './order-checks.ts'
import { type OrderLookupSource, placedBefore } from './order-lookup.ts'
import { factsOf, type OrderTaskData, type PlacedExits, planOf, wantedExits } from './order-task.ts'
import type { ActionSearch, VenuePlan } from './venue-effect.ts'

/** Places exits without an entry, as an effect of their task. */

type ExitsPlacement = {
  size: string
  grouping: VenueGrouping
  suffix?: string
  only?: (leg: ExitLeg) => boolean
}

export function exitsPlan(
  { executionId, data }: TaskView<OrderTaskData>,
  pricing: Pricing,
  { size, grouping, suffix = '', only = () => true }: ExitsPlacement,
): Pick<VenuePlan<OrderTaskData>, 'account' | 'agent' | 'skewMs' | 'ttlMs' | 'facts' | 'action' | 'notes'> {
  const wanted = wantedExits(data).filter(({ leg }) => only(leg))
  const nameOf = (leg: ExitLeg) => `${leg}${suffix}`
  const orders = wanted.map((exit) =>
    exitOrder(executionId, data, { ...exit, size, name: nameOf(exit.leg) }, pricing),
  )
  return {
    ...planOf(data),
    facts: factsOf(data, { usdMicros: 0n, exit: true }),
    action: { type: 'order', orders, grouping },
    notes: orders.map(({ cloid }, at) => ({ cloid, leg: nameOf(wanted[at]!.leg), symbol: data.symbol })),
  }
}

/** Returns how to find exits at the venue; `placed` has the exits that an earlier run of the step found. */
export const exitsSearch = (
  venue: OrderLookupSource,
  task: TaskView<OrderTaskData>,
  { legs, suffix = '', placed }: { legs: ExitLeg[]; suffix?: string; placed: PlacedExits | undefined },
): ActionSearch<PlacedExits> => ({
  known: placed,
  parseReply: (replies) =>
    replies.length === legs.length ? { exits: exitsOfReply(legs, replies), landedAtMs: 0 } : undefined,
  lookUp: ({ allRecords }) => lookUpExits(venue, task, { legs, suffix, allRecords }),
})

export const exitsBefore = (deps: Parameters<typeof placedBefore>[0], task: TaskView<OrderTaskData>) =>
  placedBefore(
    deps,
    task,
    wantedExits(task.data).map(({ leg }) => deriveCloid(task.executionId, leg)),
  )

type Completion = {
  actionKey?: string
  /** The exits as they are found now; `placed` has them as an earlier run of the step stored them. */
  found: PlacedExits
  placed: PlacedExits | undefined
  signal: AbortSignal
  suffix?: string
}

/** Returns the exits with their order ids; `waiting` is stored until every record of them is available. */
export async function completePlacement(
  venue: Parameters<typeof completeExits>[0],
  task: TaskView<OrderTaskData>,
  { actionKey = 'exits', found, placed, signal, suffix = '' }: Completion,
): Promise<{ exits: Exit[]; waiting?: PlacedExits }> {
  const landedAtMs = placed?.landedAtMs ?? (await landedMs(venue, task, actionKey, found.landedAtMs))
  const completion = { exits: found.exits, landedAtMs, signal, suffix }
  const { exits, isComplete } = await completeExits(venue, task, completion)
  return isComplete ? { exits } : { exits, waiting: { exits, landedAtMs } }
}
