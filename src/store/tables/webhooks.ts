export type WebhookRow = {
  webhook_id: string
  user_id: string
  url: string
  types: string[] | null
  description: string
  client_id: string | null
  created_at: Date
}

export type WebhookSecretRow = {
  secret_id: string
  webhook_id: string
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  created_at: Date
  expires_at: Date | null
}

export type WebhookCursorRow = {
  webhook_id: string
  user_id: string
  seq: bigint
  status: 'enabled' | 'disabled'
  disabled_reason: 'failing' | 'unsubscribed' | null
  disabled_at: Date | null
  attempts: number
  retry_at: Date | null
  /** Whether the address answers slowly; null until the address has answered. */
  is_slow: boolean | null
  messages: bigint
  owner: string | null
  epoch: bigint
  claimed_at: Date | null
}

export type WebhookDeliveryRow = {
  webhook_id: string
  slot: number
  message: bigint
  seq: bigint
  event_type: string
  status: 'delivered' | 'retrying' | 'failed'
  attempts: number
  response_status: number | null
  error: string | null
  duration_ms: number
  first_attempt_at: Date
  last_attempt_at: Date
  next_attempt_at: Date | null
}

export type WebhookTables = {
  webhook: WebhookRow
  webhook_secret: WebhookSecretRow
  webhook_cursor: WebhookCursorRow
  webhook_delivery: WebhookDeliveryRow
}
