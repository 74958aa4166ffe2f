export type OAuthRecordRow = {
  model: string
  id: string
  payload: Record<string, unknown>
  grant_id: string | null
  uid: string | null
  account_id: string | null
  consumed_at: Date | null
  contested_at: Date | null
  opened_by: Uint8Array | null
  created_at: Date
  expires_at: Date
}

export type OAuthKeyRow = {
  id: string
  purpose: 'signing' | 'cookie'
  public_jwk: Record<string, unknown> | null
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  created_at: Date
  active_at: Date
}

export type PersonRow = {
  id: string
  email: string
  /** Null if the person signs in without a password. */
  password_hash: string | null
  signup: Record<string, unknown> | null
  access_ended_at: Date | null
  created_at: Date
}

export type EmailCodeRow = {
  interaction: string
  email: string
  password_hash: string | null
  code_hash: Uint8Array
  attempts_left: number
  is_for_passkey: boolean
  created_at: Date
  expires_at: Date
}

export type PersonIdentityRow = {
  issuer: string
  subject: string
  person_id: string
  created_at: Date
}

export type PasskeyRow = {
  credential_id: Buffer
  id: string
  person_id: string
  public_key: Buffer
  sign_count: bigint
  is_synced: boolean
  name: string
  created_at: Date
  last_used_at: Date | null
}

export type SignInLimitRow = { key: Uint8Array; count: number; ends_at: Date }

export type OAuthTables = {
  passkey: PasskeyRow
  person_identity: PersonIdentityRow
  sign_in_limit: SignInLimitRow
  oauth_record: OAuthRecordRow
  oauth_key: OAuthKeyRow
  person: PersonRow
  email_code: EmailCodeRow
}
