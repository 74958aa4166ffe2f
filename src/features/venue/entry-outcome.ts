import { setTimeout as pause } from 'node:timers/promises'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { TaskView } from '#kernel/task.ts'
import type { Fill, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { cloidOf, type LookUp } from './act.ts'
import { effectOf } from './act-effect.ts'
import { type Entry, type Exit, type ExitLeg, exitStateOf, sumOf } from './bracket.ts'
import { isShownByNow, readLagMs } from './confirm-action.ts'
import { fillsOfEntry, fillsOfOrder } from './entry-fills.ts'
import { type Memory, memoryOf, wantedExits } from './memory.ts'
import {
  agreedRecord,
  assertBalanceExplained,
  type EvidenceSource,
  gatherEvidence,
  type OrderFound,
} from './order-evidence.ts'
import type { PlaceNeeds } from './place.ts'
import type { Standing } from './report.ts'

/** What the reply to an order says of its entry and exits, and what the venue's records add to it. */

/** `replied`: by the venue's reply to the order itself, so that the stream is as new. */
export type Seen = { entry: Entry; exits: Exit[]; replied: boolean; landedAtMs: number | null }

/** The venue's own word on an exit: it is true whatever a later read fails to show. */
function exitOfReply(leg: ExitLeg, said: LegStatus | undefined): Exit {
  if (!said) return { leg, orderId: null, state: 'unknown', error: null }
  if (said.is === 'error') return { leg, orderId: null, state: 'gone', error: said.message }
  if (said.is === 'accepted') {
    const state = said.as === 'waitingForFill' ? 'waiting' : 'standing'
    return { leg, orderId: null, state, error: null }
  }
  return { leg, orderId: said.orderId, state: said.is === 'filled' ? 'done' : 'standing', error: null }
}

export const exitsOfReply = (wanted: readonly ExitLeg[], legs: readonly LegStatus[]): Exit[] =>
  wanted.map((leg, at) => exitOfReply(leg, legs[at]))

/** The reply holds one status for each order, in the order in which they were sent. */
export function entryOfReply(
  legs: LegStatus[],
  memory: Memory,
  refusals: PlaceNeeds['refusals'],
): Seen | undefined {
  const [first, ...rest] = legs
  if (!first || first.is === 'accepted') return undefined
  const exits = exitsOfReply(
    wantedExits(memory).map(({ leg }) => leg),
    rest,
  )
  const seen = (entry: Entry): Seen => ({ entry, exits, replied: true, landedAtMs: null })
  if (first.is === 'error') {
    const error = { code: refusals.codeOfRefusal(first.message), message: first.message }
    return seen({ orderId: null, status: 'rejected', filledSize: null, error })
  }
  const { orderId } = first
  if (first.is === 'resting') return seen({ orderId, status: 'resting', filledSize: null, error: null })
  const isWhole = compareDecimals(first.size, memory.size) >= 0
  // Only an order that takes what there is at once has ended with a part: the rest of another one may rest.
  if (!isWhole && memory.tif !== 'ioc') return undefined
  return seen({ orderId, status: isWhole ? 'filled' : 'part', filledSize: first.size, error: null })
}

/** Undefined where the record does not say how the entry stands. */
function entryFound(
  { orderId, phase, status, filledSize }: OrderFound,
  memory: Memory,
  refusals: PlaceNeeds['refusals'],
  isLast: boolean,
): Entry | undefined {
  const entry = (as: Entry['status'], filled: string | null, error: Entry['error'] = null): Entry => ({
    orderId,
    status: as,
    filledSize: filled,
    error,
  })
  const isWhole = compareDecimals(filledSize, memory.size) >= 0
  if (isWhole) return entry('filled', filledSize)
  // An order that takes what there is at once never rests: such an answer is older than its end.
  if (phase === 'open' || phase === 'waiting')
    return memory.tif === 'ioc' ? undefined : entry('resting', null)
  if (phase === 'filling') return isLast ? entry('part', filledSize) : undefined
  if (compareDecimals(filledSize, '0') > 0) return entry('part', filledSize)
  if (phase === 'triggered' || phase === 'filled') return entry('filled', memory.size)
  const message = `The venue ended the order: ${status}`
  return entry('rejected', null, { code: refusals.codeOfStatus(status ?? ''), message })
}

type LookNeeds = Pick<PlaceNeeds, 'venue' | 'refusals'>

/**
 * A cancelled order may have been filled in part, and its status may still show the size of its opening. Undefined while
 * its fills may be missing yet.
 */
async function withFills(
  venue: PlaceNeeds['venue'],
  account: string,
  found: OrderFound,
  { sinceMs, isLast }: { sinceMs: number; isLast: boolean },
): Promise<OrderFound | undefined> {
  if (found.phase !== 'cancelled' || compareDecimals(found.filledSize, '0') > 0) return found
  // Asked before the fills, which are then newer.
  const isSettled = isLast || (await isShownByNow(venue, account, found.atMs))
  const filledSize = sumOf(await fillsOfOrder(venue, { account, sinceMs }, found.orderId)).size
  return isSettled || compareDecimals(filledSize, '0') > 0 ? { ...found, filledSize } : undefined
}

/** By its own id: the only way to learn of an order whose reply was lost. */
export async function lookUpEntry(
  { venue, refusals }: LookNeeds,
  task: TaskView,
  { allRecords, isLast }: LookUp,
): Promise<Seen | undefined> {
  const memory = memoryOf(task)
  const { account, since_ms: sinceMs, is_buy: isBuy } = memory
  const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
  const listed = await evidence.find({ cloid: cloidOf(task.id, 'entry') })
  const found = listed && (await withFills(venue, account, listed, { sinceMs, isLast }))
  const entry = found && entryFound(found, memory, refusals, isLast)
  if (entry) {
    const exits = wantedExits(memory).map(
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
  if (memory.market === 'perp') {
    const { state } = await agreedRecord(venue, { account, symbol: memory.symbol })
    const { expiresAtMs: ends } = effectOf(task, 'entry').intent
    // Of several servers of the venue one may lag for long: its records agree with each other, and are old.
    if (typeof ends === 'number' && state.timeMs <= ends + readLagMs)
      throw new Fault('unavailable', 'The venue answers with a state from before the end of the order')
  }
  if (memory.market === 'spot' && memory.held_before)
    await assertBalanceExplained(venue, { account, sinceMs, isBuy }, memory.held_before)
  return undefined
}

type Resolving = {
  /** As the reply says, or as the last look-up found them. */
  exits: readonly Exit[]
  entryRests: boolean
  /** What the name of each order ends in. */
  suffix?: string
  allRecords: boolean
  /** Every read shows by now what landed together with these orders. */
  isSettled: boolean
}

/** What each exit does now: only the venue's own word, or every record together, makes it gone. */
export async function resolveExits(
  venue: EvidenceSource,
  task: TaskView,
  { exits, entryRests, suffix = '', allRecords, isSettled }: Resolving,
): Promise<Exit[]> {
  const { account, since_ms: sinceMs } = memoryOf(task)
  const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
  const resolved = await Promise.all(
    exits.map(async (exit): Promise<Exit> => {
      const { leg, orderId, state } = exit
      if (state === 'gone' && exit.error !== null) return exit
      const found = await evidence.find({ cloid: cloidOf(task.id, `${leg}${suffix}`), orderId })
      // An entry that ended takes along what waited for the rest of it.
      if (!found) return state === 'waiting' && !entryRests ? { ...exit, state: 'unknown' } : exit
      const now = stateOf(found, entryRests)
      const error = now === 'gone' ? `The venue ended the order: ${found.status}` : null
      return { leg, orderId: found.orderId, state: now, error }
    }),
  )
  // One that fired takes the other along.
  const hasFired = resolved.some(({ state }) => state === 'done')
  return resolved.map((exit): Exit => {
    if (exit.state !== 'unknown') return exit
    if (hasFired) return { ...exit, state: 'done' }
    const isAbsent = isSettled && allRecords
    return isAbsent ? { ...exit, state: 'gone', error: 'The venue has no such order' } : exit
  })
}

function stateOf({ phase, status }: OrderFound, entryRests: boolean): Exit['state'] {
  if (status !== null) return exitStateOf(status, entryRests)
  if (phase === 'waiting') return 'waiting'
  return phase === 'filling' ? 'done' : 'standing'
}

/** Nothing is left to be asked about the exits. */
const isResolved = (exits: readonly Exit[]): boolean =>
  exits.every(
    ({ state, orderId }) => state === 'gone' || state === 'done' || (state !== 'unknown' && orderId !== null),
  )

const hasUnknown = (exits: readonly Exit[]): boolean => exits.some(({ state }) => state === 'unknown')

const completeWithinMs = 1_500
const pollFirstMs = 100
const pollMaxMs = 400
/** The lists are dear, and lag no less than the status of a single order. */
const allRecordsAttempts = new Set([2, 4])

type Completing = {
  exits: readonly Exit[]
  landedAtMs: number
  signal: AbortSignal
  /** What the name of each order ends in. */
  suffix?: string
}
/** Exits of which at least one landed; kept by a task until every record of them is there. */
export type PlacedExits = Pick<Completing, 'landedAtMs'> & { exits: Exit[] }

/** Exits that landed without an entry, each with its order id; `isComplete` is false while a record is missing. */
export async function completeExits(
  venue: EvidenceSource & Pick<PlaceNeeds['venue'], 'timeMs' | 'passedMs'>,
  task: TaskView,
  { exits: placed, landedAtMs, signal, suffix = '' }: Completing,
): Promise<{ exits: Exit[]; isComplete: boolean }> {
  const { account } = memoryOf(task)
  const startedMs = performance.now()
  let exits = [...placed]
  for (let [attempt, waitMs] = [0, pollFirstMs]; ; attempt += 1, waitMs = Math.min(waitMs * 2, pollMaxMs)) {
    const isSettled = await isShownByNow(venue, account, landedAtMs)
    // The lists are dear, and what the reply has taken needs no more than its order id.
    const allRecords = isSettled || (allRecordsAttempts.has(attempt) && hasUnknown(exits))
    exits = await resolveExits(venue, task, { exits, entryRests: false, suffix, allRecords, isSettled })
    if (isResolved(exits)) return { exits, isComplete: true }
    const isLate = signal.aborted || performance.now() - startedMs > completeWithinMs
    if (isLate) return { exits, isComplete: false }
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

type Streamed = Pick<Resolving, 'exits' | 'entryRests'>

/** The stream names the orders of exits that the reply accepted without an id. */
async function streamedExits(
  { orderHeard }: Pick<PlaceNeeds, 'orderHeard'>,
  task: TaskView,
  { exits, entryRests }: Streamed,
): Promise<Exit[]> {
  const { account } = memoryOf(task)
  return Promise.all(
    exits.map(async (exit): Promise<Exit> => {
      if (exit.orderId !== null || (exit.state !== 'waiting' && exit.state !== 'standing')) return exit
      const orderId = await orderHeard(account, cloidOf(task.id, exit.leg), (heard) => heard.orderId)
      return orderId === undefined ? exit : { ...exit, orderId, state: exitStateOf('open', entryRests) }
    }),
  )
}

type Completed = { seen: Seen; standing: Standing | undefined }

/** The fills and exits of an entry that landed. Without `standing`, a record is still missing that will come. */
export async function completeOutcome(
  needs: Pick<PlaceNeeds, 'venue' | 'orderHeard'>,
  task: TaskView,
  seen: Seen,
  signal: AbortSignal,
): Promise<Completed> {
  const { venue } = needs
  const memory = memoryOf(task)
  const { entry, replied } = seen
  const startedMs = performance.now()
  let { exits, landedAtMs } = seen
  let fills: Fill[] | undefined
  const entryRests = entry.status === 'resting'
  // What was filled is known: the stream is as new once it shows so much.
  const isStreamAsNew = replied || entry.filledSize !== null
  // The rest of an entry that was filled in part takes its exits along after their first message.
  if (replied && landedAtMs === null && entry.status !== 'part')
    exits = await streamedExits(needs, task, { exits, entryRests })
  for (let [attempt, waitMs] = [0, pollFirstMs]; ; attempt += 1, waitMs = Math.min(waitMs * 2, pollMaxMs)) {
    if (attempt > 0) landedAtMs ??= await venue.timeMs(memory.account)
    const isSettled = landedAtMs !== null && (await isShownByNow(venue, memory.account, landedAtMs))
    const resolving = {
      exits,
      entryRests,
      allRecords: allRecordsAttempts.has(attempt) || isSettled,
      isSettled,
    }
    const [filled, resolved] = await Promise.all([
      fills ?? fillsOfEntry(needs, memory, entry, isStreamAsNew && attempt === 0),
      isResolved(exits) ? exits : resolveExits(venue, task, resolving),
    ])
    fills = filled
    exits = resolved
    const isLate = signal.aborted || performance.now() - startedMs > completeWithinMs
    if (fills && (isResolved(exits) || (isLate && !hasUnknown(exits))))
      return { seen: { ...seen, exits, landedAtMs }, standing: { entry, exits, fills } }
    if (isLate) return { seen: { ...seen, exits, landedAtMs }, standing: undefined }
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}
