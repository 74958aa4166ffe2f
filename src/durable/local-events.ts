import type { NewEvent } from '#kernel/task.ts'
import { listeners } from './listeners.ts'
import { type Notifier, taskTopic, userTopic } from './notifier.ts'
import { isEnded, type Task } from './task-row.ts'

export type StoredEvent = {
  id: string
  type: string
  task_id: string | null
  subject: { kind: string; id: string } | null
  data: object
  created_at: string
}
/** The events of one commit, the last of which has the number `last`. */
export type CommittedEvents = { last: bigint; events: readonly NewEvent[] }
type EventListener = (page: StoredEvent[]) => void

/** What this instance has just committed: a stream here that is exactly that far need not ask the database for it. */
export type LocalEvents = {
  /** After the commit. */
  publish(task: Task, committed: CommittedEvents | undefined): void
  on(userId: string, listener: EventListener): Disposable
  /** While a hint is given of which those who listen here have been told already. */
  isPublishing(): boolean
}

export function createLocalEvents(notifier: Notifier): LocalEvents {
  const subscribers = listeners<EventListener>()
  let publishing = false
  return {
    isPublishing: () => publishing,
    publish(task, committed) {
      if (committed && committed.events.length > 0)
        for (const listener of subscribers.get(task.user_id)) listener(storedEvents(task, committed))
      publishing = committed !== undefined
      // A wait for a task ends only with the task.
      notifier.notify([...(isEnded(task) ? [taskTopic(task.id)] : []), userTopic(task.user_id)])
      publishing = false
    },
    on: subscribers.on,
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
