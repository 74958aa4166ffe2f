import { appOf, type Caller } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { WebhookRow } from '#store/tables/webhooks.ts'
import * as store from './webhook-store.ts'

/**
 * This module says which webhooks a caller sees and changes. An app of a person sees its own and those of no app; a key
 * pair and the pages of the gateway see all of the user. Any other webhook is answered like one that does not exist.
 */

export type HoldAccess = (tx: Tx, caller: Caller) => Promise<boolean>

export function isVisible({ client_id: clientId }: Pick<WebhookRow, 'client_id'>, caller: Caller): boolean {
  const app = appOf(caller)
  return app === null || clientId === null || clientId === app
}

/** Whether this caller gave the webhook its address or its secret; nobody else is shown the secret. */
export const isOwn = ({ client_id: clientId }: Pick<WebhookRow, 'client_id'>, caller: Caller): boolean =>
  clientId === appOf(caller)

export const noWebhook = () => notFound('webhook', 'webhooks_list')

export async function find(db: Queryable, caller: Caller, webhookId: string): Promise<store.Webhook> {
  const row = await store.findWebhook(db, caller.userId, webhookId)
  if (!row || !isVisible(row, caller)) throw noWebhook()
  return row
}

/**
 * Every change of webhooks takes these locks first. All changes lock in the same order: the access of the caller,
 * the webhooks of the user, the cursor, the webhook, its secrets, and last the log.
 */
export async function lock(tx: Tx, caller: Caller, holdAccess: HoldAccess): Promise<void> {
  if (!(await holdAccess(tx, caller)))
    throw new Fault('invalid_token', 'The token was revoked meanwhile: obtain another one')
  await store.lockWebhooks(tx, caller.userId)
}
