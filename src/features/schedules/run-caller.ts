import { currentCaller } from '#engines/stored-callers/stored-caller.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toMicros } from '#kernel/money/money.ts'
import type { Queryable } from '#store/query.ts'
import { skippedEnd } from './record-run-end.ts'
import type { Pause } from './run-events.ts'
import type { RunEnd } from './run-outcome.ts'
import * as store from './run-task-store.ts'
import { approvedBefore } from './standing-approval.ts'

/** In whose name a run acts, and how a run ends that may not begin or whose access has ended. */

export type RunCallerDeps = {
  db: Queryable
  /** The clock of schedules, which the local world can advance. */
  clock: Clock
  isPaused: (userId: string) => Promise<boolean>
  /**
   * Returns whether money is on hold until an operator releases it. Throws during a hold that ends by itself, so that
   * the run waits.
   */
  isOnHold: () => boolean
}
export type Ended = { end: RunEnd; pause?: Pause }

/** Returns the caller in whose name a run acts, or the end of a run that may not begin. */
export async function callerUnlessStopped(
  deps: RunCallerDeps,
  run: store.Run,
  { now }: { now: Date },
): Promise<Caller | Ended> {
  const { db, clock } = deps
  if (!store.isRunnable(run.strategy_status, run)) return stopped
  if (deps.isOnHold())
    return skipped('frozen', 'unavailable', 'Money is on hold until the operator lets it go on')
  if (await store.hasOlderRun(db, run)) return skipped('overlap', 'conflict', 'An earlier run has not ended')
  const caller = await callerOf(deps, run, now).catch(endOfAccess(run))
  if ('end' in caller) return caller
  if (await deps.isPaused(run.user_id)) return skipped('frozen', 'trading_paused', 'A kill switch is set')
  // The cooldown of a strategy forbids an entry, and its runs may have to close what is open.
  const cooldownMs = run.type === 'prompt' ? (run.guards?.cooldown_seconds ?? 0) * 1_000 : 0
  const acted = cooldownMs > 0 ? await store.lastActed(db, run.strategy_id) : undefined
  if (acted && later(acted, cooldownMs) > clock.now())
    return skipped('cooldown', 'conflict', 'The last run that acted ended a short time ago')
  return caller
}

export const skipped = (...given: Parameters<typeof skippedEnd>): Ended => ({ end: skippedEnd(...given) })

/** The end of a run whose schedule was paused or disabled after the slot, so that no chat begins. */
export const stopped: Ended = {
  end: {
    status: 'cancelled',
    outcome: 'not_executed',
    skipReason: null,
    error: {
      code: 'cancelled_by_user',
      message: 'The schedule was stopped before the run began',
      retryable: false,
    },
    decision: null,
  },
}

/** Returns the caller who has activated the schedule or started the run, with the access that this caller still has. */
export async function callerOf(
  { db }: Pick<RunCallerDeps, 'db'>,
  run: store.Run,
  now: Date,
): Promise<Caller> {
  const { authority } = run
  if (!authority) throw new Fault('invalid_token', 'Nobody has activated this version of the schedule')
  const { personId, linkedAt } = authority
  const approved = approvedBefore({ ...run, id: run.strategy_id }, { access: authority, now })
  const via = {
    schedule: run.strategy_id,
    run: run.id,
    approvedMicros: approved.approvedMicros ?? null,
    ...(run.mode === 'live' && run.budget_usd !== null && { budgetMicros: String(toMicros(run.budget_usd)) }),
    ...(personId !== undefined && { personId }),
    ...(linkedAt !== undefined && { linkedAt }),
  }
  return currentCaller(db, run.user_id, { ...authority, run: via }, now)
}

const accessCodes: readonly string[] = ['invalid_token', 'suspended', 'insufficient_scope']

export const endOfAccess =
  (run: store.Run) =>
  (error: unknown): Ended => {
    if (!(error instanceof Fault) || !accessCodes.includes(error.code)) throw error
    return withPause(run, skippedEnd('access_ended', error.code, error.message))
  }

/** Adds to the end of a run the pause of its schedule, if the run was skipped because its access had ended. */
export function withPause({ execution_type: type }: store.Run, end: RunEnd): Ended {
  const text = `${end.error?.message}; activate it again to let it act for you`
  // A manual run has an access of its own; the end of that access says nothing about the access of the schedule.
  const isPaused = end.skipReason === 'access_ended' && type !== 'manual'
  return { end, ...(isPaused && { pause: { reason: 'access_ended', text } }) }
}

/**
 * Returns the caller of an exit. It closes what the strategy itself has opened and does nothing else, so it needs no
 * access that still lasts: what an ended access has opened is closed as well.
 */
export async function exitCaller({ strategy_id, id, user_id, authority }: store.Run): Promise<Caller> {
  if (!authority) throw new Fault('invalid_token', 'Nobody has activated this version of the schedule')
  const { agentId, scheme } = authority
  const run = { schedule: strategy_id, run: id, approvedMicros: null, reducesOwn: true } as const
  return { userId: user_id, agentId, scheme, scopes: new Set(['read', 'trade']), via: run }
}
