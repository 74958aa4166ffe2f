import type { InnerCalls } from '#invoke/inner-calls.ts'
import type { Caller, ScheduleRun } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { internalKey } from '#kernel/task/idempotency-key.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import type { SkipReason } from '#store/tables/strategies.ts'

/**
 * Starts the operations that carry out decisions. The key of each call follows from the run, the decision and the order, so
 * that a repeated step finds the task of its first call, and never starts another one.
 */

export type Refusal = {
  code: string
  message: string
  rule?: string
  /** The kind of mistake in a field of the call, such as `below_minimum`; absent for other refusals. */
  issue?: string
}
export type Started = { taskId: string } | { refusal: Refusal } | { isBusy: true }
export type LiveCallDeps = { calls: () => InnerCalls; operations: () => readonly Operation[] }
export type LiveCall = {
  operation: 'perp_open' | 'perp_close' | 'perp_cancel' | 'perp_tp_sl'
  input: JsonObject
  caller: Caller
  /** The name of the call's key; it begins with the id of the run. */
  name: string
  /** When the run began: nothing was called under its keys before. */
  madeAt: Date | null
}

const callMs = 60_000
/** Codes after which the same call may succeed a moment later. */
const busyCodes: readonly string[] = [
  'unavailable',
  'overloaded',
  'rate_limited',
  'upstream_timeout',
  'internal',
]

export const keyOf = (name: string): string => internalKey('sched', name)

export async function startCall(
  { calls, operations }: LiveCallDeps,
  { operation: name, input, caller, name: keyName, madeAt }: LiveCall,
): Promise<Started> {
  const operation = operations().find((each) => each.name === name)
  if (!operation) throw new Error(`${name} is not served`)
  try {
    const answer = await calls().call({
      operation,
      input,
      caller,
      key: keyOf(keyName),
      ...(madeAt && { keyMadeAt: madeAt }),
      signal: AbortSignal.timeout(callMs),
    })
    const taskId = isRecord(answer) ? answer.task_id : undefined
    if (typeof taskId !== 'string') throw new Error(`${name} answered without a task`)
    return { taskId }
  } catch (error) {
    return refusalOf(error)
  }
}

function refusalOf(error: unknown): Started {
  if (!(error instanceof Fault)) throw error
  const { code, message, extras } = error
  // The step runs again, and finds the task under the same key if it was accepted.
  if (extras.outcome === 'unknown')
    throw new Error('it is not known whether the order was accepted', { cause: error })
  if (busyCodes.includes(code)) return { isBusy: true }
  const [issue] = error.issues
  return {
    refusal: {
      code,
      message,
      ...(typeof extras.rule === 'string' && { rule: extras.rule }),
      ...(issue && { issue: issue.type }),
    },
  }
}

const skipReasons: Readonly<Record<string, SkipReason>> = {
  insufficient_balance: 'insufficient_balance',
  market_closed: 'market_closed',
  trading_paused: 'frozen',
  approval_required: 'approval_expired',
  insufficient_scope: 'access_ended',
  policy_denied: 'policy_denied',
}
const skipReasonsOfRules: Readonly<Record<string, SkipReason>> = {
  budget_usd: 'budget',
  foreign_position: 'foreign_position',
}

export const skipReasonOf = ({ code, rule }: Refusal): SkipReason | null =>
  (rule !== undefined && skipReasonsOfRules[rule]) || (skipReasons[code] ?? null)

/** The caller of an order that reduces: it closes what the strategy itself has opened, and does nothing else. */
export function reducingCaller(caller: Caller): Caller {
  const { via } = caller
  if (typeof via !== 'object') throw new Error('an order of a strategy has the run that asks for it')
  return { ...caller, via: { ...via, reducesOwn: true } }
}

type OwnCaller = { userId: string; agentId: string; scheme: string; strategyId: string; executionId: string }

/** The caller of reducing orders between two runs. They work after the user's access has ended, as exits do. */
export function callerBetweenRuns({ userId, agentId, scheme, strategyId, executionId }: OwnCaller): Caller {
  const run: ScheduleRun = {
    schedule: strategyId,
    run: executionId,
    approvedMicros: null,
    reducesOwn: true,
  }
  return { userId, agentId, scheme: scheme as Caller['scheme'], scopes: new Set(['read', 'trade']), via: run }
}
