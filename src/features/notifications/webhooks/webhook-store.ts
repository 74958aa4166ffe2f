import type { SealedSecret } from '#kernel/wire/sealed-secret.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type {
  WebhookCursorRow,
  WebhookDeliveryRow,
  WebhookRow,
  WebhookSecretRow,
} from '#store/tables/webhooks.ts'

export type Webhook = WebhookRow &
  Pick<WebhookCursorRow, 'seq' | 'status' | 'disabled_reason' | 'disabled_at' | 'attempts' | 'retry_at'>

const webhooks = () =>
  builder
    .selectFrom('webhook')
    .innerJoin('webhook_cursor', 'webhook_cursor.webhook_id', 'webhook.webhook_id')
    .selectAll('webhook')
    .select([
      'webhook_cursor.seq',
      'webhook_cursor.status',
      'webhook_cursor.disabled_reason',
      'webhook_cursor.disabled_at',
      'webhook_cursor.attempts',
      'webhook_cursor.retry_at',
    ])

export const webhooksOf = (db: Queryable, userId: string): Promise<Webhook[]> =>
  fetchAll(db, webhooks().where('webhook.user_id', '=', userId).orderBy('webhook.webhook_id'))

export const findWebhook = (db: Queryable, userId: string, webhookId: string): Promise<Webhook | undefined> =>
  fetchOne(db, webhooks().where('webhook.user_id', '=', userId).where('webhook.webhook_id', '=', webhookId))

const lockClass = 7_061_952

/** Locks the user's webhooks until the transaction ends, so that two requests cannot both take the last place. */
export const lockWebhooks = (db: Queryable, userId: string) =>
  query(db, 'select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, userId])

export const insertWebhook = (db: Queryable, row: WebhookRow) =>
  fetchAll(db, builder.insertInto('webhook').values(row))

/** Inserts the cursor of a webhook; delivery begins after the newest event. */
export const insertCursor = (db: Queryable, { webhook_id, user_id }: WebhookRow) =>
  query(
    db,
    `insert into webhook_cursor (webhook_id, user_id, seq, status, attempts, messages, epoch)
     values ($1, $2, coalesce((select seq from user_event_seq where user_id = $2), 0), 'enabled', 0, 0, 0)`,
    [webhook_id, user_id],
  )

type Changeable = Pick<WebhookRow, 'webhook_id' | 'url' | 'types' | 'description' | 'client_id'>

export const updateWebhook = (
  db: Queryable,
  { webhook_id, url, types, description, client_id }: Changeable,
) =>
  query(
    db,
    'update webhook set url = $2, types = $3, description = $4, client_id = $5 where webhook_id = $1',
    [webhook_id, url, types, description, client_id],
  )

export const setOwner = (db: Queryable, webhookId: string, clientId: string | null) =>
  query(db, 'update webhook set client_id = $2 where webhook_id = $1', [webhookId, clientId])

/** A delivery under way was begun with values that have now changed, so the new epoch keeps it from committing. */
const fence = 'epoch = epoch + 1, owner = null'

export const fenceDelivery = (db: Queryable, webhookId: string) =>
  query(db, `update webhook_cursor set ${fence} where webhook_id = $1`, [webhookId])

/** Restarts delivery: the next attempt counts as the first one of its message. */
async function restart(db: Queryable, webhookId: string, changes: string, values: unknown[]): Promise<void> {
  await query(
    db,
    `update webhook_cursor set ${fence}, attempts = 0, retry_at = null, ${changes} where webhook_id = $1`,
    [webhookId, ...values],
  )
  await query(
    db,
    `update webhook_delivery set status = 'failed', next_attempt_at = null
     where webhook_id = $1 and status = 'retrying'`,
    [webhookId],
  )
}

/** A new address has answered nothing yet, so it is neither quick nor slow. */
export const restartDelivery = (db: Queryable, webhookId: string) =>
  restart(db, webhookId, 'is_slow = null', [])

/** Restarts the current message, because a failed event may not be among the wanted types any more. */
export const restartMessage = (db: Queryable, webhookId: string) => restart(db, webhookId, 'seq = seq', [])

export const enableWebhook = (db: Queryable, webhookId: string) =>
  restart(db, webhookId, `status = 'enabled', disabled_reason = null, disabled_at = null, is_slow = null`, [])

/** Disables the webhook for its user, so the gateway states no reason. */
export const stopWebhook = (db: Queryable, webhookId: string, at: Date) =>
  restart(db, webhookId, `status = 'disabled', disabled_at = $2`, [at])

export const moveCursor = (db: Queryable, webhookId: string, seq: bigint) =>
  restart(db, webhookId, 'seq = $2', [seq])

/** Deletes the cursors first, because a delivery locks a cursor before it refers to the webhook. */
export async function deleteWebhooks(db: Queryable, webhookIds: readonly string[]): Promise<void> {
  await query(db, 'delete from webhook_cursor where webhook_id = any($1::uuid[])', [webhookIds])
  await query(db, 'delete from webhook where webhook_id = any($1::uuid[])', [webhookIds])
}

export const webhooksOfApps = (
  db: Queryable,
  userId: string,
): Promise<{ client_id: string; url: string }[]> =>
  query(
    db,
    'select client_id, url from webhook where user_id = $1 and client_id is not null order by webhook_id',
    [userId],
  )

export async function deliveriesOf(
  db: Queryable,
  webhookId: string,
  { skip, limit }: { skip: number; limit: number },
): Promise<{ rows: WebhookDeliveryRow[]; total: number }> {
  const rows = await fetchAll(
    db,
    builder
      .selectFrom('webhook_delivery')
      .selectAll()
      .where('webhook_id', '=', webhookId)
      .orderBy('message', 'desc'),
  )
  return { rows: rows.slice(skip, skip + limit), total: rows.length }
}

export const secretsOf = (db: Queryable, webhookId: string, now: Date): Promise<WebhookSecretRow[]> =>
  query(
    db,
    `select * from webhook_secret where webhook_id = $1 and (expires_at is null or expires_at > $2)
     order by expires_at desc nulls first`,
    [webhookId, now],
  )

export const insertSecret = (db: Queryable, row: WebhookSecretRow) =>
  fetchAll(db, builder.insertInto('webhook_secret').values(row))

/** Lets the newest former secrets sign until `until`; deletes older ones, because a header has few signatures. */
export async function expireSecrets(
  db: Queryable,
  webhookId: string,
  until: Date,
  formerMax: number,
): Promise<void> {
  await query(db, 'update webhook_secret set expires_at = $2 where webhook_id = $1 and expires_at is null', [
    webhookId,
    until,
  ])
  await query(
    db,
    `delete from webhook_secret where webhook_id = $1 and secret_id not in
       (select secret_id from webhook_secret where webhook_id = $1 order by expires_at desc limit $2)`,
    [webhookId, formerMax],
  )
}

const rewrapBatch = 100

export const secretsOfOtherKeys = (
  db: Queryable,
  kekId: string,
  after: string,
): Promise<WebhookSecretRow[]> =>
  query(
    db,
    `select * from webhook_secret where (kek_id < $1 or kek_id > $1) and secret_id > $2
     order by secret_id limit $3`,
    [kekId, after, rewrapBatch],
  )

export const replaceSealed = (db: Queryable, former: WebhookSecretRow, sealed: SealedSecret) =>
  query(
    db,
    `update webhook_secret set ciphertext = $2, wrapped_dek = $3, kek_id = $4
     where secret_id = $1 and kek_id = $5`,
    [former.secret_id, sealed.ciphertext, sealed.wrapped_dek, sealed.kek_id, former.kek_id],
  )

export const formerSecretEnd = async (db: Queryable, webhookId: string): Promise<Date | null> => {
  const [row] = await query<{ until: Date | null }>(
    db,
    'select max(expires_at) as until from webhook_secret where webhook_id = $1',
    [webhookId],
  )
  return row?.until ?? null
}
