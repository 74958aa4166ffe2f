import type { TaskBrief, TaskFullView } from '#kernel/contract/task-response.ts'
import type { JsonObject, NewEvent, TaskProgress } from '#kernel/task/task.ts'
import { isEnded, type Task } from './task-row.ts'

/** The view of a task for its owner: it is the same on every route, on the stream and with `wait=true`. */

const stateMessages: Record<string, string> = {
  accepted: 'Accepted; it will begin in a moment',
  awaiting_approval: 'Waits until a person approves it',
  quoting: 'Asking for a price',
  held: 'The amount is set aside',
  signed: 'Signed and stored; about to be sent',
  submitted: 'Sent; waiting for the chain',
  confirming: 'On its way; waiting for confirmation',
  waiting: 'Waiting',
  settling: 'Confirmed; settling the account',
  reconciling: 'The outcome is not known yet; it is being looked up',
  review: 'The outcome could not be found out; an operator looks into it',
}

function messageOf(task: Task): string {
  const message = sentenceOf(task)
  return task.data.not_replicated === true
    ? `${message} (not replicated: the database had no standby when this was accepted)`
    : message
}

function sentenceOf(task: Task): string {
  if (task.status === 'completed') {
    const done = task.outcome === 'partial' ? 'Completed in part' : 'Completed'
    return typeof task.data.note === 'string' ? `${done}: ${task.data.note}` : done
  }
  const message = (task.error?.message as string | undefined) ?? 'No reason was recorded'
  // Messages of upstreams already end with a full stop.
  const reason = message.replace(/[.\s]+$/, '')
  const moved = task.outcome === 'partial' ? 'A part was executed' : 'Nothing was moved'
  if (task.status === 'failed') return `Failed: ${reason}. ${moved}.`
  if (task.status === 'cancelled') return `Cancelled: ${reason}. ${moved}.`
  const state = stateMessages[task.state] ?? task.state
  if (task.state === 'awaiting_approval') return waitingMessage(state, task)
  return task.state === 'review' && typeof task.data.note === 'string' ? `${state}: ${task.data.note}` : state
}

function waitingMessage(state: string, { data }: Task): string {
  const { expires_at, confirm_url } = data.approval as NonNullable<TaskFullView['approval']>
  const where = confirm_url ? ` at ${confirm_url}` : ''
  return `${state}${where}, at most until ${expires_at}: ${data.asks}. Nothing is reserved or signed; poll \`tasks_get\``
}

const list = <Row>(value: unknown): Row[] => (Array.isArray(value) ? value : [])

const approvalOf = (task: Task) =>
  (task.state === 'awaiting_approval' ? task.data.approval : null) as TaskFullView['approval']

/** The short form says at once that a task waits for a person, and where the person decides. */
export function toTaskBrief(task: Task): TaskBrief {
  const approval = approvalOf(task)
  return {
    task_id: task.id,
    status: task.status,
    message: messageOf(task),
    idempotency_key: task.idempotency_key,
    ...(approval && { state: task.state, approval }),
  }
}

/**
 * The states after a signature. A task in one of them is not cancellable, because its signed bytes may have been sent
 * already. A task that waits with signed bytes has `is_signed` in its data.
 */
const effectStates = ['signed', 'submitted', 'confirming', 'settling', 'reconciling', 'review']

export const taskEvent = (type: string, task: Task): NewEvent => ({
  type,
  data: toTaskFullView(task) as unknown as JsonObject,
})

export function toTaskFullView(task: Task): TaskFullView {
  return {
    ...toTaskBrief(task),
    kind: task.kind,
    state: task.state,
    outcome: task.outcome,
    progress: (task.data.progress ?? null) as TaskProgress | null,
    result: task.result,
    error: task.error as TaskFullView['error'],
    transactions: list(task.data.transactions),
    balance_changes: list(task.data.balance_changes),
    fills: list(task.data.fills),
    approval: approvalOf(task),
    cancellable:
      !isEnded(task) &&
      !task.cancel_requested &&
      !effectStates.includes(task.state) &&
      task.data.is_signed !== true,
    parent_task_id: task.parent_id,
    client_id: (task.data.asked_by_app ?? null) as string | null,
    created_at: task.created_at.toISOString(),
    updated_at: task.updated_at.toISOString(),
    completed_at: task.completed_at?.toISOString() ?? null,
  }
}
