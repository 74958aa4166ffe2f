import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { Effect, EffectUpdate, StepResultOf, TaskProgress, TaskView } from '#kernel/task/task.ts'

export const effectKind = 'hyperliquid_action'

export type ActionTaskData = {
  polls?: number
  /** How many signatures of an action the venue's request limit rejected, by action key. */
  throttled?: Record<string, number>
  /** The first look-up, by the venue's clock, that found no record of an action that can no longer execute. */
  absence?: Absence
  progress?: TaskProgress
  /** The key of an action that an earlier task of this task's execution id has sent. */
  looked_before?: string
  /** Why an action may have been sent before; it is not sent again until an operator ends the task. */
  unclear_before?: string
  /**
   * Set if this task has certainly not sent the action. The action is then not sent, and an operator has to end the
   * task.
   */
  held_back?: true
  note?: string | null
}

export type Absence = { effect_id: string; at_ms: number }

export type ActionOutcome<T> =
  | { type: 'executed'; value: T; effects: EffectUpdate[] }
  | { type: 'rejected'; message: string; effects: EffectUpdate[] }
  /** The action never reached the venue, and can no longer execute. */
  | { type: 'expired'; message: string; effects: EffectUpdate[] }
  | ({ type: 'unknown' } & UnknownOutcome)

export type NotExecutedOutcome = Extract<ActionOutcome<never>, { type: 'rejected' | 'expired' }>

export type UnknownOutcome = {
  effects: EffectUpdate[]
  cause?: Fault
  absence?: Absence
  /** Returns the delay until the next look-up that can decide anything, given the usual backoff. */
  nextMs?: (backoffMs: number) => number
}

export type ThrottleRetry<Name extends string> = { actionKey: string; next: Name; now: Date }
export type ThrottledResult<Name extends string> = StepResultOf<
  Required<Pick<ActionTaskData, 'throttled' | 'progress'>>,
  Name
>

/** Returns a client order id of 16 bytes, unique per execution and action. */
export const deriveCloid = (executionId: string, actionKey: string): string =>
  `0x${sha256(`${executionId}:${actionKey}`).slice(0, 32)}`

/** The suffix in the action keys of exits that replace missing exits. */
export const repairSuffix = '2'
/** The most orders that close the part of a position that its exits did not close. */
export const closesMax = 3
/** The action keys of the orders that one task may place. */
export const orderKeys: readonly string[] = [
  'entry',
  ...['', repairSuffix].flatMap((suffix) => [`tp${suffix}`, `sl${suffix}`]),
  ...Array.from({ length: closesMax }, (_, at) => `close${at + 1}`),
]

/** An address above the venue's request limit may still send one request in each period of this length. */
const throttledRetryMs = 10_000
const isThrottled = (message: string): boolean => message.startsWith('Too many cumulative requests')
const retriesOf = ({ data }: TaskView<ActionTaskData>, actionKey: string): number =>
  data.throttled?.[actionKey] ?? 0

/** Returns the id of an action's effect. Each retry is its own effect; the client order ids do not change. */
export function effectIdOf(task: TaskView<ActionTaskData>, actionKey: string): string {
  const retries = retriesOf(task, actionKey)
  return deriveCloid(task.executionId, retries === 0 ? actionKey : `${actionKey}:retry${retries}`)
}

export function effectOf(task: TaskView<ActionTaskData>, actionKey: string): Effect {
  const externalId = effectIdOf(task, actionKey)
  const effect = task.effects.find((each) => each.kind === effectKind && each.externalId === externalId)
  if (!effect) throw new Error(`task ${task.id} has no stored effect for the action ${actionKey}`)
  return effect
}

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
