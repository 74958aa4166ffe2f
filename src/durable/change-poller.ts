import { all, type Queryable, q } from '#store/query.ts'
import { listeners } from './listeners.ts'

/** How long a change may go unnoticed when its hint was lost. */
export const pollMs = 1_000

type Follower = { seq: () => bigint; notify: () => void }

/** Finds changes whose hint was lost: one poll for all streams and waits of this instance. */
export type ChangePoller = {
  /** Calls back when the log of the user is longer than `seq`. */
  onEvents(userId: string, follower: Follower): Disposable
  /** Calls back once the task has ended. */
  onEnd(taskId: string, notify: () => void): Disposable
}

export function createChangePoller(db: Queryable, everyMs: number = pollMs): ChangePoller {
  const followers = listeners<Follower>()
  const waiters = listeners<() => void>()
  let timer: NodeJS.Timeout | undefined
  let listening = 0
  let isLooking = false

  const lookAtLogs = async (): Promise<void> => {
    const userIds = followers.keys()
    if (userIds.length === 0) return
    const rows = await all(
      db,
      q
        .selectFrom('user_stream')
        .select(['user_id', 'seq'])
        .where('user_id', '=', (eb) => eb.fn.any(eb.val(userIds))),
    )
    for (const { user_id, seq: newest } of rows)
      for (const { seq, notify } of followers.of(user_id)) if (BigInt(newest) > seq()) notify()
  }
  const lookAtTasks = async (): Promise<void> => {
    const taskIds = waiters.keys()
    if (taskIds.length === 0) return
    const rows = await all(
      db,
      q
        .selectFrom('task')
        .select('id')
        .where('id', '=', (eb) => eb.fn.any(eb.val(taskIds)))
        .where('status', 'in', ['completed', 'failed', 'cancelled']),
    )
    for (const { id } of rows) for (const notify of waiters.of(id)) notify()
  }
  const look = async (): Promise<void> => {
    // A poll still under way is not joined by a second one; the next finds the change.
    if (isLooking) return
    isLooking = true
    await Promise.allSettled([lookAtLogs(), lookAtTasks()])
    isLooking = false
  }

  const listen = (registration: Disposable): Disposable => {
    listening += 1
    timer ??= setInterval(() => void look(), everyMs)
    let isOpen = true
    return {
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        registration[Symbol.dispose]()
        listening -= 1
        if (listening > 0) return
        clearInterval(timer)
        timer = undefined
      },
    }
  }
  return {
    onEvents: (userId, follower) => listen(followers.on(userId, follower)),
    onEnd: (taskId, notify) => listen(waiters.on(taskId, notify)),
  }
}
