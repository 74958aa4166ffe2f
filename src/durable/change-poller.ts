import { repeat } from '#kernel/repeat.ts'
import { builder, fetchAll, type Queryable } from '#store/query.ts'
import { listeners } from './listeners.ts'

/** The delay of a change whose hint was lost. */
export const pollMs = 1_000

type EventSubscriber = { seq: () => bigint; notify: () => void }

/** Backstop for lost hints: one poll serves all streams and waits of this instance. */
export type ChangePoller = {
  /** Calls back when the event log of the user is past `seq`. */
  onEvents(userId: string, subscriber: EventSubscriber): Disposable
  /** Calls back once the task has ended. */
  onEnd(taskId: string, notify: () => void): Disposable
}

export function createChangePoller(db: Queryable, everyMs: number = pollMs): ChangePoller {
  const subscribers = listeners<EventSubscriber>()
  const waiters = listeners<() => void>()
  let polling: AsyncDisposable | undefined
  let registered = 0

  const pollEventLogs = async (): Promise<void> => {
    const userIds = subscribers.keys()
    if (userIds.length === 0) return
    const rows = await fetchAll(
      db,
      builder
        .selectFrom('user_event_seq')
        .select(['user_id', 'seq'])
        .where('user_id', '=', (eb) => eb.fn.any(eb.val(userIds))),
    )
    for (const { user_id, seq: newest } of rows)
      for (const { seq, notify } of subscribers.get(user_id)) if (BigInt(newest) > seq()) notify()
  }
  const pollTasks = async (): Promise<void> => {
    const taskIds = waiters.keys()
    if (taskIds.length === 0) return
    const rows = await fetchAll(
      db,
      builder
        .selectFrom('task')
        .select('id')
        .where('id', '=', (eb) => eb.fn.any(eb.val(taskIds)))
        .where('status', 'in', ['completed', 'failed', 'cancelled']),
    )
    for (const { id } of rows) for (const notify of waiters.get(id)) notify()
  }
  // The next poll finds what a failed one missed.
  const poll = () => Promise.allSettled([pollEventLogs(), pollTasks()])

  const register = (registration: Disposable): Disposable => {
    registered += 1
    polling ??= repeat(poll, { everyMs })
    let isOpen = true
    return {
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        registration[Symbol.dispose]()
        registered -= 1
        if (registered > 0) return
        void polling?.[Symbol.asyncDispose]()
        polling = undefined
      },
    }
  }
  return {
    onEvents: (userId, subscriber) => register(subscribers.on(userId, subscriber)),
    onEnd: (taskId, notify) => register(waiters.on(taskId, notify)),
  }
}
