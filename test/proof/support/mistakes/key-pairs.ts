import type { MistakeSection } from './mistake.ts'

export const keyPairs: MistakeSection = {
  title: 'Key pairs and sign-in',
  mistakes: [
    {
      mistake: 'A public key in hexadecimal',
      send: 'POST /v1/auth/register',
      body: { public_key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.public_key',
        says: 'Input should be base64 of a 32-byte Ed25519 public key: 44 characters, no hexadecimal and no PEM',
      },
    },
    {
      mistake: 'A public key in PEM',
      send: 'POST /v1/auth/register',
      body: { public_key: '-----BEGIN PUBLIC KEY-----' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.public_key',
        says: 'Input should be base64 of a 32-byte Ed25519 public key: 44 characters, no hexadecimal and no PEM',
      },
    },
    {
      mistake: 'A misspelt field',
      send: 'POST /v1/auth/register',
      body: { publicKey: '{public_key}' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.public_key',
        says: 'Field required: rename `publicKey` to `public_key`',
      },
    },
    {
      mistake: 'A key that is registered',
      send: 'POST /v1/auth/register',
      body: { public_key: '{public_key}' },
      headers: { authorization: null },
      answer: {
        status: 409,
        code: 'duplicate_key',
        says: 'This public key is already registered: obtain a token for its agent_id with `auth_token`',
      },
    },
    {
      mistake: 'A name with a line break',
      send: 'POST /v1/auth/register',
      body: { public_key: '{public_key}', agent_name: 'a\nb' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.agent_name',
        says: "String has the wrong form: Name of the agent, in one line without control characters, such as 'momentum-bot'",
      },
    },
    {
      mistake: 'A nonce of another registration',
      send: 'POST /v1/auth/verify',
      body: { nonce: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11', signature: '{any_signature}' },
      headers: { authorization: null },
      answer: {
        status: 400,
        code: 'invalid_challenge',
        says: 'The challenge is unknown, used or expired. Register again to get a new one',
      },
    },
    {
      mistake: 'A signature in hexadecimal',
      send: 'POST /v1/auth/verify',
      body: { nonce: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11', signature: '0f1e2d3c4b5a' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.signature',
        says: 'Input should be base64 of a 64-byte Ed25519 signature: 88 characters, no hexadecimal',
      },
    },
    {
      mistake: 'A signature over something else',
      send: 'POST /v1/auth/verify',
      body: { nonce: '{nonce}', signature: '{any_signature}' },
      headers: { authorization: null },
      answer: {
        status: 401,
        code: 'invalid_signature',
        says: 'The signature does not match the public key: sign the UTF-8 bytes of the challenge exactly as received',
      },
    },
    {
      mistake: 'A timestamp as ISO text',
      send: 'POST /v1/auth/token',
      body: { agent_id: '{agent_id}', timestamp: '2026-01-31T12:00:00Z', signature: '{any_signature}' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.timestamp',
        says: 'Input should be a valid integer: a whole number without quotes',
      },
    },
    {
      mistake: 'A timestamp with a fraction',
      send: 'POST /v1/auth/token',
      body: { agent_id: '{agent_id}', timestamp: 1769860800.5, signature: '{any_signature}' },
      headers: { authorization: null },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.timestamp',
        says: 'Input should be a valid integer: a whole number without quotes',
      },
    },
    {
      mistake: 'A clock that is wrong',
      send: 'POST /v1/auth/token',
      body: { agent_id: '{agent_id}', timestamp: 1769860800, signature: '{any_signature}' },
      headers: { authorization: null },
      answer: {
        status: 401,
        code: 'stale_timestamp',
        says: 'The signed timestamp is more than 300 s away from server_time. Correct the clock and sign again',
      },
    },
    {
      mistake: 'A signature that does not fit',
      send: 'POST /v1/auth/token',
      raw: '{"agent_id":"{agent_id}","timestamp":{now},"signature":"{any_signature}"}',
      headers: { authorization: null, 'content-type': 'application/json' },
      answer: {
        status: 401,
        code: 'invalid_signature',
        says: 'The agent is unknown, or the signature does not match its key: sign the UTF-8 bytes of agent_id followed at once by the timestamp',
      },
    },
    {
      mistake: 'A signature that was used',
      send: 'POST /v1/auth/token',
      raw: '{used_sign_in}',
      headers: { authorization: null, 'content-type': 'application/json' },
      shown: 'POST /v1/auth/token with the body of an earlier sign-in',
      answer: {
        status: 401,
        code: 'signature_replayed',
        says: 'This signature was already used. Count the timestamp up by one and sign again; workers that share an agent should sign milliseconds',
      },
    },
  ],
}
