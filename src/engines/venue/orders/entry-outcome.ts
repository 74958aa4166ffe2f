import { setTimeout as pause } from 'node:timers/promises'
import { type Entry, type Exit, type ExitLeg, exitStateOf, sumFills } from '#engines/venue/records/bracket.ts'
import { backoffMs } from '#kernel/async/backoff.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { match } from '#kernel/match-union.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { Fill, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { deriveCloid, effectOf } from './action-outcome.ts'
import { isShownByNow, type LookUpScope } from './confirm-action.ts'
import { assertBalanceExplained, consistentRecord } from './consistent-reads.ts'
import { fillsOfEntry, fillsOfOrder } from './entry-fills.ts'
import { createOrderLookup, type FoundOrder, type OrderLookupSource, readLagMs } from './order-lookup.ts'
import type { OrderOutcome } from './order-result.ts'
import { type ObservedEntry, type OrderTaskData, type PlacedExits, wantedExits } from './order-task.ts'
import type { PlaceOrderDeps } from './place-order-deps.ts'

/** Determines the outcome of an entry and its exits, from the reply to the order and the venue's records. */

/** Returns an exit by the venue's reply to its order; a later read that lacks the exit does not override it. */
function exitOfReply(leg: ExitLeg, reply: LegStatus | undefined): Exit {
  if (!reply) return { leg, orderId: null, state: 'unknown', error: null }
  return match(reply, {
    error: ({ message }): Exit => ({ leg, orderId: null, state: 'missing', error: message }),
    accepted({ as }): Exit {
      return { leg, orderId: null, state: as === 'waitingForFill' ? 'waiting' : 'open', error: null }
    },
    resting: ({ orderId }): Exit => ({ leg, orderId, state: 'open', error: null }),
    filled: ({ orderId }): Exit => ({ leg, orderId, state: 'closed', error: null }),
  })
}

export const exitsOfReply = (wanted: readonly ExitLeg[], legs: readonly LegStatus[]): Exit[] =>
  wanted.map((leg, at) => exitOfReply(leg, legs[at]))

/** Reads an entry and its exits from the reply, which has a status for each order in the order of sending. */
export function entryOfReply(
  legs: LegStatus[],
  taskData: OrderTaskData,
  rejections: PlaceOrderDeps['rejections'],
): ObservedEntry | undefined {
  const [first, ...rest] = legs
  const exits = exitsOfReply(
    wantedExits(taskData).map(({ leg }) => leg),
    rest,
  )
  const entry = first && entryReplied(first, taskData, rejections)
  return entry && { entry, exits, replied: true, landedAtMs: null }
}

const entryReplied = (
  reply: LegStatus,
  { size: wanted, tif }: OrderTaskData,
  rejections: PlaceOrderDeps['rejections'],
): Entry | undefined =>
  match(reply, {
    accepted: () => undefined,
    error({ message }): Entry {
      const error = { code: rejections.codeOfRejection(message), message }
      return { orderId: null, status: 'rejected', filledSize: null, error }
    },
    resting: ({ orderId }): Entry => ({ orderId, status: 'resting', filledSize: null, error: null }),
    filled({ orderId, size }): Entry | undefined {
      const isWhole = compareDecimals(size, wanted) >= 0
      // Only an IOC order ends with a partial fill; the remainder of another order may rest.
      if (!isWhole && tif !== 'ioc') return undefined
      return { orderId, status: isWhole ? 'filled' : 'partial', filledSize: size, error: null }
    },
  })

/** Returns the entry as a record shows it, or undefined if the record does not determine the entry's state. */
function entryFound(
  { orderId, phase, status, filledSize }: FoundOrder,
  taskData: OrderTaskData,
  rejections: PlaceOrderDeps['rejections'],
  { isLast }: { isLast: boolean },
): Entry | undefined {
  const entry = (as: Entry['status'], filled: string | null, error: Entry['error'] = null): Entry => ({
    orderId,
    status: as,
    filledSize: filled,
    error,
  })
  const isWhole = compareDecimals(filledSize, taskData.size) >= 0
  if (isWhole) return entry('filled', filledSize)
  // An IOC order never rests, so a status of an open order is stale.
  if (phase === 'open' || phase === 'waiting')
    return taskData.tif === 'ioc' ? undefined : entry('resting', null)
  if (phase === 'filling') return isLast ? entry('partial', filledSize) : undefined
  if (compareDecimals(filledSize, '0') > 0) return entry('partial', filledSize)
  if (phase === 'triggered' || phase === 'filled') return entry('filled', taskData.size)
  const message = `The venue ended the order: ${status}`
  return entry('rejected', null, { code: rejections.codeOfStatus(status ?? ''), message })
}

type EntryLookUpDeps = Pick<PlaceOrderDeps, 'venue' | 'rejections'>

/**
 * Adds the fills of a cancelled order, which may be filled in part while its status shows the original size.
 * Returns undefined while its fills may not be visible yet.
 */
async function withFills(
  venue: PlaceOrderDeps['venue'],
  account: string,
  found: FoundOrder,
  { sinceMs, isLast }: { sinceMs: number; isLast: boolean },
): Promise<FoundOrder | undefined> {
  if (found.phase !== 'cancelled' || compareDecimals(found.filledSize, '0') > 0) return found
  // The clock is read before the fills, so that the fills are newer.
  const isSettled = isLast || (await isShownByNow(venue, account, found.atMs))
  const filledSize = sumFills(await fillsOfOrder(venue, { account, sinceMs }, found.orderId)).size
  return isSettled || compareDecimals(filledSize, '0') > 0 ? { ...found, filledSize } : undefined
}

/** Looks up the entry by client order id, the only key of an order whose reply was lost. */
export async function lookUpEntry(
  { venue, rejections }: EntryLookUpDeps,
  task: TaskView<OrderTaskData>,
  { allRecords, isLast }: LookUpScope,
): Promise<ObservedEntry | undefined> {
  const taskData = task.data
  const { account, since_ms: sinceMs, is_buy: isBuy } = taskData
  const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
  const listed = await lookup.find({ cloid: deriveCloid(task.executionId, 'entry') })
  const found = listed && (await withFills(venue, account, listed, { sinceMs, isLast }))
  const entry = found && entryFound(found, taskData, rejections, { isLast })
  if (entry) {
    const exits = wantedExits(taskData).map(
      ({ leg }): Exit => ({
        leg,
        orderId: null,
        state: 'unknown',
        error: null,
      }),
    )
    return { entry, exits, replied: false, landedAtMs: found.atMs }
  }
  if (!isLast) return undefined
  if (taskData.market === 'perp') {
    const { state } = await consistentRecord(venue, { account, symbol: taskData.symbol })
    const { expiresAtMs: ends } = effectOf(task, 'entry').intent
    // A venue server can lag for long: its records are then stale, though consistent with each other.
    if (typeof ends === 'number' && state.timeMs <= ends + readLagMs)
      throw new Fault(
        'unavailable',
        'The venue returned a state from before the order expired; the order is looked up again',
      )
  }
  if (taskData.market === 'spot' && taskData.held_before)
    await assertBalanceExplained(venue, { account, sinceMs, isBuy }, taskData.held_before)
  return undefined
}

type ExitResolution = {
  exits: readonly Exit[]
  entryRests: boolean
  /** The suffix of the exits' action keys; repaired exits have another one. */
  suffix?: string
  allRecords: boolean
  /** Whether the read lag since the exits landed has passed. */
  isSettled: boolean
}

/** Returns each exit in its current state: `missing` only if the venue says so or no record contains the exit. */
export async function resolveExits(
  venue: OrderLookupSource,
  task: TaskView<OrderTaskData>,
  { exits, entryRests, suffix = '', allRecords, isSettled }: ExitResolution,
): Promise<Exit[]> {
  const { account, since_ms: sinceMs } = task.data
  const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
  const resolved = await Promise.all(
    exits.map(async (exit): Promise<Exit> => {
      const { leg, orderId, state } = exit
      if (state === 'missing' && exit.error !== null) return exit
      const found = await lookup.find({ cloid: deriveCloid(task.executionId, `${leg}${suffix}`), orderId })
      // The end of the entry also cancels exits that wait for its remainder.
      if (!found) return state === 'waiting' && !entryRests ? { ...exit, state: 'unknown' } : exit
      const now = stateOf(found, { entryRests })
      const error = now === 'missing' ? `The venue ended the order: ${found.status}` : null
      return { leg, orderId: found.orderId, state: now, error }
    }),
  )
  // An exit that fired cancels its sibling.
  const hasFired = resolved.some(({ state }) => state === 'closed')
  return resolved.map((exit): Exit => {
    if (exit.state !== 'unknown') return exit
    if (hasFired) return { ...exit, state: 'closed' }
    // An exit with an order id was seen before, so a lagging read hides it: only the venue's statement ends it.
    const isAbsent = isSettled && allRecords && exit.orderId === null
    return isAbsent ? { ...exit, state: 'missing', error: 'The venue has no such order' } : exit
  })
}

function stateOf({ phase, status }: FoundOrder, { entryRests }: { entryRests: boolean }): Exit['state'] {
  if (status !== null) return exitStateOf(status, { entryRests })
  if (phase === 'waiting') return 'waiting'
  return phase === 'filling' ? 'closed' : 'open'
}

/**
 * Returns a time at or after which the orders of an action landed. The venue's time alone may come from a
 * lagging server or a cache, and would make an order count as absent too early. No action lands before its
 * nonce.
 */
export async function landedMs(
  venue: Pick<PlaceOrderDeps['venue'], 'timeMs'>,
  task: TaskView<OrderTaskData>,
  actionKey: string,
  foundAtMs = 0,
): Promise<number> {
  const nonceMs = Number(effectOf(task, actionKey).intent.nonce)
  return Math.max(await venue.timeMs(task.data.account), nonceMs, foundAtMs)
}

type ExitLookUp = { legs: readonly ExitLeg[]; suffix?: string; allRecords: boolean }

/** Returns exits whose reply was lost, with the order ids on record; undefined if no record contains any exit. */
export async function lookUpExits(
  venue: OrderLookupSource,
  task: TaskView<OrderTaskData>,
  { legs, suffix = '', allRecords }: ExitLookUp,
): Promise<PlacedExits | undefined> {
  const { account, since_ms: sinceMs } = task.data
  const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
  const found = await Promise.all(
    legs.map((leg) => lookup.find({ cloid: deriveCloid(task.executionId, `${leg}${suffix}`) })),
  )
  if (found.every((each) => each === undefined)) return undefined
  return {
    exits: exitsOfReply(legs, []).map((exit, at) => ({ ...exit, orderId: found[at]?.orderId ?? null })),
    landedAtMs: Math.max(...found.map((each) => each?.atMs ?? 0)),
  }
}

const isResolved = (exits: readonly Exit[]): boolean =>
  exits.every(
    ({ state, orderId }) =>
      state === 'missing' || state === 'closed' || (state !== 'unknown' && orderId !== null),
  )

const hasUnknown = (exits: readonly Exit[]): boolean => exits.some(({ state }) => state === 'unknown')

const completeWithinMs = 1_500
const pollBackoff = { firstMs: 100, maxMs: 400 }
/** Only these attempts read the venue's lists, which cost more weight than an order's status and lag as much. */
const allRecordsAttempts = new Set([2, 4])

type ExitCompletion = {
  exits: readonly Exit[]
  landedAtMs: number
  signal: AbortSignal
  suffix?: string
}
/** Adds order ids to exits that were placed without an entry; `isComplete` is false while an exit lacks a record. */
export async function completeExits(
  venue: OrderLookupSource & Pick<PlaceOrderDeps['venue'], 'timeMs' | 'passedMs'>,
  task: TaskView<OrderTaskData>,
  { exits: placed, landedAtMs, signal, suffix = '' }: ExitCompletion,
): Promise<{ exits: Exit[]; isComplete: boolean }> {
  const { account } = task.data
  const startedMs = performance.now()
  let exits = [...placed]
  for (let attempt = 0; ; attempt += 1) {
    const isSettled = await isShownByNow(venue, account, landedAtMs)
    // The lists cost more weight, and they are not needed for an exit that only lacks its order id.
    const allRecords = isSettled || (allRecordsAttempts.has(attempt) && hasUnknown(exits))
    exits = await resolveExits(venue, task, { exits, entryRests: false, suffix, allRecords, isSettled })
    if (isResolved(exits)) return { exits, isComplete: true }
    const isLate = signal.aborted || performance.now() - startedMs > completeWithinMs
    if (isLate) return { exits, isComplete: false }
    await pause(backoffMs(pollBackoff, attempt), undefined, { signal }).catch(() => undefined)
  }
}

type StreamedExits = Pick<ExitResolution, 'exits' | 'entryRests'>

/** Adds, from the stream, the order ids of exits that the venue's reply accepted without an id. */
async function streamedExits(
  { readStreamedOrder }: Pick<PlaceOrderDeps, 'readStreamedOrder'>,
  task: TaskView<OrderTaskData>,
  { exits, entryRests }: StreamedExits,
): Promise<Exit[]> {
  const { account } = task.data
  return Promise.all(
    exits.map(async (exit): Promise<Exit> => {
      if (exit.orderId !== null || (exit.state !== 'waiting' && exit.state !== 'open')) return exit
      const orderId = await readStreamedOrder(
        account,
        deriveCloid(task.executionId, exit.leg),
        (update) => update.orderId,
      )
      return orderId === undefined ? exit : { ...exit, orderId, state: exitStateOf('open', { entryRests }) }
    }),
  )
}

type CompletedEntry = { observed: ObservedEntry; orderOutcome: OrderOutcome | undefined }

/** Returns the fills and exits of an entry that landed; `orderOutcome` is undefined while a record is missing. */
export async function completeOutcome(
  deps: Pick<PlaceOrderDeps, 'venue' | 'readStreamedOrder'>,
  task: TaskView<OrderTaskData>,
  observed: ObservedEntry,
  signal: AbortSignal,
): Promise<CompletedEntry> {
  const { venue } = deps
  const taskData = task.data
  const { entry, replied } = observed
  const startedMs = performance.now()
  let { exits, landedAtMs } = observed
  let fills: Fill[] | undefined
  const entryRests = entry.status === 'resting'
  // The stream is current after a reply. If the filled size is known, it is current once it shows that size.
  const isStreamCurrent = replied || entry.filledSize !== null
  // If the entry was filled in part, the venue cancels the exits with the remainder, after the stream's first message
  // about them. So the stream is not asked for these exits.
  if (replied && landedAtMs === null && entry.status !== 'partial')
    exits = await streamedExits(deps, task, { exits, entryRests })
  for (let attempt = 0; ; attempt += 1) {
    if (attempt > 0) landedAtMs ??= await landedMs(venue, task, 'entry')
    const isSettled = landedAtMs !== null && (await isShownByNow(venue, taskData.account, landedAtMs))
    const resolving = {
      exits,
      entryRests,
      allRecords: allRecordsAttempts.has(attempt) || isSettled,
      isSettled,
    }
    const [filled, resolved] = await Promise.all([
      fills ?? fillsOfEntry(deps, taskData, entry, { isStreamCurrent: isStreamCurrent && attempt === 0 }),
      isResolved(exits) ? exits : resolveExits(venue, task, resolving),
    ])
    fills = filled
    exits = resolved
    const isLate = signal.aborted || performance.now() - startedMs > completeWithinMs
    if (fills && (isResolved(exits) || (isLate && !hasUnknown(exits))))
      return { observed: { ...observed, exits, landedAtMs }, orderOutcome: { entry, exits, fills } }
    if (isLate) return { observed: { ...observed, exits, landedAtMs }, orderOutcome: undefined }
    await pause(backoffMs(pollBackoff, attempt), undefined, { signal }).catch(() => undefined)
  }
}
