import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'

/** Adds events to a user's log, and locks the log's row until the end of the transaction. */
export async function appendEvents(
  tx: Tx,
  userId: string,
  events: readonly NewEvent[],
  now: Date,
): Promise<void> {
  if (events.length === 0) return
  await query(tx, 'select user_event_append($1, null, $2::jsonb, $3)', [userId, jsonText(events), now])
}
