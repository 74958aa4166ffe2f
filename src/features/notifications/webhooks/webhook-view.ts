import type { Webhook } from './webhook-store.ts'

export const view = (row: Webhook) => ({
  webhook_id: row.webhook_id,
  url: row.url,
  types: row.types,
  description: row.description,
  status: row.status,
  disabled_reason: row.disabled_reason,
  disabled_at: row.disabled_at?.toISOString() ?? null,
  delivered_through: String(row.seq),
  failed_attempts: row.attempts,
  next_attempt_at: row.retry_at?.toISOString() ?? null,
  client_id: row.client_id,
  created_at: row.created_at.toISOString(),
})
