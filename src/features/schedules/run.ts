import type { Files } from '#engines/files/files.ts'
import type { StrategyRunner } from '#features/strategies/run-port.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import {
  type Admission,
  defineTaskKind,
  type EndResult,
  type NewEvent,
  type StepContext,
  type StepEnd,
  type StepResult,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { type RecordDeps, type RunRecord, recordEnd, skippedEnd } from './record-run-end.ts'
import {
  callerOf,
  callerUnlessStopped,
  type Ended,
  endOfAccess,
  exitCaller,
  type RunCallerDeps,
  skipped,
  stopped,
  withPause,
} from './run-caller.ts'
import { scheduleOf, startedEvents } from './run-events.ts'
import { cutShort, judgeRun, type RunEnd } from './run-outcome.ts'
import { reportText, summaryOf } from './run-report.ts'
import * as store from './run-task-store.ts'
import { createStrategySteps, type StrategyRunData, type StrategyStepDeps } from './strategy-run.ts'

/**
 * A run of a slot: it checks that the slot may run, and then decides and acts. A run of a prompt starts a chat for that,
 * waits for the chat and for what the chat has started, and reports. The commit of the check accepts the chat, which
 * draws its credits, so that a run has one chat or none. A run of any other type asks no chat and costs no credits.
 */

export type AdmittedChat = { chatId: string; threadId: string; admission: Admission }
export type RunDeps = RecordDeps &
  RunCallerDeps & {
    files: Pick<Files, 'put'>
    admitChat: (
      input: { query: string; agent: string; thread_id?: string },
      caller: Caller,
    ) => Promise<AdmittedChat>
    /** Accepts the chat of a run, or throws `insufficient_credits`. */
    enqueueChat: (tx: Tx, run: store.Run, chat: AdmittedChat) => Promise<unknown>
    announceQueued: () => void
    /** Computes in advance the slot that comes after the next slot. */
    computeFollowing: (strategyId: string) => Promise<void>
    /** How runs of strategies decide and act; undefined where no venue is configured. */
    runner: StrategyRunner | undefined
  }
type RunData = StrategyRunData & {
  chat_id: string
  /** Why the chat was not accepted. */
  refusal?: { code: string; message: string }
  /** The schedule was stopped while the run was checked. */
  is_stopped?: true
}
type RunTask = TaskView<RunData>

export const runKindName = 'schedule_run'
/**
 * The chat and the tasks that it starts wake the run when they end; this poll finds an end whose notification was lost.
 */
const pollMs = 5_000
/** The last check of the chat is this long before the task's deadline, which would end the run without a check. */
const lastLookMs = 2_000

export const createRunKind = (deps: RunDeps): TaskKind =>
  defineTaskKind<RunData, Names>({
    kind: runKindName,
    version: 1,
    priority: 4,
    // A run that asks no chat trades at its slot, so it does not wait behind runs that ask one.
    priorityOf: ({ priority }) => (priority === 0 || priority === 1 ? priority : 4),
    isResumable: true,
    steps: {
      check: (task, context) => check(deps, task, context),
      settle: (task, context) => settle(deps, task, context),
      report: (task) => report(deps, task),
      ...createStrategySteps(strategyStepDeps(deps)),
    },
    completeEnd: (task, end) => completeEnd(deps, task as RunTask, end),
  })

type Names = 'check' | 'settle' | 'report' | 'decide' | 'act'

async function check(
  deps: RunDeps,
  task: RunTask,
  context: StepContext,
): Promise<StepResult<RunData, Names>> {
  const run = await store.findRun(deps.db, task.id)
  if (run.type !== 'prompt') return checkStrategy(deps, run, context)
  const chat = await admitUnlessStopped(deps, run, context)
  if ('end' in chat) return endOf(deps, { run, ...nothing, ...chat })
  const { chatId, threadId } = chat
  const at = deps.clock.now()
  const shown = { ...run, status: 'running', outcome: null, skip_reason: null, skipped_slots: 0 } as const
  return {
    next: 'settle',
    state: 'waiting',
    data: { chat_id: chatId },
    async complete(tx) {
      // A pause or end of the schedule that was committed before this transaction keeps the chat from being accepted.
      if (!(await store.mayBegin(tx, run))) return { data: { is_stopped: true } }
      const refusal = await deps.enqueueChat(tx, run, chat).then(() => undefined, refusalOf)
      if (refusal) return { data: { refusal } }
      await store.storeBegin(tx, { run, chatId, threadId, at })
      return { events: startedEvents(scheduleOf(run), { ...shown, chat_id: chatId }) }
    },
  }
}

/** Missing credits are the only reason for which an admitted chat is refused at its acceptance. */
function refusalOf(error: unknown) {
  if (!(error instanceof Fault) || error.code !== 'insufficient_credits') throw error
  return { code: error.code, message: error.message }
}

/** Begins a run that asks no chat. An exit waits for a run that is under way; other runs are skipped then. */
async function checkStrategy(
  deps: RunDeps,
  run: store.Run,
  context: StepContext,
): Promise<StepResult<RunData, Names>> {
  const isExit = run.execution_type === 'exit'
  if (isExit && (await store.hasOlderRun(deps.db, run)))
    return { park: { afterMs: exitWaitMs, next: 'check' }, state: 'waiting' }
  const caller = isExit ? undefined : await callerUnlessStopped(deps, run, context)
  if (caller && 'end' in caller) return endOf(deps, { run, ...nothing, ...caller })
  const at = deps.clock.now()
  const shown = { ...run, status: 'running', outcome: null, skip_reason: null, skipped_slots: 0 } as const
  return {
    next: 'decide',
    async complete(tx) {
      if (!isExit && !(await store.mayBegin(tx, run))) return { data: { is_stopped: true } }
      await store.storeBegin(tx, { run, chatId: null, threadId: null, at })
      return { events: startedEvents(scheduleOf(run), shown) }
    },
  }
}

/** An exit that finds a run under way looks again after this time. */
const exitWaitMs = 1_000

/** Returns the admitted chat, or the end of a run that may not have one. */
async function admitUnlessStopped(
  deps: RunDeps,
  run: store.Run,
  context: StepContext,
): Promise<AdmittedChat | Ended> {
  const caller = await callerUnlessStopped(deps, run, context)
  if ('end' in caller) return caller
  return admitChat(deps, run, caller).catch((error: unknown) => {
    if (!(error instanceof Fault)) throw error
    const { code, message, retryable } = error
    if (code === 'insufficient_scope') return endOfAccess(run)(error)
    // The admission reads the daily credits that a person allows an app, and refuses if too few are left.
    if (code === 'insufficient_credits') return skipped('no_credits', code, message)
    if (retryable) throw error
    return { end: { ...stopped.end, status: 'failed', error: { code, message, retryable } } }
  })
}

/** Admits the chat of a run; once the thread is full, the runs go on in a new thread. */
async function admitChat(deps: RunDeps, run: store.Run, caller: Caller): Promise<AdmittedChat> {
  if (!caller.scopes.has('chat'))
    throw new Fault('insufficient_scope', 'The schedule may not chat any more', { extras: { scope: 'chat' } })
  const { query, agent, thread_id: threadId } = run
  const input = { query, agent }
  if (threadId === null) return deps.admitChat(input, caller)
  return deps.admitChat({ ...input, thread_id: threadId }, caller).catch((error: unknown) => {
    if (error instanceof Fault && (error.code === 'conflict' || error.code === 'not_found'))
      return deps.admitChat(input, caller)
    throw error
  })
}

async function settle(
  deps: RunDeps,
  task: RunTask,
  { now }: StepContext,
): Promise<StepResult<RunData, Names>> {
  const { refusal, is_stopped: isStopped } = task.data
  const run = await store.findRun(deps.db, task.id)
  if (isStopped) return endOf(deps, { run, ...nothing, ...stopped })
  if (refusal)
    return endOf(deps, { run, ...nothing, ...skipped('no_credits', refusal.code, refusal.message) })
  const ended = await callerOf(deps, run, now).catch(endOfAccess(run))
  if ('end' in ended) return endOf(deps, { ...ended, ...(await endedEarly(deps.db, run, ended.end)) })
  if (!run.has_following) await deps.computeFollowing(run.strategy_id)
  const leftMs = task.deadline.getTime() - lastLookMs - now.getTime()
  if (leftMs <= 0 || !(await store.hasOpenTasks(deps.db, task.id)))
    return { next: 'report', state: 'waiting' }
  // The commit of the check has queued the chat's task.
  deps.announceQueued()
  return { park: { afterMs: Math.min(pollMs, leftMs), next: 'settle' }, state: 'waiting' }
}

async function report(deps: RunDeps, task: RunTask): Promise<EndResult> {
  const { db, clock, files } = deps
  const { chat_id: chatId } = task.data
  const run = await store.findRun(db, task.id)
  const ordered = run.compiled?.operations ?? []
  const [chat, started] = await Promise.all([
    store.findChat(db, chatId, ordered),
    store.startedTasks(db, task.id, chatId),
  ])
  const { answer, creditsUsed } = chat
  const ended = {
    started,
    answer,
    creditsUsed,
    hasBegun: true,
    ...withPause(run, judgeRun({ chat, started, hasOrders: ordered.length > 0 })),
  }
  const text = reportText({ ...run, ...ended, startedAt: run.started_at, endedAt: clock.now() })
  const { id, size } = await files.put(task.userId, 'report.md', reportType, Buffer.from(text))
  return endOf(deps, { run, chatId, ...ended, files: [{ id, name: 'report.md', size }] })
}

const reportType = 'text/markdown; charset=utf-8'

type Ending = Omit<RunRecord, 'at'>
/** The results of a run that began no chat. */
const nothing = { started: [], answer: null, creditsUsed: 0, chatId: null, hasBegun: false }

/** Returns the end of a run that ends before its chat, with what the chat has said and started by then. */
async function endedEarly(db: Queryable, run: store.Run, end: RunEnd): Promise<Ending> {
  const { chat_id: chatId } = run
  const started = await store.startedTasks(db, run.id, chatId)
  const said = await store.chatSoFar(db, chatId)
  return { run, started, chatId, hasBegun: run.started_at !== null, ...said, end: cutShort(end, started) }
}

/** Returns the end of the task, whose commit stores the record of the run, and with `store` what the run adds to it. */
const endOf = (deps: RunDeps, ending: Ending, store?: (tx: Tx) => Promise<NewEvent[]>): EndResult => ({
  ...taskEnd(ending),
  async complete(tx) {
    const events = (await store?.(tx)) ?? []
    return { events: [...events, ...(await recordEnd(deps, tx, { ...ending, at: deps.clock.now() }))] }
  },
})

/** The ends and the access of runs, as the steps of strategies need them. */
const strategyStepDeps = (deps: RunDeps): StrategyStepDeps => ({
  runner: deps.runner ?? withoutVenue,
  findRun: (id) => store.findRun(deps.db, id),
  callerOf: (run, { now }) => (run.execution_type === 'exit' ? exitCaller(run) : callerOf(deps, run, now)),
  endOfStopped: (run) => endOf(deps, { run, ...nothing, ...stopped }),
  endOfAccess: (run, error) => endOf(deps, { run, ...nothing, ...endOfAccess(run)(error) }),
  endOfSkip: (run, { reason, code, message }) =>
    endOf(deps, { run, ...nothing, ...skipped(reason, code, message) }),
  async endOf(run, { end, decision, realizedPnlUsd, files = [], store: storeActed }) {
    if (!run.has_following) await deps.computeFollowing(run.strategy_id)
    const started = await store.startedTasks(deps.db, run.id, null)
    const { error, outcome, skipReason } = end
    const status = skipReason !== null ? 'cancelled' : error ? 'failed' : 'completed'
    const runEnd: RunEnd = { status, outcome, skipReason, error, decision }
    return endOf(
      deps,
      { ...nothing, run, started, hasBegun: true, end: runEnd, realizedPnlUsd, files },
      storeActed,
    )
  },
})

/** Without a venue no strategy can be created; one from a time with a venue waits for it. */
const withoutVenue: StrategyRunner = {
  decide: () => Promise.reject(new Fault('unavailable', 'This instance has no venue to trade at')),
  act: () => Promise.reject(new Fault('unavailable', 'This instance has no venue to trade at')),
}

function taskEnd({ run, end, answer }: Ending): StepEnd {
  const { status, outcome, error, skipReason } = end
  const result = { execution_id: run.id, summary: summaryOf({ answer, end }) }
  const isPartial = outcome === 'partial' || outcome === 'unknown'
  if (status === 'completed') return { end: status, outcome: isPartial ? 'partial' : 'executed', result }
  return {
    end: status,
    outcome: isPartial ? 'partial' : 'not_executed',
    error: { ...(error ?? unknownError), ...(skipReason && { details: { skip_reason: skipReason } }) },
    result,
  }
}

const unknownError = { code: 'internal', message: 'The run has no end of its own' }

/** Completes the end of a task that was cancelled, was over its deadline, or failed too often. */
const completeEnd = (deps: RunDeps, task: RunTask, end: EndResult): EndResult => ({
  ...end,
  async complete(tx) {
    const run = await store.findRun(tx, task.id)
    const error = 'error' in end ? { retryable: false, ...end.error } : null
    // The task was cancelled because the access of the run ended.
    const isRevoked = end.end === 'cancelled' && run.authority?.endedAt !== undefined
    const runEnd: RunEnd = isRevoked
      ? skippedEnd('access_ended', 'invalid_token', 'The access behind this was revoked')
      : { ...stopped.end, status: end.end, error }
    const ended = await endedEarly(tx, run, runEnd)
    return { events: await recordEnd(deps, tx, { ...ended, at: deps.clock.now() }) }
  },
})
