import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { Effect, EffectUpdate, StepResult, TaskView } from '#kernel/task.ts'

/** The effect that belongs to a leg of a task, what became of it, and when it is signed again. */

export const effectKind = 'hyperliquid_action'

export type Verdict<T> =
  | { is: 'done'; value: T; effects: EffectUpdate[] }
  /** Nothing of it was done, by the venue's own word. */
  | { is: 'refused'; message: string; effects: EffectUpdate[] }
  /** It never came to the venue, and never can. */
  | { is: 'dead'; message: string; effects: EffectUpdate[] }
  | ({ is: 'doubt' } & Unknown)

/** Nothing is known of the action yet. */
export type Unknown = {
  effects: EffectUpdate[]
  cause?: Fault
  /** When the next look-up is worth its weight, given the backoff. */
  nextMs?: (backoffMs: number) => number
}

export type Retry = { leg: string; next: string; now: Date }

/** 16 bytes that belong to this leg of this task and to nothing else. */
export const cloidOf = (taskId: string, leg: string): string => `0x${sha256(`${taskId}:${leg}`).slice(0, 32)}`

/** An address above its request limit may still send one request in this time. */
const throttledRetryMs = 10_000
const isThrottled = (message: string): boolean => message.startsWith('Too many cumulative requests')
const retriesKey = (leg: string): string => `throttled_${leg}`
const retriesOf = (task: TaskView, leg: string): number => Number(task.data[retriesKey(leg)] ?? 0)

/** Each signature of a leg is an effect of its own; the orders in it keep their ids. */
export function effectIdOf(task: TaskView, leg: string): string {
  const retries = retriesOf(task, leg)
  return cloidOf(task.id, retries === 0 ? leg : `${leg}:retry${retries}`)
}

export function effectOf(task: TaskView, leg: string): Effect {
  const extId = effectIdOf(task, leg)
  const effect = task.effects.find((each) => each.kind === effectKind && each.extId === extId)
  if (!effect) throw new Error(`task ${task.id} settles ${leg}, which was never stored`)
  return effect
}

/** See `VenueActs`. */
export function retryThrottled<T>(
  task: TaskView,
  verdict: Verdict<T>,
  { leg, next, now }: Retry,
): StepResult | undefined {
  if (verdict.is !== 'refused' || !isThrottled(verdict.message)) return undefined
  if (effectOf(task, leg).intent.exit !== true) return undefined
  if (later(now, throttledRetryMs) > task.deadline) return undefined
  const text = 'The venue limits the requests of the account: the next one is due in 10 seconds'
  const progress = { step: 1, of: 1, text }
  return {
    park: { afterMs: throttledRetryMs, next },
    state: 'waiting',
    effects: verdict.effects,
    data: { [retriesKey(leg)]: retriesOf(task, leg) + 1, progress },
  }
}
