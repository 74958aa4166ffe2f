import type { EventLog } from '#durable/events/event-log.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { deletedEvent, type EndReason, originOf } from './webhook-events.ts'
import * as store from './webhook-store.ts'

export type EndedWebhooks = {
  userId: string
  /** The app whose webhooks end; undefined stands for all webhooks of the user. */
  clientId: string | undefined
  reason: EndReason
}

/**
 * Deletes webhooks with their secrets, in the transaction that ends the access of those who added them. The last
 * statement adds the events. Returns false if there were no such webhooks.
 */
export async function endWebhooks(
  events: Pick<EventLog, 'add'>,
  tx: Tx,
  { userId, clientId, reason }: EndedWebhooks,
): Promise<boolean> {
  await store.lockWebhooks(tx, userId)
  const all = await store.webhooksOf(tx, userId)
  const ended = all.filter((each) => clientId === undefined || each.client_id === clientId)
  if (ended.length === 0) return false
  const ids = ended.map(({ webhook_id: id }) => id)
  await store.deleteWebhooks(tx, ids)
  const deletions = ended.map((row) => deletedEvent(row, reason))
  await events.add(tx, userId, deletions)
  return true
}

export const postedOrigins = async (
  db: Queryable,
  userId: string,
): Promise<{ clientId: string; origin: string }[]> =>
  (await store.webhooksOfApps(db, userId)).map((row) => ({
    clientId: row.client_id,
    origin: originOf(row),
  }))
