import {
  type DueSlots,
  planSlots,
  type SkippedSlots,
  withMissed,
} from '#engines/strategy-slots/plan-slots.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'
import type { StrategyMode, StrategyRow } from '#store/tables/strategies.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { nextSlot } from './recurrence/slots.ts'
import { type Pause, pausedEvent, skippedEvents, statusReason } from './run-events.ts'
import { lockRunsAndSchedules } from './store.ts'

export type EndedAccess = {
  userId: string
  /** The app whose access ended; without it and without a person, every access to the account ended. */
  clientId?: string | undefined
  /** The person whose link to the agent ended. */
  personId?: string
  at: Date
  /** The time by the clock of schedules, which only the local world moves away from `at`. */
  slotsAt?: Date
  random: Random
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
 * in the transaction that ends it. A run that closes positions needs no access that lasts, and goes on. Returns the
 * events, whose insertion has to be the last statement.
 */
export async function endSchedules(
  tx: Tx,
  { userId, clientId, personId, at, slotsAt = at, random, cancelTasks }: EndedAccess,
): Promise<NewEvent[]> {
  // A run begins under a lock of its schedule, so under this lock a run either has begun or will see that its access
  // has ended.
  await lockRunsAndSchedules(tx, userId)
  const access = [clientId ?? null, personId ?? null]
  const skipped = await skipDueSlots(tx, { userId, access, slotsAt, random })
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
     where s.user_id = $1 and e.status in ('pending', 'running') and e.execution_type <> 'exit'
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
  return [...skipped, ...paused.map((schedule) => pausedEvent(schedule, pause))]
}

type DueRow = DueSlots &
  Pick<StrategyRow, 'id' | 'title' | 'notify' | 'version' | 'execution_count'> & {
    mode: StrategyMode
    previous_reason: string | null
  }
type Due = { userId: string; access: readonly (string | null)[]; slotsAt: Date; random: Random }

/** Records the slots that have come by now and that no instance has served, and returns their events. */
async function skipDueSlots(tx: Tx, { userId, access, slotsAt, random }: Due): Promise<NewEvent[]> {
  const rows = await query<DueRow>(
    tx,
    `select s.id, s.title, s.notify, s.version, s.execution_count, s.next_at, s.following_at, v.mode, v.calendar,
       v.on_missed, v.catch_up_seconds, false as "isRunning",
       (select e.skip_reason from strategy_execution e where e.strategy_id = s.id order by e.number desc limit 1)
         as previous_reason
     from strategy s join strategy_version v on v.strategy_id = s.id and v.version = s.version
     where s.user_id = $1 and s.status = 'active' and s.next_at <= $4 and ${isEndedSql('v.authority')} order by s.id`,
    [userId, ...access, slotsAt],
  )
  const skipped = rows.flatMap((row) => {
    const slots = dueSlots(row, slotsAt)
    return slots ? [{ row, run: skippedRun(row, { userId, slots, slotsAt, random }) }] : []
  })
  if (skipped.length === 0) return []
  await query(
    tx,
    `with recorded as (
       insert into strategy_execution select r.* from jsonb_populate_recordset(null::strategy_execution, $1::jsonb) r
       on conflict do nothing returning strategy_id, number, skipped_slots)
     update strategy s set execution_count = r.number, skipped_count = s.skipped_count + r.skipped_slots
     from recorded r where s.id = r.strategy_id`,
    [jsonText(skipped.map(({ run }) => run))],
  )
  return skipped.flatMap(({ row, run }) => skippedEvents(row, run, { previousReason: row.previous_reason }))
}

function dueSlots(row: DueRow, slotsAt: Date): SkippedSlots | undefined {
  const { run, missed } = planSlots(row, slotsAt, (calendar, after) => nextSlot(calendar as Calendar, after))
  return run ? withMissed(missed, run) : missed
}

type Skipped = Omit<Due, 'access'> & { slots: SkippedSlots }

const skippedRun = (row: DueRow, { userId, slots, slotsAt, random }: Skipped) => ({
  id: uuidv7(slotsAt, random),
  strategy_id: row.id,
  user_id: userId,
  version: row.version,
  number: row.execution_count + 1,
  execution_type: 'scheduled' as const,
  mode: row.mode,
  slot: slots.last,
  first_slot: slots.first,
  skipped_slots: slots.count,
  status: 'cancelled' as const,
  outcome: 'not_executed' as const,
  skip_reason: 'access_ended' as const,
  summary: pause.text,
  created_at: slotsAt,
  ended_at: slotsAt,
})
