import { deliveriesMax } from '#features/notifications/webhooks-contract.ts'
import { type Queryable, query } from '#store/query.ts'
import type { WebhookCursorRow, WebhookDeliveryRow } from '#store/tables/webhooks.ts'
import type { Claimed } from './claims.ts'

type Held = Pick<Claimed, 'webhook_id' | 'owner' | 'epoch'>
export type Settlement = Pick<
  WebhookDeliveryRow,
  | 'seq'
  | 'event_type'
  | 'status'
  | 'attempts'
  | 'response_status'
  | 'error'
  | 'duration_ms'
  | 'last_attempt_at'
  | 'next_attempt_at'
> & {
  first_attempt_at: Date
  isSlow: boolean
  disabledReason: WebhookCursorRow['disabled_reason']
}

export type Settled = {
  /** False if the webhook was changed, deleted or claimed meanwhile; then no result is stored. */
  isStored: boolean
  isSuspended: boolean
}

/** Stores the result of an attempt, and with it the position in the log. After a failure the webhook is released. */
export async function settle(db: Queryable, held: Held, settlement: Settlement): Promise<Settled> {
  const { seq, status, disabledReason } = settlement
  const isDelivered = status === 'delivered'
  const [row] = await query<{ is_suspended: boolean }>(
    db,
    `with moved as (
       update webhook_cursor set seq = case when $4 then $5 else seq end, attempts = case when $4 then 0 else $6 end,
         retry_at = $7, is_slow = $8, owner = case when $4 then owner end,
         status = case when $9::text is null then status else 'disabled' end,
         disabled_reason = $9, disabled_at = case when $9::text is null then disabled_at else $10 end,
         messages = messages + case when attempts = 0 then 1 else 0 end
       where webhook_id = $1 and owner = $2 and epoch = $3 returning webhook_id, messages, user_id)
     insert into webhook_delivery as d (webhook_id, slot, message, seq, event_type, status, attempts, response_status,
         error, duration_ms, first_attempt_at, last_attempt_at, next_attempt_at)
       select webhook_id, messages % $11, messages, $5, $12, $13, $6, $14, $15, $16, $17, $10, $7 from moved
     on conflict (webhook_id, slot) do update set message = excluded.message, seq = excluded.seq,
       event_type = excluded.event_type, status = excluded.status, attempts = excluded.attempts,
       response_status = excluded.response_status, error = excluded.error, duration_ms = excluded.duration_ms,
       first_attempt_at = case when d.message = excluded.message then d.first_attempt_at else excluded.first_attempt_at end,
       last_attempt_at = excluded.last_attempt_at, next_attempt_at = excluded.next_attempt_at
     returning exists (select from moved join app_user u on u.id = moved.user_id
       where u.suspended_at is not null) as is_suspended`,
    [
      held.webhook_id,
      held.owner,
      held.epoch,
      isDelivered,
      seq,
      settlement.attempts,
      settlement.next_attempt_at,
      settlement.isSlow,
      disabledReason,
      settlement.last_attempt_at,
      deliveriesMax,
      settlement.event_type,
      status,
      settlement.response_status,
      settlement.error,
      settlement.duration_ms,
      settlement.first_attempt_at,
    ],
  )
  return { isStored: row !== undefined, isSuspended: row?.is_suspended === true }
}

/**
 * Releases the webhook until `retryAt`, if given, and returns whether more events wait. A second statement finds that
 * out, because the first one does not see an event that another instance commits meanwhile, and that instance still
 * finds the webhook claimed.
 */
export async function release(
  db: Queryable,
  { webhook_id, owner, epoch }: Held,
  { seq, retryAt }: { seq: bigint; retryAt?: Date },
): Promise<boolean> {
  const released = await query<{ user_id: string }>(
    db,
    `update webhook_cursor set seq = $4, owner = null, retry_at = coalesce($5, retry_at)
     where webhook_id = $1 and owner = $2 and epoch = $3 returning user_id`,
    [webhook_id, owner, epoch, seq, retryAt ?? null],
  )
  const userId = released[0]?.user_id
  if (userId === undefined) return false
  const behind = await query(db, 'select 1 from user_event_seq where user_id = $1 and seq > $2', [
    userId,
    seq,
  ])
  return behind.length > 0
}
