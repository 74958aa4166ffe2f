import { movesMoney } from '#durable/task/task-kinds.ts'
import type { Task } from '#durable/task/task-row.ts'
import { taskEvent } from '#durable/task/task-view.ts'
import type { Transactions } from '#durable/transactions.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, shardOf, uuidv7 } from '#kernel/id.ts'
import { type NewEvent, systemOwner } from '#kernel/task/task.ts'
import type { Acceptance, NewTask } from './acceptance.ts'

export type IntakeDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  instanceId: string
  /** Returns false while a required standby is away; tasks accepted then are marked as not replicated. */
  isReplicated?: () => boolean | null
}
type BuildDeps = Pick<IntakeDeps, 'clock' | 'random' | 'isReplicated'>

const deadlineMsDefault = 15 * 60_000

export function buildAcceptance(deps: BuildDeps, wanted: NewTask): Acceptance {
  const task = buildTask(deps, wanted)
  const { spend } = wanted.admission
  const events = [...creationEvents(task), ...(wanted.events ?? [])]
  return { task, wanted, events, grant: spend?.grant, check: spend?.check }
}

function buildTask({ clock, random, isReplicated }: BuildDeps, wanted: NewTask): Task {
  const { userId, kind, input, admission, key, parentId, executionId, clientId, leased } = wanted
  const at = clock.now()
  const isMarked = movesMoney(kind) && isReplicated?.() === false
  return {
    id: wanted.id ?? admission.taskId ?? uuidv7(at, random),
    shard: shardOf(userId),
    user_id: userId,
    kind: kind.kind,
    kind_version: kind.version,
    status: leased ? 'running' : 'pending',
    state: wanted.state ?? 'accepted',
    outcome: null,
    step: admission.first,
    data: {
      ...admission.data,
      ...(clientId !== undefined && { asked_by_app: clientId }),
      ...(isMarked && { not_replicated: true }),
    },
    input,
    result: null,
    error: null,
    attempts: 0,
    version: 1,
    cancel_requested: false,
    deadline: later(at, admission.deadlineMs ?? deadlineMsDefault),
    parent_id: parentId ?? null,
    idempotency_key: key?.key ?? null,
    execution_id: executionId ?? null,
    created_at: at,
    updated_at: at,
    completed_at: null,
  }
}

const creationEvents = (task: Task): NewEvent[] =>
  task.user_id === systemOwner ? [] : [taskEvent('task.created', task)]
