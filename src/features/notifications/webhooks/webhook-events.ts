import type { NewEvent } from '#kernel/task/task.ts'
import type { WebhookRow } from '#store/tables/webhooks.ts'

/** What the log of a user says about webhooks. The path of an address may be a secret: apps read the log, too. */

type Named = Pick<WebhookRow, 'webhook_id' | 'url' | 'client_id'>
export type ChangedField = 'url' | 'types' | 'description' | 'enabled' | 'secret'
/** deleted: by a call; disconnected: its app was; revoked: every access to the account ended. */
export type EndReason = 'deleted' | 'disconnected' | 'revoked'

export const originOf = ({ url }: Pick<WebhookRow, 'url'>): string => new URL(url).origin

const eventOf = (type: string, row: Named, data: NewEvent['data']): NewEvent => ({
  type,
  subject: { kind: 'webhook', id: row.webhook_id },
  data: { webhook_id: row.webhook_id, origin: originOf(row), client_id: row.client_id, ...data },
})

export const createdEvent = (row: Named & Pick<WebhookRow, 'types'>): NewEvent =>
  eventOf('webhook.created', row, { types: row.types })

/** `row`: after the change. */
export const updatedEvent = (row: Named, fields: readonly ChangedField[]): NewEvent =>
  eventOf('webhook.updated', row, { fields: [...fields] })

export const deletedEvent = (row: Named, reason: EndReason): NewEvent =>
  eventOf('webhook.deleted', row, { reason })
