import type { ActScope, Caller } from '#kernel/contract/caller.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { WebhookRow } from '#store/tables/webhooks.ts'
import type { WebhooksDeps } from './deps.ts'

/** Events about webhooks omit the path of an address, because it may be a secret and apps read the log too. */

type Named = Pick<WebhookRow, 'webhook_id' | 'url' | 'client_id'>
export type ChangedField = 'url' | 'types' | 'description' | 'enabled' | 'secret'
/** A webhook is `deleted` by a call, `disconnected` with its app, and `revoked` when all access to the account ends. */
export type EndReason = 'deleted' | 'disconnected' | 'revoked'

export const originOf = ({ url }: Pick<WebhookRow, 'url'>): string => new URL(url).origin

const eventOf = (type: string, row: Named, data: NewEvent['data']): NewEvent => ({
  type,
  subject: { kind: 'webhook', id: row.webhook_id },
  data: { webhook_id: row.webhook_id, origin: originOf(row), client_id: row.client_id, ...data },
})

export const createdEvent = (row: Named & Pick<WebhookRow, 'types'>): NewEvent =>
  eventOf('webhook.created', row, { types: row.types })

export const updatedEvent = (row: Named, fields: readonly ChangedField[]): NewEvent =>
  eventOf('webhook.updated', row, { fields: [...fields] })

export const deletedEvent = (row: Named, reason: EndReason): NewEvent =>
  eventOf('webhook.deleted', row, { reason })

/** Adds the event of a change; this must be the last statement of its transaction. */
export async function addEvent(
  { events, publishChange }: WebhooksDeps,
  { userId }: Caller,
  act: ActScope,
  event: NewEvent,
) {
  await events.add(act.tx, userId, [event])
  act.afterCommit(() => {
    publishChange(userId)
    events.notify(userId)
  })
}
