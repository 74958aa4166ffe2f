import { repeatWhileNeeded } from '#kernel/async/repeat-while-needed.ts'
import { type Queryable, query } from '#store/query.ts'
import { createListeners } from './listeners.ts'

/** The longest delay of a change whose hint was lost. */
export const pollMs = 1_000

type EventSubscriber = { seq: () => bigint; notify: () => void }

/** A backstop for lost hints: one poll serves all streams and waits of this instance. */
export type ChangePoller = {
  /** Calls back when the event log of the user is past `seq`. */
  onEvents(userId: string, subscriber: EventSubscriber): Disposable
  onEnd(taskId: string, notify: () => void): Disposable
}

type Change = { id: string; newest: bigint | null }

const changesSql = `
  select user_id as id, seq as newest from user_event_seq where user_id = any($1::uuid[])
  union all
  select id, null from task where id = any($2::uuid[]) and status in ('completed', 'failed', 'cancelled')`

export function createChangePoller(db: Queryable, everyMs: number = pollMs): ChangePoller {
  const subscribers = createListeners<EventSubscriber>()
  const waiters = createListeners<() => void>()

  const poll = async (): Promise<void> => {
    const rows = await query<Change>(db, changesSql, [subscribers.keys(), waiters.keys()])
    for (const { id, newest } of rows) {
      if (newest === null) for (const notify of waiters.get(id)) notify()
      else for (const { seq, notify } of subscribers.get(id)) if (BigInt(newest) > seq()) notify()
    }
  }

  // The next poll finds the changes that a failed poll missed.
  const watch = repeatWhileNeeded(poll, { everyMs, onError: () => {} })
  const register = (registration: Disposable): Disposable => {
    const registered = new DisposableStack()
    registered.use(watch())
    registered.use(registration)
    return registered
  }
  return {
    onEvents: (userId, subscriber) => register(subscribers.on(userId, subscriber)),
    onEnd: (taskId, notify) => register(waiters.on(taskId, notify)),
  }
}
