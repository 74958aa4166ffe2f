import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { builder, fetchOne, jsonText, type Queryable, query } from '#store/query.ts'
import type { ChatThreadRow, ChatTurnRow } from '#store/tables/chat.ts'
import type { ChatEvent, EventName } from './events.ts'

export type { ChatThreadRow, ChatTurnRow }

export const findTurn = (db: Queryable, chatId: string): Promise<ChatTurnRow | undefined> =>
  fetchOne(db, builder.selectFrom('chat_turn').selectAll().where('chat_id', '=', chatId))

export const threadOf = (db: Queryable, threadId: string): Promise<ChatThreadRow | undefined> =>
  fetchOne(db, builder.selectFrom('chat_thread').selectAll().where('thread_id', '=', threadId))

/** Finds a thread of the user by its id or by the id of one of its turns. */
export async function findThread(
  db: Queryable,
  userId: string,
  id: string,
): Promise<ChatThreadRow | undefined> {
  const [row] = await query<ChatThreadRow>(
    db,
    `select * from chat_thread where user_id = $2 and thread_id =
       coalesce((select thread_id from chat_turn where chat_id = $1), $1)`,
    [id, userId],
  )
  return row
}

export const threadsOf = (
  db: Queryable,
  userId: string,
  page: { skip: number; limit: number },
): Promise<ChatThreadRow[]> =>
  query(
    db,
    `select * from chat_thread where user_id = $1 order by updated_at desc, thread_id desc offset $2 limit $3`,
    [userId, page.skip, page.limit],
  )

export const turnsOf = (db: Queryable, threadId: string): Promise<ChatTurnRow[]> =>
  query(db, 'select * from chat_turn where thread_id = $1 order by chat_id', [threadId])

type ThreadSize = { turns: number; bytes: number }
export const sizeOfThread = async (db: Queryable, threadId: string): Promise<ThreadSize> => {
  const text = `select count(*)::integer as turns, coalesce(sum(octet_length(answer)), 0)::integer as bytes
    from chat_turn where thread_id = $1`
  return (await query<ThreadSize>(db, text, [threadId]))[0] ?? { turns: 0, bytes: 0 }
}

type EventRow = { seq: number; event: string; data: object }
const toEvent = ({ seq, event, data }: EventRow): ChatEvent => ({
  seq,
  event: event as EventName,
  data: data as JsonObject,
})

export async function eventsAfter(
  db: Queryable,
  chatId: string,
  seq: number,
  limit: number,
): Promise<ChatEvent[]> {
  const rows = await query<EventRow>(
    db,
    'select seq, event, data from chat_event where chat_id = $1 and seq > $2 order by seq limit $3',
    [chatId, seq, limit],
  )
  return rows.map(toEvent)
}

export const isKeyUsed = async (db: Queryable, userId: string, key: string): Promise<boolean> =>
  (await query(db, 'select at from idempotency where user_id = $1 and key = $2', [userId, key])).length > 0

export type StoredResult = { call_id: string; output: JsonObject }
export const callsOf = (db: Queryable, chatId: string): Promise<StoredResult[]> =>
  query(db, 'select call_id, output from chat_call where chat_id = $1', [chatId])

/** Returns whether a money hold refused a call of the turn; false if the turn has made a file. */
export async function isHeld(db: Queryable, chatId: string): Promise<boolean> {
  const rows = await query(
    db,
    `select 1 from chat_call where chat_id = $1 and output @> '{"is_held": true}'
       and not exists (select from chat_file where chat_id = $1) limit 1`,
    [chatId],
  )
  return rows.length > 0
}

/** Reads the newest events of turns except chunks of text, up to a number of events and bytes. */
export async function newestEvents(
  db: Queryable,
  chatIds: readonly string[],
  max: { events: number; bytes: number },
): Promise<Map<string, ChatEvent[]>> {
  const rows = await query<EventRow & { chat_id: string }>(
    db,
    `select chat_id, seq, event, data from (
       select e.*, sum(bytes) over (order by chat_id desc, seq desc) as total from (
         select e.* from unnest($1::uuid[]) c (id), lateral (
           select * from chat_event where chat_id = c.id and event in ('planning', 'tool_call', 'tool_response')
           order by seq desc limit $2) e
         order by e.chat_id desc, e.seq desc limit $2) e) e
     where total <= $3 order by chat_id, seq`,
    [chatIds, max.events, max.bytes],
  )
  const byTurn = new Map<string, ChatEvent[]>()
  for (const row of rows) byTurn.set(row.chat_id, [...(byTurn.get(row.chat_id) ?? []), toEvent(row)])
  return byTurn
}

export type Append = {
  chat_id: string
  version: number
  events: (ChatEvent & { bytes: number })[]
  calls: StoredResult[]
  recommendations: JsonObject[]
}
/**
 * Stores events and returns the ids of the turns that were written. A turn that another instance has claimed is
 * skipped.
 */
export async function append(db: Queryable, all: readonly Append[]): Promise<Set<string>> {
  const rows = await query<{ id: string }>(db, 'select chat_append($1::jsonb) as id', [jsonText(all)])
  return new Set(rows.map(({ id }) => id))
}

export type RunningState = {
  chat_id: string
  cancel_requested: boolean
  is_suspended: boolean
  listened_at: Date
}
export const runningStates = (db: Queryable, chatIds: readonly string[]): Promise<RunningState[]> =>
  query(
    db,
    `select c.chat_id, t.cancel_requested, u.suspended_at is not null as is_suspended, c.listened_at
     from chat_turn c join task t on t.id = c.chat_id left join app_user u on u.id = c.user_id
     where c.chat_id = any($1::uuid[])`,
    [chatIds],
  )

export type Progress = { chat_id: string; newest: number; is_ended: boolean }
export const progressOf = (db: Queryable, chatIds: readonly string[]): Promise<Progress[]> =>
  query(
    db,
    `select c.id as chat_id, coalesce((select seq from chat_event e where e.chat_id = c.id order by seq desc limit 1), 0) as newest,
       exists (select from task t where t.id = c.id and t.completed_at is not null) as is_ended
     from unnest($1::uuid[]) c (id)`,
    [chatIds],
  )

export const noteListeners = (db: Queryable, chatIds: readonly string[], at: Date) =>
  query(
    db,
    `update chat_turn set listened_at = $2 where chat_id = any($1::uuid[]) and status = 'running' returning chat_id`,
    [chatIds, at],
  )

const excerptCharacters = 140

export const excerptOf = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > excerptCharacters ? `${line.slice(0, excerptCharacters - 1)}…` : line
}

/** A question is the latest message of its thread as soon as its turn begins. */
export const noteQuestion = (db: Queryable, turn: ChatTurnRow, excerpt: string) =>
  query(
    db,
    `update chat_thread set updated_at = greatest(updated_at, $2), last_message = $3, agent = $4,
       message_count = 2 * (select count(*) from chat_turn where thread_id = $1)
     where thread_id = $1 returning thread_id`,
    [turn.thread_id, turn.created_at, excerpt, turn.agent],
  )

export async function spokenOf(db: Queryable, chatId: string): Promise<{ seq: number; text: string }> {
  const [row] = await query<{ seq: number; text: string }>(
    db,
    `select coalesce(max(seq), 0) as seq, coalesce(string_agg(data ->> 'text', '' order by seq)
       filter (where event = 'chunk'), '') as text from chat_event where chat_id = $1`,
    [chatId],
  )
  return row ?? { seq: 0, text: '' }
}

export type Ended = {
  chatId: string
  threadId: string
  status: 'completed' | 'failed' | 'cancelled'
  answer: string
  excerpt: string
  events: readonly (ChatEvent & { bytes: number })[]
  epoch: number
  creditsUsed: number
  /** The memory of the thread; undefined leaves the stored memory unchanged. */
  memory: JsonObject | null | undefined
  at: Date
}
export async function endTurn(tx: Tx, ended: Ended): Promise<void> {
  const last = ended.events.at(-1)
  if (!last) throw new Error('a turn ends with an event')
  await query(
    tx,
    `with events as (insert into chat_event (chat_id, seq, epoch, event, data, bytes)
       select $1, e.seq, $3, e.event, e.data, e.bytes
       from jsonb_to_recordset($2::jsonb) e (seq integer, event text, data jsonb, bytes integer)),
     calls as (delete from chat_call where chat_id = $1),
     thread as (update chat_thread set updated_at = greatest(updated_at, $10), last_message = $11,
       memory = case when $12 then $13::jsonb else memory end where thread_id = $14)
     update chat_turn set status = $4, answer = $5, last_event = $6, last_data = $7::jsonb, last_seq = $8,
       credits_used = $9, completed_at = $10 where chat_id = $1`,
    [
      ended.chatId,
      jsonText(ended.events),
      ended.epoch,
      ended.status,
      ended.answer,
      last.event,
      jsonText(last.data),
      last.seq,
      ended.creditsUsed,
      ended.at,
      ended.excerpt,
      ended.memory !== undefined,
      jsonText(ended.memory ?? null),
      ended.threadId,
    ],
  )
}
