import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Effect, NewEvent, Tx } from '#kernel/task.ts'
import { systemOwner } from '#kernel/task.ts'
import { jsonText, query } from '#store/query.ts'
import { movesToJson, toLedgerError } from './ledger.ts'
import type { CommittedEvents } from './local-events.ts'
import { type StepTransition, transitionEvents } from './step-transition.ts'
import type { Task } from './task-row.ts'
import { taskEvent } from './task-view.ts'

export type TaskWriteDeps = {
  clock: Clock
  random: Random
}
/** The task as committed, the events of the commit, and the effect that the step signed. */
export type Committed = {
  task: Task
  committedEvents?: CommittedEvents
  signed?: Effect
  /** When the task is due again, where the step parked it. */
  parkedUntil?: Date | undefined
}

type TaskWrite = {
  task: Task
  change: StepTransition
  /** Further fields of the argument of the database function. */
  extra?: object
  /** Inserts the task in the same statement. */
  acceptance?: object
}

/** Writes a transition in one statement, fenced by the version; undefined where the fence refused it. */
export async function writeTask(
  deps: TaskWriteDeps,
  db: pg.Pool | Tx,
  { task, change, extra = {}, acceptance }: TaskWrite,
): Promise<Committed | undefined> {
  const after = taskAfter(task, change, deps.clock.now())
  const parkedUntil = change.parkMs === undefined ? undefined : later(after.updated_at, change.parkMs)
  const taskEvents = transitionEvents(task, after, change.events)
  const all = acceptance ? [taskEvent('task.created', task), ...taskEvents] : taskEvents
  const events = task.user_id === systemOwner ? [] : all
  const body = { ...taskWriteJson({ task, after, change, events }), runAt: parkedUntil, ...extra }
  const [text, values] = acceptance
    ? ['select task_accept_signed($1::jsonb, $2::jsonb) as last', [acceptance, body]]
    : ['select task_write($1::jsonb) as last', [body]]
  const sent = values.map(jsonText)
  const [row] = await query<{ last: bigint | null }>(db as pg.Pool, text, sent).catch((error: unknown) => {
    throw toLedgerError(error, change.moves)
  })
  const last = row?.last ?? null
  if (last === null) return undefined
  return { task: after, committedEvents: { last: BigInt(last), events }, parkedUntil }
}

function taskAfter(task: Task, change: StepTransition, at: Date): Task {
  const ended = change.status !== 'running'
  return {
    ...task,
    status: change.status,
    state: change.state,
    outcome: change.outcome,
    step: change.step,
    attempts: change.attempts,
    data: { ...task.data, ...change.data },
    result: change.result ?? task.result,
    error: change.error ?? task.error,
    version: task.version + 1,
    updated_at: at,
    completed_at: ended ? at : null,
  }
}

type WrittenTransition = {
  task: Task
  after: Task
  change: StepTransition
  events: readonly NewEvent[]
}

/** The argument of the database function `task_write`. */
const taskWriteJson = ({ task, after, change, events }: WrittenTransition) => ({
  id: task.id,
  version: task.version,
  at: after.updated_at,
  done: task.step,
  status: after.status,
  state: after.state,
  outcome: after.outcome,
  step: after.step,
  attempts: after.attempts,
  data: change.data,
  result: change.result,
  error: change.error,
  moves: movesToJson(change.moves),
  effects: change.effects,
  events,
})
