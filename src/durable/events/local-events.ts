import { isEnded, type Task } from '#durable/task/task-row.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import { createListeners } from './listeners.ts'
import { type Notifier, taskTopic, userTopic } from './notifier.ts'

export type StoredEvent = {
  id: string
  type: string
  task_id: string | null
  subject: { kind: string; id: string } | null
  data: object
  created_at: string
}
export type CommittedEvents = { last: bigint; events: readonly NewEvent[] }
type EventListener = (page: StoredEvent[]) => void

/** Events that this instance committed: a local stream that is up to date needs no query for them. */
export type LocalEvents = {
  publish(task: Task, committed: CommittedEvents | undefined): void
  on(userId: string, listener: EventListener): Disposable
  /** Calls back with the ended task as this instance committed it, before any listener is notified of the end. */
  onEnd(taskId: string, listener: (ended: Task) => void): Disposable
  /** Whether the hint that is being sent is about events that the local listeners already have. */
  isPublishing(): boolean
}

export function createLocalEvents(notifier: Notifier): LocalEvents {
  const subscribers = createListeners<EventListener>()
  const waiters = createListeners<(ended: Task) => void>()
  let publishing = false
  return {
    isPublishing: () => publishing,
    publish(task, committed) {
      if (committed && committed.events.length > 0)
        for (const listener of subscribers.get(task.user_id)) listener(storedEvents(task, committed))
      if (isEnded(task)) for (const listener of waiters.get(task.id)) listener(task)
      publishing = committed !== undefined
      // Waiters of a task need a hint only when the task ends.
      notifier.notify([...(isEnded(task) ? [taskTopic(task.id, task.user_id)] : []), userTopic(task.user_id)])
      publishing = false
    },
    on: subscribers.on,
    onEnd: waiters.on,
  }
}

const storedEvents = (task: Task, { last, events }: CommittedEvents): StoredEvent[] =>
  events.map(({ type, subject, data }, at) => ({
    id: String(last - BigInt(events.length - 1 - at)),
    type,
    task_id: task.id,
    subject: subject ?? null,
    data,
    created_at: task.updated_at.toISOString(),
  }))
