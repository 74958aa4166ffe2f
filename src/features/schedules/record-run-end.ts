import type { ActScope } from '#kernel/contract/caller.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { SkipReason } from '#store/tables/strategies.ts'
import {
  finishedEvents,
  type Pause,
  pausedEvent,
  scheduleOf,
  skippedEvents,
  statusReason,
} from './run-events.ts'
import { type RunEnd, type StartedTask, type Trouble, troubleInARow, troublesMax } from './run-outcome.ts'
import { summaryOf } from './run-report.ts'
import * as store from './run-task-store.ts'
import { releaseAssets } from './strategy-assets.ts'

/** This module stores the end of a run, in the transaction that ends its task. */

export type StopStrategy = (
  tx: Tx,
  strategyId: string,
  stop: { status: 'paused'; reason: string },
) => Promise<boolean>
export type CancelTasks = (
  userId: string,
  taskIds: readonly string[],
  act: Pick<ActScope, 'tx'>,
) => Promise<string[]>
/** `disarm` returns whether it has stopped the schedule. */
export type RecordDeps = { disarm: StopStrategy; cancelNotSent: CancelTasks }

export type RunRecord = {
  run: store.Run
  end: RunEnd
  started: readonly StartedTask[]
  answer: string | null
  creditsUsed: number
  chatId: string | null
  /** Whether the run began what its schedule asks: its chat, or a decision. */
  hasBegun: boolean
  realizedPnlUsd?: string | null
  /** The files that the run has made. */
  files?: readonly store.MadeFile[]
  /**
   * The reason to pause the schedule right after this run. Without it, the schedule is paused only by trouble that
   * repeats in several runs.
   */
  pause?: Pause
  at: Date
}
const troubleTexts: Readonly<Record<Trouble, string>> = {
  no_credits:
    'there were no credits for it: buy a pack by `credits_recharge` or a plan by `subscriptions_checkout`, then activate it again',
  insufficient_balance: 'the balance did not cover it: fund the account, then activate it again',
  failed: 'it failed: `schedules_executions` says why',
}

/** Stores the end of a run and returns its events; rows are locked in the order of all other transactions. */
export async function recordEnd(deps: RecordDeps, tx: Tx, record: RunRecord): Promise<NewEvent[]> {
  const { run, end, started, answer, creditsUsed, chatId, at } = record
  // The chat is cancelled if it is still open, because nobody waits for its answer any more. Tasks that the chat has
  // started go on.
  if (chatId !== null) await deps.cancelNotSent(run.user_id, [chatId], { tx })
  const locked = await store.lockSchedule(tx, run)
  const ended = {
    status: end.status,
    outcome: end.outcome,
    skip_reason: end.skipReason,
    error: end.error,
    decision: end.decision,
    summary: summaryOf({ answer, end }),
    answer,
    credits_used: creditsUsed,
    realized_pnl_usd: record.realizedPnlUsd ?? null,
  }
  await store.storeEnd(tx, run.id, ended, at)
  if (run.budget_usd !== null) await store.settleSpend(tx, run, at)
  if (chatId !== null) await store.copyChatEvents(tx, run.id, chatId, at)
  await store.storeFiles(tx, { run, chatId, files: record.files ?? [], at })
  await store.addEvents(tx, run.id, [...started.map(tradeEvent), lastEvent(end)], at)
  const schedule = scheduleOf(run)
  const shown = { ...run, ...ended, chat_id: chatId, skipped_slots: 0 }
  const past = await store.pastRuns(tx, run, locked)
  const previous = past.find(({ number }) => number < run.number)
  const isSkip = isSkipped(record)
  // A run without a slot counts neither as a run of a slot nor as a slot that did not run.
  if (hasSlot(run)) await store.countEnd(tx, run, { hasRun: record.hasBegun && !isSkip, at })
  const events = isSkip
    ? skippedEvents(schedule, shown, { previousReason: previous?.skip_reason ?? null })
    : finishedEvents(schedule, shown)
  const pause = record.pause ?? pauseAfter(run, past)
  const isPaused = pause && isOfActivation(run, locked) && (await pauseSchedule(deps, tx, run, pause))
  if (run.mode === 'live' && run.type !== 'prompt') await releaseAssets(tx, [run.strategy_id])
  return isPaused ? [...events, pausedEvent(schedule, pause)] : events
}

const pauseSchedule = ({ disarm }: RecordDeps, tx: Tx, { strategy_id: id }: store.Run, pause: Pause) =>
  disarm(tx, id, { status: 'paused', reason: statusReason(pause) })

/** A user starts a manual run, and an exit follows a guard, the end of a day, or a disable: neither has a slot. */
const hasSlot = ({ execution_type: type }: Pick<store.Run, 'execution_type'>): boolean =>
  type !== 'manual' && type !== 'exit'

/** A run that has started something is no skipped one, whatever ended it. */
const isSkipped = ({ end: { status, skipReason }, started }: RunRecord): boolean =>
  status === 'cancelled' && skipReason !== null && started.length === 0

/**
 * Whether the schedule is still active by the same activation as the run: trouble of a run must not pause a later
 * activation.
 */
const isOfActivation = (run: store.Run, { status, version, activated_at: at }: store.LockedSchedule) =>
  status === 'active' && version === run.version && at?.getTime() === run.activated_at?.getTime()

function pauseAfter(run: store.Run, past: readonly store.PastRun[]): Pause | undefined {
  // The trouble of a run that has no slot pauses no schedule.
  if (!hasSlot(run)) return undefined
  const trouble = troubleInARow(past)
  return (
    trouble && {
      reason: trouble === 'failed' ? 'failures' : trouble,
      text: `${troublesMax} times in a row ${troubleTexts[trouble]}`,
    }
  )
}

const tradeEvent = ({ task_id, kind, status, outcome }: StartedTask): store.RunEvent => ({
  type: 'trade',
  data: { task_id, kind, status, outcome },
})

function lastEvent({ status, outcome, skipReason, error, decision }: RunEnd): store.RunEvent {
  if (status === 'failed' && error) return { type: 'error', data: { ...error } }
  return {
    type: 'done',
    data: { status, outcome, skip_reason: skipReason, decision: decision as JsonObject | null },
  }
}

/** The end of a run that has done nothing. */
export const skippedEnd = (skipReason: SkipReason, code: string, message: string): RunEnd => ({
  status: 'cancelled',
  outcome: 'not_executed',
  skipReason,
  error: { code, message, retryable: false },
  decision: null,
})
