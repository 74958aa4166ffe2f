import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { type Pause, pausedEvent, statusReason } from './run-events.ts'
import { lockSchedules } from './store.ts'

export type EndedAccess = {
  userId: string
  /** The app whose access ended; without it and without a person, every access to the account ended. */
  clientId?: string | undefined
  /** The person whose link to the agent ended. */
  personId?: string
  at: Date
  /** Cancels tasks of the user in the same transaction. */
  cancelTasks: (taskIds: readonly string[]) => Promise<unknown>
}

const pause: Pause = {
  reason: 'access_ended',
  text: 'The access of who activated it has ended; activate it again to let it act for you',
}

/** Returns the SQL condition that an authority belongs to the access that ended. */
const isEndedSql = (authority: string) =>
  `($2::text is null or ${authority} ->> 'clientId' = $2) and ($3::text is null or ${authority} ->> 'personId' = $3)`

/** An authority whose access has ended also loses the approval of a person, so that the next activation asks again. */
const endedSql = (authority: string) =>
  `${authority} - '{approvedMicros,approvedUntil,approvedTerms}'::text[] || jsonb_build_object('endedAt', $4::text)`

/**
 * Pauses the schedules that the ended access has activated, and cancels the open runs that act by it, with their chats,
 * in the transaction that ends it. Returns the events, whose insertion has to be the last statement.
 */
export async function endSchedules(
  tx: Tx,
  { userId, clientId, personId, at, cancelTasks }: EndedAccess,
): Promise<NewEvent[]> {
  // A run begins under a lock of its schedule, so under this lock a run either has begun or will see that its access
  // has ended.
  await lockSchedules(tx, userId)
  const access = [clientId ?? null, personId ?? null]
  const paused = await query<{ id: string; title: string }>(
    tx,
    `update strategy s set status = 'paused', status_reason = $5, next_at = null, following_at = null, updated_at = $4
     from strategy_version v where v.strategy_id = s.id and v.version = s.version and s.user_id = $1
       and s.status = 'active' and ${isEndedSql('v.authority')} returning s.id, s.title`,
    [userId, ...access, at, statusReason(pause)],
  )
  const runs = await query<{ id: string; chat_id: string | null }>(
    tx,
    `select e.id, e.chat_id from strategy s join strategy_execution e on e.strategy_id = s.id
       join strategy_version v on v.strategy_id = s.id and v.version = e.version
     where s.user_id = $1 and e.status in ('pending', 'running')
       and ${isEndedSql('coalesce(e.authority, v.authority)')}`,
    [userId, ...access],
  )
  const ended = [...access, at.toISOString()]
  await query(
    tx,
    `update strategy_version v set authority = ${endedSql('v.authority')} from strategy s
     where s.user_id = $1 and v.strategy_id = s.id and v.authority is not null and ${isEndedSql('v.authority')}`,
    [userId, ...ended],
  )
  await query(
    tx,
    `update strategy_execution e set authority = ${endedSql('e.authority')}
     where e.id = any($1::uuid[]) and e.authority is not null and ${isEndedSql('e.authority')}`,
    [runs.map(({ id }) => id), ...ended],
  )
  await cancelTasks(runs.flatMap(({ id, chat_id }) => (chat_id === null ? [id] : [id, chat_id])))
  return paused.map((schedule) => pausedEvent(schedule, pause))
}
