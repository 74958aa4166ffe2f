import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import { pollsOf } from '#kernel/task/poll-again.ts'
import type { Effect, JsonObject, TaskView } from '#kernel/task/task.ts'
import type { Hyperliquid, LegStatus, SendResult } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Absence, type ActionOutcome, type ActionTaskData, effectOf } from './action-outcome.ts'
import { readLagMs } from './order-lookup.ts'

/**
 * Determines the outcome of a signed action. The reply to the first send is trusted; after any ambiguity the
 * venue's records decide. A positive finding is final at once. A negative one is final only if the action can no
 * longer execute, every record agrees, and a second look-up some seconds later finds nothing either.
 */

/** How far a look-up goes; every request costs rate budget. */
export type LookUpScope = {
  /** Whether the look-up reads every record that could show the action, and not only its status. */
  allRecords: boolean
  /**
   * Whether the action can no longer execute. An action that no record contains is then absent for good, and
   * contradicting records cause a fault.
   */
  isLast: boolean
}

export type ConfirmRequest<T> = {
  task: TaskView<ActionTaskData>
  actionKey: string
  signal: AbortSignal
  /** Looks up the action at the venue, and returns undefined if no record contains it. */
  lookUp: (how: LookUpScope) => Promise<T | undefined>
  /** The grace period of an action that the user signs; if absent, the default applies. */
  graceMs?: number
  /** Parses the reply to the action, and returns undefined to leave the outcome to `lookUp`. */
  parseReply: (legs: LegStatus[]) => T | undefined
}

export type ActionSource = Pick<Hyperliquid, 'send' | 'timeMs' | 'passedMs'>
type ConfirmDeps = { venue: ActionSource; graceMs: number }

/** The time between the two look-ups that prove an absence, since both may reach a lagging server. */
const secondLookUpMs = 3_000
/** The waits before each look-up in the first run of the step. */
const inlineWaitsMs = [0, 50, 150, 350, 700]
/** A parked task looks up once; a second time only if a rejection of the same bytes makes that look-up the last. */
const parkedWaitsMs = [0, 0]
/** The polls of a parked task that read every record: one after the usual read lag, and one after the largest. */
const allRecordsPolls = new Set([1, 3])
const sendsMax = 3
/** The clocks of two reads differ a little; the venue's clock must pass the expiry in both. */
const clockMarginMs = 50

type Timing = {
  atMs: number
  isExpired: boolean
  isLast: boolean
}
type Known = {
  refusal: string | undefined
  /** Whether the venue has used the nonce of the action, so that sending again has no effect. */
  isSpent: boolean
}

export async function confirmAction<T>(
  request: ConfirmRequest<T>,
  deps: ConfirmDeps,
): Promise<ActionOutcome<T>> {
  const { task, actionKey, signal, lookUp, parseReply } = request
  const { venue } = deps
  const effect = effectOf(task, actionKey)
  const attempt = effect.txAttempts.at(-1)
  if (!attempt) throw new Error(`effect ${effect.id} has no transaction attempt`)
  const account = String(effect.intent.account)
  const executed = (value: T): ActionOutcome<T> => ({
    type: 'executed',
    value,
    effects: [{ effectId: effect.id, status: 'confirmed', attemptExternalId: attempt.externalId }],
  })
  const send = async (): Promise<{ sent: SendResult; value: T | undefined }> => {
    const sent = await venue.send(attempt.raw, account)
    return { sent, value: sent.type === 'ok' ? parseReply(sent.legs) : undefined }
  }

  const known: Known = { refusal: undefined, isSpent: false }
  const note = (sent: SendResult) => {
    if (sent.type === 'rejected') known.refusal = sent.message
    known.isSpent = sent.type === 'ok' || (sent.type === 'rejected' && isNonceRefusal(sent))
  }

  if (effect.neverSent) {
    const { sent, value } = await send()
    if (value !== undefined) return executed(value)
    note(sent)
    if (sent.type === 'rejected' && !isNonceRefusal(sent))
      return {
        type: 'rejected',
        message: sent.message,
        effects: [{ effectId: effect.id, status: 'rejected' }],
      }
  }
  // An earlier look-up found the action at the venue, so it is never sent again and never counts as absent.
  const isFoundBefore = task.data.looked_before === actionKey
  const polls = pollsOf(task)
  const isFirst = polls === 0
  const waits = isFirst ? inlineWaitsMs : parkedWaitsMs
  let cause: Fault | undefined
  let timing: Timing | undefined
  let absence: Absence | undefined
  let sends = 0
  for (let at = 0; at < waits.length && !signal.aborted; at += 1) {
    if (at > 0) await pause(waits[at], undefined, { signal }).catch(() => undefined)
    try {
      timing = await timingOf(effect, deps, known)
      // Between the expiry and the end of the read lag, an empty look-up proves nothing.
      if (!isFirst && !timing.isLast && (timing.isExpired || at > 0)) break
      const isFinal = at === waits.length - 1
      const isWide = isFoundBefore || (isFirst ? known.isSpent : allRecordsPolls.has(polls))
      const allRecords = timing.isLast || (isWide && (isFinal || !isFirst))
      const found = await lookUp({ allRecords, isLast: timing.isLast })
      cause = undefined
      if (found !== undefined) return executed(found)
      if (isFoundBefore && isFirst) continue
      if (isFoundBefore) break
      if (timing.isLast) {
        absence = absenceOf(task, effect) ?? { effect_id: effect.id, at_ms: timing.atMs }
        if (timing.atMs - absence.at_ms < secondLookUpMs) break
        return expired(effect, timing.atMs, known.refusal)
      }
      if (timing.isExpired || known.isSpent || sends === sendsMax) continue
      sends += 1
      const { sent, value } = await send()
      if (value !== undefined) return executed(value)
      note(sent)
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
      cause = fault
      // Contradicting records need time to converge.
      if (timing?.isLast) break
    }
  }
  return {
    type: 'unknown',
    effects: [{ effectId: effect.id, status: 'unknown' }],
    ...(cause && { cause }),
    ...(absence && { absence }),
    nextMs: (backoffMs) =>
      absence ? secondLookUpMs + clockMarginMs : nextLookUpMs(effect, timing, backoffMs),
  }
}

const absenceOf = ({ data }: TaskView<ActionTaskData>, { id }: Effect): Absence | undefined =>
  data.absence?.effect_id === id ? data.absence : undefined

const isNonceRefusal = (sent: Extract<SendResult, { type: 'rejected' }>): boolean =>
  /\bnonce\b/i.test(sent.message)

/** The clock is read before the look-up: an action that is absent after its expiry can no longer execute. */
async function timingOf(
  { intent }: Effect,
  { venue, graceMs }: ConfirmDeps,
  { refusal }: Known,
): Promise<Timing> {
  const account = String(intent.account)
  const { expiresAtMs: ends, nonce } = intent
  const at = (atMs: number): Timing => ({
    atMs,
    isExpired: typeof ends === 'number' && atMs > ends,
    // The look-ups of an action that the agent signed end when the read lag after its expiry has passed. An action that
    // the user signed has no expiry: its look-ups end when the venue has rejected it and a grace period has passed.
    isLast:
      typeof ends === 'number'
        ? atMs > ends + readLagMs
        : refusal !== undefined && atMs - Number(nonce) >= graceMs,
  })
  const near = at(await venue.timeMs(account))
  // A cached clock, or one that runs ahead, proves no absence.
  return near.isLast ? at(await venue.passedMs(account)) : near
}

/** Whether every read includes the events up to a time of the venue's clock. */
export async function isShownByNow(
  venue: Pick<Hyperliquid, 'timeMs' | 'passedMs'>,
  account: string,
  atMs: number,
): Promise<boolean> {
  const shownMs = atMs + readLagMs
  return (await venue.timeMs(account)) > shownMs && (await venue.passedMs(account)) > shownMs
}

/** Returns the delay until a negative finding is final, if no earlier look-up can decide anything. */
function nextLookUpMs({ intent }: Effect, timing: Timing | undefined, backoffMs: number): number {
  const ends = intent.expiresAtMs
  if (!timing || timing.isLast || typeof ends !== 'number') return backoffMs
  const lastInMs = ends + readLagMs + clockMarginMs - timing.atMs
  return timing.isExpired ? lastInMs : Math.min(backoffMs, lastInMs)
}

function expired<T>({ id, intent }: Effect, atMs: number, refusal: string | undefined): ActionOutcome<T> {
  const ends = intent.expiresAtMs
  const proof: JsonObject =
    typeof ends === 'number'
      ? { venue_time: atMs, expired_at: ends, found: false }
      : { venue_time: atMs, refusal: refusal ?? '', found: false }
  return {
    type: 'expired',
    message: refusal ?? 'The action expired before the venue executed it',
    effects: [{ effectId: id, status: 'dropped', proof }],
  }
}
