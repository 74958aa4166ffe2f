import { keyDaysMax, keysMax } from '#kernel/contract/access-key.ts'
import { act, group, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { OneOf, Time } from '#kernel/contract/wire-types.ts'

/** What a key may do; every key reads. */
export const keyScopes = ['read', 'chat', 'trade', 'earn', 'manage', 'propose'] as const
const KeyId = T.String({ format: 'uuid', description: 'Id of the key; not a secret' })
const keyFields = {
  key_id: KeyId,
  name: T.String(),
  scopes: T.Array(OneOf(keyScopes), { description: 'What the key may do; every key reads' }),
}

const about =
  'Key pair registration and bearer tokens: register, verify, token; sign-up of a person with OAuth.'

export const contract = group('auth', about, {
  register: act('POST /v1/auth/register', {
    summary: 'Register an Ed25519 public key and receive the challenge to sign',
    description:
      'Use it once per key pair, as the first call. `public_key` is the base64 text (standard or URL-safe) of the 32 bytes of an Ed25519 public key. Sign the UTF-8 bytes of `challenge`. Next: send `nonce` and the signature to `auth_verify` before `expires_at`. `duplicate_key` (409) carries the `agent_id` of a key that is registered: go on with `auth_token`.',
    access: 'public',
    callers: 'keys',
    rate: 'auth',
    faults: ['duplicate_key', 'rate_limited'],
    body: T.Object(
      {
        public_key: T.String({ description: 'Base64 Ed25519 public key' }),
        agent_name: T.Optional(
          T.String({
            maxLength: 64,
            pattern: '^[^\\u0000-\\u001f\\u007f]*$',
            description: 'Name of the agent, in one line without control characters',
            examples: ['momentum-bot'],
          }),
        ),
      },
      {
        $id: 'RegisterRequest',
        examples: [
          { public_key: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', agent_name: 'momentum-bot' },
        ],
      },
    ),
    output: T.Object(
      { challenge: T.String(), nonce: T.String({ format: 'uuid' }), expires_at: Time },
      { $id: 'RegisterResponse' },
    ),
  }),
  verify: act('POST /v1/auth/verify', {
    summary: 'Prove the key: creates the agent, its wallets and its first credits',
    description:
      'Use it after `auth_register`, before the challenge expires. Keep `agent_id`: it is not a secret and every token request needs it. Next: `auth_token`. While `wallets_provisioning` is true, poll `wallets_list` until `provisioning` is false.',
    access: 'public',
    callers: 'keys',
    rate: 'auth',
    faults: ['invalid_challenge', 'invalid_signature', 'duplicate_key', 'rate_limited'],
    body: T.Object(
      {
        nonce: T.String({ description: 'The nonce of the register step' }),
        signature: T.String({ description: 'Base64 Ed25519 signature over the challenge' }),
      },
      {
        $id: 'VerifyRequest',
        examples: [
          {
            nonce: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11',
            signature:
              'k0mJ8yTg0b0mX1m0lYwqg7y8n0c1v2b3n4m5Q6w7e8r9t0y1u2i3o4p5a6s7d8f9g0h1j2k3l4z5x6c7v8b9nA==',
          },
        ],
      },
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
      'Use it to obtain a bearer token, and again before `expires_in` seconds are over. Sign the UTF-8 bytes of `agent_id` followed at once by the decimal `timestamp` (Unix seconds within 300 s of the server, or Unix milliseconds); the timestamp may also be signed as 8 big-endian bytes. Each signature is good for one token: concurrent workers of one agent send Unix milliseconds (13 digits), or share a token. `stale_timestamp` and `signature_replayed` carry `server_time`: sign anew with it. A second call in the same second counts its timestamp up by one, as `next_timestamp` says. Next: send `Authorization: Bearer <token>` with every other call.',
    access: 'public',
    callers: 'keys',
    rate: 'auth',
    counts: 'failures',
    faults: ['invalid_signature', 'stale_timestamp', 'signature_replayed', 'suspended', 'rate_limited'],
    body: T.Object(
      {
        agent_id: T.String(),
        timestamp: T.Integer({ description: 'Unix seconds, or Unix milliseconds; signed exactly as sent' }),
        signature: T.String({ description: 'Base64 Ed25519 signature over agent_id and timestamp' }),
      },
      {
        $id: 'TokenRequest',
        examples: [
          {
            agent_id: 'agt_01JZ8Q4W7N5V0K3T2R6Y9B1C4D',
            timestamp: 1769860800,
            signature:
              'k0mJ8yTg0b0mX1m0lYwqg7y8n0c1v2b3n4m5Q6w7e8r9t0y1u2i3o4p5a6s7d8f9g0h1j2k3l4z5x6c7v8b9nA==',
          },
        ],
      },
    ),
    output: T.Object(
      { token: T.String(), expires_in: T.Integer({ description: 'Seconds' }) },
      { $id: 'TokenResponse' },
    ),
  }),

  signup: act('POST /signup', {
    summary: 'Create the account of a person who signed in with OAuth',
    description:
      'Use it once after the first sign-in with OAuth, with the access token, where the server that signs people in is another one: it creates the user, its wallets and its first credits, and other operations answer `signup_required` (403) until then. A person who connects an app on a page of this gateway has them already. The body of the first call is any JSON object; it is stored as sent, and `name` becomes the name of the user. Called again it changes nothing and answers with the same user and `created: false`. Next: `user_show`.',
    access: 'person',
    repeatable: true,
    rate: 'auth',
    bodyOptional: true,
    body: T.Object(
      {},
      {
        $id: 'SignupRequest',
        additionalProperties: true,
        examples: [{ name: 'Ada Lovelace', referral_code: 'friend-7' }],
      },
    ),
    output: T.Object(
      {
        user_id: T.String({ format: 'uuid' }),
        agent_id: T.String({ description: 'Public id of the user' }),
        created: T.Boolean({ description: 'True in the first call of the person' }),
        wallets: T.Array(T.Object({ address: T.String(), chain_type: T.String() })),
        wallets_provisioning: T.Boolean(),
        credits_available: T.Number(),
      },
      { $id: 'SignupResponse' },
    ),
  }),

  createKey: act('POST /v1/auth/keys', {
    isAddition: true,
    summary: 'Make a key with an end date, for a client that knows only fixed headers',
    description: `Use it where a client cannot renew tokens: it sends the key as a bearer token until \`expires_at\`. The agent's key pair signs for it, and no token makes one: the UTF-8 bytes of \`portico-auth_create_key:v1:<agent_id>:<timestamp>:<expires_in_days>:<scopes>:<name>\`, with commas between the scopes as they are sent. \`key\` is shown once. It confirms nothing that a person confirms. At most ${keysMax} at once. A person makes one at \`/oauth/account\`. Next: \`auth_keys\` lists them, \`auth_revoke_key\` ends one.`,
    access: 'public',
    callers: 'keys',
    rate: 'auth',
    counts: 'failures',
    isSigned: true,
    signs: ['expires_in_days', 'scopes', 'name'],
    faults: [
      'invalid_signature',
      'stale_timestamp',
      'signature_replayed',
      'suspended',
      'limit_reached',
      'rate_limited',
    ],
    body: T.Object(
      {
        agent_id: T.String(),
        timestamp: T.Integer({ description: 'Unix seconds, or Unix milliseconds; signed exactly as sent' }),
        signature: T.String({ description: 'Base64 Ed25519 signature, good once' }),
        name: T.String({
          minLength: 1,
          maxLength: 64,
          pattern: '^[^\\u0000-\\u001f\\u007f]+$',
          description: 'What the key is for, in one line',
          examples: ['editor'],
        }),
        scopes: T.Array(OneOf(keyScopes), {
          maxItems: keyScopes.length,
          description: 'What the key may do; every key reads',
        }),
        expires_in_days: T.Integer({ minimum: 1, maximum: keyDaysMax, description: 'When the key ends' }),
      },
      {
        $id: 'CreateKeyRequest',
        examples: [
          {
            agent_id: 'agt_01JZ8Q4W7N5V0K3T2R6Y9B1C4D',
            timestamp: 1769860800,
            signature:
              'k0mJ8yTg0b0mX1m0lYwqg7y8n0c1v2b3n4m5Q6w7e8r9t0y1u2i3o4p5a6s7d8f9g0h1j2k3l4z5x6c7v8b9nA==',
            name: 'editor',
            scopes: ['read', 'trade'],
            expires_in_days: 30,
          },
        ],
      },
    ),
    output: T.Object(
      {
        ...keyFields,
        key: T.String({ description: 'The secret, shown once: send it as a bearer token' }),
        expires_at: Time,
      },
      { $id: 'CreateKeyResponse' },
    ),
  }),
  keys: read('GET /v1/auth/keys', {
    isAddition: true,
    summary: 'The keys with an end date',
    description:
      'Use it to see which fixed headers still open this account, oldest first; no secret is shown. Next: `auth_revoke_key` ends one.',
    access: 'read',
    output: T.Object(
      {
        keys: T.Array(T.Object({ ...keyFields, created_at: Time, expires_at: Time }), {
          description: 'The keys, the oldest first',
        }),
        max: T.Integer({ description: 'How many a user may have' }),
      },
      { $id: 'KeysResponse' },
    ),
  }),
  revokeKey: act('DELETE /v1/auth/keys/{key_id}', {
    isAddition: true,
    summary: 'Revoke a key, at once',
    description:
      'Use it when a client should have no access any more, or a key may have leaked. It takes effect at once on every instance. Webhooks that a key of a person has added are deleted with it. Next: `auth_keys`.',
    access: 'manage',
    rate: 'exit',
    repeatable: true,
    faults: ['not_found'],
    params: T.Object({ key_id: KeyId }),
    output: T.Object(
      { key_id: KeyId, revoked: T.Boolean({ description: 'Always true' }) },
      { $id: 'RevokeKeyResponse' },
    ),
  }),
  revoke: act('DELETE /v1/auth/token', {
    isAddition: true,
    summary: 'Revoke the token of this request, or every token of the agent',
    description:
      'Use it when a token may have leaked. It takes effect at once on every instance, and streams opened with the token end; `all` also deletes all webhooks and pauses all schedules, since a token that leaked may have made some. Next: the key pair stays valid, so sign again with `auth_token`.',
    access: 'read',
    repeatable: true,
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

export type AuthInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
