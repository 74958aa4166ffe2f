import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { Effect, EffectUpdate, StepResult, TaskView } from '#kernel/task.ts'

/** The effect that belongs to a leg of a task, what became of it, and when it is signed again. */

export const effectKind = 'hyperliquid_action'

export type ActionOutcome<T> =
  | { type: 'done'; value: T; effects: EffectUpdate[] }
  /** Nothing of it was done, by the venue's own word. */
  | { type: 'refused'; message: string; effects: EffectUpdate[] }
  /** It never came to the venue, and never can. */
  | { type: 'dead'; message: string; effects: EffectUpdate[] }
  | ({ type: 'doubt' } & UnknownOutcome)

/** Nothing is known of the action yet. */
export type UnknownOutcome = {
  effects: EffectUpdate[]
  cause?: Fault
  /** When the next look-up is worth its weight, given the backoff. */
  nextMs?: (backoffMs: number) => number
}

export type ThrottleRetry = { actionKey: string; next: string; now: Date }

/** 16 bytes that belong to this leg of this task and to nothing else. */
export const cloidOf = (taskId: string, actionKey: string): string =>
  `0x${sha256(`${taskId}:${actionKey}`).slice(0, 32)}`

/** An address above its request limit may still send one request in this time. */
const throttledRetryMs = 10_000
const isThrottled = (message: string): boolean => message.startsWith('Too many cumulative requests')
const retriesKey = (actionKey: string): string => `throttled_${actionKey}`
const retriesOf = (task: TaskView, actionKey: string): number => Number(task.data[retriesKey(actionKey)] ?? 0)

/** Each signature of a leg is an effect of its own; the orders in it keep their ids. */
export function effectIdOf(task: TaskView, actionKey: string): string {
  const retries = retriesOf(task, actionKey)
  return cloidOf(task.id, retries === 0 ? actionKey : `${actionKey}:retry${retries}`)
}

export function effectOf(task: TaskView, actionKey: string): Effect {
  const externalId = effectIdOf(task, actionKey)
  const effect = task.effects.find((each) => each.kind === effectKind && each.externalId === externalId)
  if (!effect) throw new Error(`task ${task.id} settles ${actionKey}, which was never stored`)
  return effect
}

/** See `VenueActs`. */
export function retryThrottled<T>(
  task: TaskView,
  actionOutcome: ActionOutcome<T>,
  { actionKey, next, now }: ThrottleRetry,
): StepResult | undefined {
  if (actionOutcome.type !== 'refused' || !isThrottled(actionOutcome.message)) return undefined
  if (effectOf(task, actionKey).intent.exit !== true) return undefined
  if (later(now, throttledRetryMs) > task.deadline) return undefined
  const text = 'The venue limits the requests of the account: the next one is due in 10 seconds'
  const progress = { step: 1, of: 1, text }
  return {
    park: { afterMs: throttledRetryMs, next },
    state: 'waiting',
    effects: actionOutcome.effects,
    data: { [retriesKey(actionKey)]: retriesOf(task, actionKey) + 1, progress },
  }
}
