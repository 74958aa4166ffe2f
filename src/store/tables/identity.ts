import type { Generated } from 'kysely'

export type UserRow = {
  id: string
  agent_id: string
  auth_scheme: 'keypair' | 'oauth'
  name: string | null
  email: string | null
  plan: Generated<string>
  disclaimer_acknowledged_at: Generated<Date | null>
  disclaimer_version: Generated<string | null>
  suspended_at: Generated<Date | null>
  created_at: Date
}

export type ChallengeRow = {
  nonce: string
  public_key: Uint8Array
  agent_name: string | null
  text: string
  expires_at: Date
  used_at: Generated<Date | null>
  created_at: Date
}

export type WalletRow = {
  id: string
  user_id: string
  kind: 'evm' | 'svm'
  address: string
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  version: number
  created_at: Date
}

export type PolicyRow = {
  user_id: string
  version: Generated<number>
  per_transaction_micros: bigint | null
  per_day_micros: bigint | null
  chat_per_day_micros: Generated<bigint | null>
  chains: string[] | null
  tokens: string[] | null
  recipients: string[] | null
  approval_above_micros: Generated<bigint | null>
  updated_at: Date
}

export type PolicyChangeRow = {
  change_id: string
  user_id: string
  field:
    | 'perTransactionMicros'
    | 'perDayMicros'
    | 'chatPerDayMicros'
    | 'chains'
    | 'tokens'
    | 'recipients'
    | 'approvalAboveMicros'
  micros: bigint | null
  entries: string[] | null
  requested_at: Date
  effective_at: Date
}

export type TransferRecipientRow = {
  recipient_id: string
  user_id: string
  chain_id: string
  address: string
  label: string
  agents: 'denied' | 'approval' | 'allowed'
  added_by: string
  created_at: Date
  effective_at: Date
}

export type AgentLinkRow = {
  user_id: string
  person_id: string
  name: string | null
  linked_at: Date
  contested_at: Date | null
  limits_before: Generated<object>
  contest_mailed_at: Generated<Date | null>
}

export type IdentityTables = {
  app_user: UserRow
  agent_key: { public_key: Uint8Array; user_id: string; created_at: Date; revoked_at: Generated<Date | null> }
  challenge: ChallengeRow
  spent_signature: { digest: Uint8Array; expires_at: Date }
  access_token: {
    hash: Uint8Array
    user_id: string
    scopes: string[]
    expires_at: Date
    created_at: Date
    key_id: Generated<string | null>
    key_name: Generated<string | null>
    grant_id: Generated<string | null>
  }
  wallet: WalletRow
  signup_grant: { proof: Uint8Array; user_id: string; granted_at: Date }
  credit_bucket: { user_id: string; sub_account: string; expires_at: Date }
  agent_link: AgentLinkRow
  agent_link_code: { user_id: string; code_hash: Uint8Array; created_at: Date; expires_at: Date }
  policy: PolicyRow
  policy_change: PolicyChangeRow
  transfer_recipient: TransferRecipientRow
  policy_spend: {
    task_id: string
    user_id: string
    usd_micros: bigint
    authorized_micros: Generated<bigint>
    state: 'reserved' | 'released'
    at: Date
  }
  policy_chat_spend: { task_id: string; user_id: string; at: Date }
  kill_switch: {
    scope: 'global' | 'user' | 'venue'
    subject: string
    since: Date
    pressed_at: Generated<Date>
    set_by: string
    reason: Generated<string | null>
  }
}
