import * as T from 'typebox'
import { act, group } from '#kernel/operation.ts'
import { Time } from '#kernel/wire-types.ts'

export const contract = group('auth', {
  register: act('POST /v1/auth/register', {
    summary: 'Register an Ed25519 public key and receive the challenge to sign',
    description:
      'The key is base64 (standard or URL-safe) of 32 bytes. Sign the UTF-8 bytes of `challenge` and send the ' +
      'signature to the verify step before `expires_at`.',
    access: 'public',
    rate: 'auth',
    faults: ['duplicate_key', 'rate_limited'],
    body: T.Object(
      {
        public_key: T.String({ description: 'Base64 Ed25519 public key' }),
        agent_name: T.Optional(T.String({ maxLength: 64, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })),
      },
      { $id: 'RegisterRequest' },
    ),
    output: T.Object(
      { challenge: T.String(), nonce: T.String({ format: 'uuid' }), expires_at: Time },
      { $id: 'RegisterResponse' },
    ),
  }),
  verify: act('POST /v1/auth/verify', {
    summary: 'Prove the key: creates the agent, its wallets and its first credits',
    access: 'public',
    rate: 'auth',
    faults: ['invalid_challenge', 'invalid_signature', 'duplicate_key', 'rate_limited'],
    body: T.Object(
      {
        nonce: T.String({ description: 'The nonce of the register step' }),
        signature: T.String({ description: 'Base64 Ed25519 signature over the challenge' }),
      },
      { $id: 'VerifyRequest' },
    ),
    output: T.Object(
      {
        agent_id: T.String(),
        wallets_provisioning: T.Boolean(),
        credits_available: T.Number(),
      },
      { $id: 'VerifyResponse' },
    ),
  }),
  token: act('POST /v1/auth/token', {
    summary: 'Exchange a signature for a short-lived bearer token',
    description:
      'Sign the UTF-8 bytes of agent_id followed at once by the decimal timestamp (Unix seconds, within 300 s of ' +
      'the server). The timestamp may also be signed as 8 big-endian bytes. Each signature buys one token: workers ' +
      'of one agent that ask at the same time send Unix milliseconds (13 digits) instead, or share a token.',
    access: 'public',
    rate: 'auth',
    counts: 'failures',
    faults: ['invalid_signature', 'stale_timestamp', 'signature_replayed', 'suspended', 'rate_limited'],
    body: T.Object(
      {
        agent_id: T.String(),
        timestamp: T.Integer({ description: 'Unix seconds, or Unix milliseconds; signed exactly as sent' }),
        signature: T.String({ description: 'Base64 Ed25519 signature over agent_id and timestamp' }),
      },
      { $id: 'TokenRequest' },
    ),
    output: T.Object(
      { token: T.String(), expires_in: T.Integer({ description: 'Seconds' }) },
      { $id: 'TokenResponse' },
    ),
  }),

  revoke: act('DELETE /v1/auth/token', {
    summary: 'Revoke the token of this request, or every token of the agent',
    description:
      'For a token that may have leaked. It counts at once on every instance; streams that were opened with it end. ' +
      'The key pair stays valid: sign again for a new token.',
    access: 'read',
    rate: 'exit',
    query: T.Object({
      all: T.Optional(
        T.Boolean({ default: false, description: 'Every token of the agent; needs the scope manage' }),
      ),
    }),
    output: T.Object(
      { revoked: T.Integer({ description: 'Tokens that were revoked' }) },
      { $id: 'RevokeTokenResponse' },
    ),
  }),
})
