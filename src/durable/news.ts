import type { NewEvent } from '#kernel/task.ts'
import { listeners } from './listeners.ts'
import { isEnded, type Task } from './row.ts'
import { taskTopic, userTopic, type Wake } from './wake.ts'

export type StoredEvent = {
  id: string
  type: string
  task_id: string | null
  subject: { kind: string; id: string } | null
  data: object
  created_at: string
}
/** The events of one commit, the last of which has the number `last`. */
export type Told = { last: bigint; events: readonly NewEvent[] }
type Hear = (page: StoredEvent[]) => void

/** What this instance has just committed: a stream here that is exactly that far need not ask the database for it. */
export type News = {
  /** After the commit. */
  tell(task: Task, told: Told | undefined): void
  on(userId: string, hear: Hear): Disposable
  /** While a hint is given of which those who listen here have been told already. */
  isTelling(): boolean
}

export function news(wake: Wake): News {
  const streams = listeners<Hear>()
  let telling = false
  return {
    isTelling: () => telling,
    tell(task, told) {
      if (told && told.events.length > 0)
        for (const hear of streams.of(task.user_id)) hear(storedEvents(task, told))
      telling = told !== undefined
      // A wait for a task ends only with the task.
      wake.hint([...(isEnded(task) ? [taskTopic(task.id)] : []), userTopic(task.user_id)])
      telling = false
    },
    on: streams.on,
  }
}

const storedEvents = (task: Task, { last, events }: Told): StoredEvent[] =>
  events.map(({ type, subject, data }, at) => ({
    id: String(last - BigInt(events.length - 1 - at)),
    type,
    task_id: task.id,
    subject: subject ?? null,
    data,
    created_at: task.updated_at.toISOString(),
  }))
