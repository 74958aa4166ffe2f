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
export type RunEnd = {
  status: 'completed' | 'failed' | 'cancelled'
  outcome: Outcome
  skipReason: SkipReason | null
  error: RunError | null
  decision: { action: 'adjust' | 'hold' | 'notify'; reason: string } | null
}

/** The skip reason of a run that did nothing, by the code of the first refusal of an ordered operation. */
const skipReasons: Readonly<Record<string, SkipReason>> = {
  insufficient_balance: 'insufficient_balance',
  market_closed: 'market_closed',
  trading_paused: 'frozen',
  policy_denied: 'policy_denied',
  approval_required: 'policy_denied',
  chat_per_day_usd: 'policy_denied',
  own_position: 'policy_denied',
}
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
  const refusal = chat.refusals.find(({ code }) => skipReasons[code] !== undefined)
  if (!refusal) {
    const held = { action: 'hold', reason: 'Nothing that the query orders was to be done' } as const
    return { ...nothing, status: 'completed', decision: held }
  }
  return {
    ...nothing,
    status: 'cancelled',
    skipReason: skipReasons[refusal.code]!,
    error: { ...refusal, retryable: false },
    decision: { action: 'hold', reason: refusal.message },
  }
}

const isOpen = ({ status }: StartedTask): boolean => status === 'pending' || status === 'running'

function judgeStarted(started: readonly StartedTask[]): RunEnd {
  const reason = `It started ${started.map(({ kind }) => kind).join(', ')}`
  const decision = { action: 'adjust', reason } as const
  const executed = started.filter(({ outcome }) => outcome === 'executed').length
  const common = { skipReason: null, error: null, decision } as const
  if (started.some(isOpen)) return { ...common, status: 'completed', outcome: 'unknown' }
  if (executed === started.length) return { ...common, status: 'completed', outcome: 'executed' }
  if (executed > 0 || started.some(({ outcome }) => outcome === 'partial'))
    return { ...common, status: 'completed', outcome: 'partial' }
  const { code, message } = started[0]?.error ?? {}
  const error = {
    code: String(code ?? 'internal'),
    message: String(message ?? 'What it started did not execute'),
    retryable: false,
  }
  return { ...common, status: 'failed', outcome: 'not_executed', error }
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
