import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { Effect, EffectUpdate, StepResultOf, TaskProgress, TaskView } from '#kernel/task/task.ts'

/** The effect of a signed action, its outcome, and the retry of a rate-limited one. */

export const effectKind = 'hyperliquid_action'

/** Task data of every task that signs actions. */
export type ActionTaskData = {
  /** Look-ups of the present action. */
  polls?: number
  /** Signatures that the venue's request limit rejected, by action key. */
  throttled?: Record<string, number>
  /** The first look-up, by the venue's clock, that found no record of an action that can no longer execute. */
  absence?: Absence
  progress?: TaskProgress
  /** The key of an action that an earlier task of the same execution id has sent. */
  looked_before?: string
  /** An action that may have been sent before: it is not sent, until an operator ends the task. */
  unclear_before?: string
  note?: string | null
}

export type Absence = { effect_id: string; at_ms: number }

export type ActionOutcome<T> =
  | { type: 'executed'; value: T; effects: EffectUpdate[] }
  /** The venue rejected the action. */
  | { type: 'rejected'; message: string; effects: EffectUpdate[] }
  /** The action did not reach the venue and can no longer execute. */
  | { type: 'expired'; message: string; effects: EffectUpdate[] }
  | ({ type: 'unknown' } & UnknownOutcome)

export type NotExecutedOutcome = Extract<ActionOutcome<never>, { type: 'rejected' | 'expired' }>

export type UnknownOutcome = {
  effects: EffectUpdate[]
  cause?: Fault
  absence?: Absence
  /** Delay until the next useful look-up, given the backoff. */
  nextMs?: (backoffMs: number) => number
}

export type ThrottleRetry<Name extends string> = { actionKey: string; next: Name; now: Date }
export type ThrottledResult<Name extends string> = StepResultOf<
  Required<Pick<ActionTaskData, 'throttled' | 'progress'>>,
  Name
>

/** A client order id of 16 bytes, unique per execution and action. */
export const cloidOf = (executionId: string, actionKey: string): string =>
  `0x${sha256(`${executionId}:${actionKey}`).slice(0, 32)}`

/** Suffix of the exits that replace missing ones. */
export const repairSuffix = '2'
/** Orders that close what the exits did not. */
export const closesMax = 3
/** The action keys of the orders that one task may place. */
export const orderKeys: readonly string[] = [
  'entry',
  ...['', repairSuffix].flatMap((suffix) => [`tp${suffix}`, `sl${suffix}`]),
  ...Array.from({ length: closesMax }, (_, at) => `close${at + 1}`),
]

/** An address above its request limit may still send one request per this time. */
const throttledRetryMs = 10_000
const isThrottled = (message: string): boolean => message.startsWith('Too many cumulative requests')
const retriesOf = ({ data }: TaskView<ActionTaskData>, actionKey: string): number =>
  data.throttled?.[actionKey] ?? 0

/** Each retry is an effect of its own; the client order ids do not change. */
export function effectIdOf(task: TaskView<ActionTaskData>, actionKey: string): string {
  const retries = retriesOf(task, actionKey)
  return cloidOf(task.executionId, retries === 0 ? actionKey : `${actionKey}:retry${retries}`)
}

export function effectOf(task: TaskView<ActionTaskData>, actionKey: string): Effect {
  const externalId = effectIdOf(task, actionKey)
  const effect = task.effects.find((each) => each.kind === effectKind && each.externalId === externalId)
  if (!effect) throw new Error(`task ${task.id} has no stored effect for the action ${actionKey}`)
  return effect
}

/** See `SignedActions`. */
export function retryThrottled<T, Name extends string>(
  task: TaskView<ActionTaskData>,
  actionOutcome: ActionOutcome<T>,
  { actionKey, next, now }: ThrottleRetry<Name>,
): ThrottledResult<Name> | undefined {
  if (actionOutcome.type !== 'rejected' || !isThrottled(actionOutcome.message)) return undefined
  if (effectOf(task, actionKey).intent.exit !== true) return undefined
  if (later(now, throttledRetryMs) > task.deadline) return undefined
  const text = 'The venue limits the requests of the account: retrying in 10 seconds'
  const progress = { step: 1, of: 1, text }
  return {
    park: { afterMs: throttledRetryMs, next },
    state: 'waiting',
    effects: actionOutcome.effects,
    data: {
      throttled: { ...task.data.throttled, [actionKey]: retriesOf(task, actionKey) + 1 },
      progress,
    },
  }
}
