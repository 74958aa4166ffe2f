import type pg from 'pg'
import type { LockWait } from '#durable/accept/lock-waiters.ts'
import type { CommittedEvents } from '#durable/events/local-events.ts'
import { movesToJson, toLedgerError } from '#durable/ledger/ledger.ts'
import type { Task } from '#durable/task/task-row.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import { type Effect, type Move, type NewEvent, spendKey, systemOwner, type Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'
import { type StepTransition, transitionEvents } from './step-transition.ts'

/** The statement that commits steps, fenced by the version of each task. */

export type TaskWriteDeps = {
  clock: Clock
  random: Random
}
export type Committed = {
  task: Task
  committedEvents?: CommittedEvents
  signed?: Effect
  parkedUntil?: Date | undefined
}
export type TaskWrite = { task: Task; change: StepTransition; signed?: object }
type PreparedWrite = TaskWrite & { after: Task; events: NewEvent[]; parkedUntil: Date | undefined }

/** Writes task transitions in one statement; returns undefined for a task whose version has changed since. */
export async function writeTasks(
  { clock }: TaskWriteDeps,
  db: pg.Pool | Tx,
  writes: readonly TaskWrite[],
  { lockWaitMs }: LockWait = {},
): Promise<(Committed | undefined)[]> {
  const prepared = writes.map((write) => prepareWrite(write, clock.now()))
  const json = jsonText(prepared.map(taskChangeJson))
  const rows = await query<{ n: number; last: bigint | string | null }>(
    db as pg.Pool,
    'select * from task_step($1::jsonb, $2)',
    [json, lockWaitMs],
  ).catch((error: unknown) => {
    throw toLedgerError(
      error,
      writes.flatMap(({ change }) => change.moves),
    )
  })
  const lasts = new Map(rows.map(({ n, last }) => [n, last]))
  return prepared.map(({ after, events, parkedUntil }, n) => {
    const last = lasts.get(n)
    if (last === undefined) return undefined
    return { task: after, committedEvents: { last: BigInt(last ?? 0), events }, parkedUntil }
  })
}

function prepareWrite(write: TaskWrite, at: Date): PreparedWrite {
  const { task, change } = write
  const after = taskAfter(task, change, at)
  const events = task.user_id === systemOwner ? [] : transitionEvents(task, after, change.events)
  const parkedUntil = change.parkMs === undefined ? undefined : later(at, change.parkMs)
  return { ...write, after, events, parkedUntil }
}

export function taskAfter(task: Task, change: StepTransition, at: Date): Task {
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

/** Returns one element of the argument of the database function `task_step`. */
function taskChangeJson({ task, after, change, events, parkedUntil, signed }: PreparedWrite, n: number) {
  const { spent, moves } = change
  const hasMoves = moves.length > 0
  return {
    n,
    id: task.id,
    user_id: task.user_id,
    shard: task.shard,
    version: task.version,
    at: after.updated_at,
    status: after.status,
    state: after.state,
    outcome: after.outcome,
    step: after.step,
    attempts: after.attempts,
    data: change.data,
    result: change.result,
    error: change.error,
    parked_until: parkedUntil,
    spent: spent === undefined || hasMoves ? null : String(spent),
    moves: hasMoves ? movesToJson([...spentMoves(task, spent), ...moves]) : null,
    effects: change.effects.length > 0 ? change.effects : null,
    signed: signed && { done: task.step, ...signed },
    events,
  }
}

/** Returns the move that posts the task's hold, so that it locks accounts together with the step's other moves. */
const spentMoves = ({ id }: Task, spent: bigint | undefined): Move[] =>
  spent === undefined ? [] : [{ move: 'post', key: spendKey(id), amountUnits: spent }]
