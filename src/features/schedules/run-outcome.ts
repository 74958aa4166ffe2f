import { faults } from '#kernel/contract/fault.ts'
import type { Outcome, TaskStatus } from '#kernel/task/task-state.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { SkipReason } from '#store/tables/strategies.ts'

/** This module decides how a run ended, by its chat and by the tasks that the chat has started. */

export type RunError = { code: string; message: string; retryable: boolean }
/** Why an operation that the query orders was refused, or only recommended. */
export type Refusal = { code: string; message: string }
export type ChatEnd = {
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  answer: string | null
  error: RunError | null
  refusals: readonly Refusal[]
}
export type StartedTask = {
  task_id: string
  kind: string
  status: TaskStatus
  outcome: Outcome | null
  error: JsonObject | null
}
/** What a run decided: a chat in words, a strategy by a code with the hash of what it was decided from. */
export type RunDecision = {
  action: 'enter' | 'exit' | 'adjust' | 'hold' | 'notify'
  reason: string
  /** A strategy says its decision in plain words as well. */
  text?: string
  inputs_sha256?: string
}
export type RunEnd = {
  status: 'completed' | 'failed' | 'cancelled'
  outcome: Outcome
  skipReason: SkipReason | null
  error: RunError | null
  decision: RunDecision | null
}

/** The skip reason of a run that did nothing, by the code with which an ordered operation was refused. */
const skipReasons: Readonly<Record<string, SkipReason>> = {
  insufficient_balance: 'insufficient_balance',
  market_closed: 'market_closed',
  trading_paused: 'frozen',
  policy_denied: 'policy_denied',
  approval_required: 'policy_denied',
  chat_per_day_usd: 'policy_denied',
  own_position: 'policy_denied',
  insufficient_scope: 'access_ended',
}
/**
 * The codes of refusals that leave the run nothing to do: there is no position to reduce, or the user decides on a
 * recommendation.
 */
const idleCodes = ['no_position', 'recommended']
/** The codes of a model, or of the service that asks it, that did not answer. */
const awayCodes = ['unavailable', 'upstream_timeout', 'overloaded']

const expired: RunError = {
  code: 'expired',
  message: 'The chat had no end within the time of a run',
  retryable: false,
}

type Ended = { chat: ChatEnd; started: readonly StartedTask[]; hasOrders: boolean }

export function judgeRun({ chat, started, hasOrders }: Ended): RunEnd {
  if (started.length > 0) return judgeStarted(started)
  const nothing = { outcome: 'not_executed', skipReason: null, error: null, decision: null } as const
  if (chat.status === 'running') return { ...nothing, status: 'failed', error: expired }
  if (chat.status === 'cancelled') return { ...nothing, status: 'cancelled', error: chat.error }
  if (chat.status === 'failed')
    return {
      ...nothing,
      status: 'failed',
      error: chat.error,
      skipReason: awayCodes.includes(chat.error?.code ?? '') ? 'model_unavailable' : null,
    }
  const decision = { action: 'notify', reason: 'It answered' } as const
  if (!hasOrders) return { ...nothing, status: 'completed', outcome: 'executed', decision }
  const refusal = decisiveOf(chat.refusals)
  const reason = refusal?.message ?? 'Nothing that the query orders was to be done'
  const held = { ...nothing, decision: { action: 'hold', reason } } as const
  if (!refusal || idleCodes.includes(refusal.code)) return { ...held, status: 'completed' }
  const skipReason = skipReasons[refusal.code] ?? null
  const retryable = Object.entries(faults).some(([code, row]) => code === refusal.code && row.retryable)
  return {
    ...held,
    status: skipReason === null ? 'failed' : 'cancelled',
    skipReason,
    error: { ...refusal, retryable },
  }
}

/** Returns the refusal that explains a run: one that has a skip reason, else the last one that kept it from acting. */
const decisiveOf = (refusals: readonly Refusal[]): Refusal | undefined =>
  refusals.find(({ code }) => skipReasons[code] !== undefined) ??
  refusals.findLast(({ code }) => !idleCodes.includes(code)) ??
  refusals[0]

type StartedState = Pick<StartedTask, 'status' | 'outcome'>

const isOpen = ({ status }: StartedState): boolean => status === 'pending' || status === 'running'

/** Returns the outcome of all tasks that a run has started; for a run that did not complete it is `partial` at best. */
export function startedOutcome(started: readonly StartedState[], status: RunEnd['status']): Outcome {
  if (started.some(isOpen)) return 'unknown'
  const executed = started.filter(({ outcome }) => outcome === 'executed').length
  if (executed === started.length && status === 'completed') return 'executed'
  const hasActed = executed > 0 || started.some(({ outcome }) => outcome === 'partial')
  return hasActed ? 'partial' : 'not_executed'
}

const decisionOf = (started: readonly StartedTask[]): RunEnd['decision'] => ({
  action: 'adjust',
  reason: `It started ${started.map(({ kind }) => kind).join(', ')}`,
})

/** Returns the end of a run that was ended before its chat, with what it had started by then. */
export const cutShort = (end: RunEnd, started: readonly StartedTask[]): RunEnd =>
  started.length === 0
    ? end
    : { ...end, outcome: startedOutcome(started, end.status), decision: decisionOf(started) }

function judgeStarted(started: readonly StartedTask[]): RunEnd {
  const common = { skipReason: null, error: null, decision: decisionOf(started) } as const
  const outcome = startedOutcome(started, 'completed')
  if (outcome !== 'not_executed') return { ...common, status: 'completed', outcome }
  const { code, message } = started[0]?.error ?? {}
  const error = {
    code: String(code ?? 'internal'),
    message: String(message ?? 'What it started did not execute'),
    retryable: false,
  }
  return { ...common, status: 'failed', outcome, error }
}

/** The trouble that pauses a schedule when it occurs in three runs in a row. */
export type Trouble = 'no_credits' | 'insufficient_balance' | 'failed'
export const troublesMax = 3

type PastEnd = { status: string; skip_reason: string | null }

const troubleOf = ({ status, skip_reason: reason }: PastEnd): Trouble | 'none' | undefined => {
  if (reason === 'no_credits' || reason === 'insufficient_balance') return reason
  if (status === 'failed') return 'failed'
  return status === 'completed' ? 'none' : undefined
}

/**
 * Returns the trouble of the newest runs, if enough of them in a row have the same. Runs that were skipped for
 * another reason, such as a kill switch or a closed market, are passed over.
 */
export function troubleInARow(newestFirst: readonly PastEnd[]): Trouble | undefined {
  const troubles = newestFirst.map(troubleOf).filter((each) => each !== undefined)
  const [first] = troubles
  if (first === undefined || first === 'none') return undefined
  const row = troubles.slice(0, troublesMax)
  return row.length === troublesMax && row.every((each) => each === first) ? first : undefined
}
