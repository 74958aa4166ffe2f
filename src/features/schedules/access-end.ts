import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { type Pause, pausedEvent, statusReason } from './run-events.ts'

export type EndedAccess = {
  userId: string
  /** The app whose access ended; undefined stands for every access to the account. */
  clientId: string | undefined
  at: Date
}

const pause: Pause = {
  reason: 'access_ended',
  text: 'The access of who activated it has ended; activate it again to let it act for you',
}

/**
 * Pauses the schedules that the ended access has activated, in the transaction that ends it. Returns the events,
 * whose insertion has to be the last statement. Runs under way notice the end of the access by themselves.
 */
export async function endSchedules(tx: Tx, { userId, clientId, at }: EndedAccess): Promise<NewEvent[]> {
  const paused = await query<{ id: string; title: string }>(
    tx,
    `update strategy s set status = 'paused', status_reason = $4, next_at = null, following_at = null, updated_at = $3
     from strategy_version v where v.strategy_id = s.id and v.version = s.version and s.user_id = $1
       and s.status = 'active' and ($2::text is null or v.authority ->> 'clientId' = $2) returning s.id, s.title`,
    [userId, clientId ?? null, at, statusReason(pause)],
  )
  return paused.map((schedule) => pausedEvent(schedule, pause))
}
