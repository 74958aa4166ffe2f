import { isEnded, type Task } from '#durable/task/task-row.ts'
import { taskEvent } from '#durable/task/task-view.ts'
import type { EffectUpdate, Move, NewEvent, StepResult } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

export type StepTransition = {
  status: Task['status']
  state: string
  outcome: Task['outcome']
  step: string
  attempts: number
  data: JsonObject
  result?: JsonObject
  error?: JsonObject
  parkMs?: number
  /** The part of the task's held units that was delivered. */
  spent?: bigint
  moves: Move[]
  effects: EffectUpdate[]
  events: NewEvent[]
}

export function transition(task: Task, result: StepResult): StepTransition {
  const rest = {
    data: result.data ?? {},
    ...(result.spent !== undefined && { spent: result.spent }),
    moves: result.moves ?? [],
    effects: result.effects ?? [],
    events: result.events ?? [],
  }
  if ('end' in result) {
    return {
      ...rest,
      status: result.end,
      state: result.end === 'completed' ? 'done' : result.error.code,
      outcome: result.outcome,
      step: task.step,
      attempts: 0,
      ...(result.result && { result: result.result }),
      ...('error' in result && { error: { retryable: false, ...result.error } }),
    }
  }
  if ('park' in result) {
    const { afterMs, next } = result.park
    const state = result.state ?? 'waiting'
    return {
      ...rest,
      status: 'running',
      state,
      outcome: result.outcome ?? null,
      step: next,
      attempts: 0,
      parkMs: afterMs,
    }
  }
  const state =
    result.state ??
    ('sign' in result || 'replace' in result ? 'signed' : task.state === 'accepted' ? 'held' : task.state)
  return { ...rest, status: 'running', state, outcome: null, step: result.next, attempts: 0 }
}

export function transitionEvents(before: Task, after: Task, extra: NewEvent[]): NewEvent[] {
  const seen =
    isEnded(after) ||
    before.state !== after.state ||
    before.status !== after.status ||
    before.outcome !== after.outcome
  const type = isEnded(after) ? `task.${after.status}` : 'task.updated'
  return [...(seen ? [taskEvent(type, after)] : []), ...extra]
}
