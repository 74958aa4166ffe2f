import { appOf, type Caller } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { WebhookRow } from '#store/tables/webhooks.ts'
import * as store from './webhook-store.ts'

/**
 * Which webhooks a caller sees and changes: an app of a person its own and those of no app, a key pair and the pages of
 * the gateway all of the user. Others are answered like those that do not exist.
 */

export type HoldAccess = (tx: Tx, caller: Caller) => Promise<boolean>

export function isVisible({ client_id: clientId }: Pick<WebhookRow, 'client_id'>, caller: Caller): boolean {
  const app = appOf(caller)
  return app === null || clientId === null || clientId === app
}

/** Whether it was this caller who gave it its address or its secret: nobody else is shown the secret. */
export const isOwn = ({ client_id: clientId }: Pick<WebhookRow, 'client_id'>, caller: Caller): boolean =>
  clientId === appOf(caller)

export const noWebhook = () => notFound('webhook', 'webhooks_list')

export async function find(db: Queryable, caller: Caller, webhookId: string): Promise<store.Webhook> {
  const row = await store.findWebhook(db, caller.userId, webhookId)
  if (!row || !isVisible(row, caller)) throw noWebhook()
  return row
}

/**
 * The first statements of every change. All of them lock in one order: the access of the caller, the webhooks of the
 * user, the cursor, the webhook, its secrets, and last the log.
 */
export async function lock(tx: Tx, caller: Caller, holdAccess: HoldAccess): Promise<void> {
  if (!(await holdAccess(tx, caller)))
    throw new Fault('invalid_token', 'The token was revoked meanwhile: obtain another one')
  await store.lockWebhooks(tx, caller.userId)
}
