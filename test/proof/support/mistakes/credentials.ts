import type { MistakeSection } from './mistake.ts'

export const credentials: MistakeSection = {
  title: 'Credentials',
  mistakes: [
    {
      mistake: 'No credential',
      send: 'GET /v1/user',
      headers: { authorization: null },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'A bearer token is required in the Authorization header: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'The token without Bearer',
      send: 'GET /v1/user',
      headers: { authorization: '{token}' },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'The Authorization header has the wrong form: send the word Bearer, a space and the token',
      },
    },
    {
      mistake: 'Basic authentication',
      send: 'GET /v1/user',
      headers: { authorization: 'Basic eDp5' },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'The Authorization header has the wrong form: send the word Bearer, a space and the token',
      },
    },
    {
      mistake: 'A colon after Bearer',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer: {token}' },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'The Authorization header has the wrong form: send the word Bearer, a space and the token',
      },
    },
    {
      mistake: 'Bearer twice',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer Bearer {token}' },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'The Authorization header has the wrong form: send the word Bearer, a space and the token',
      },
    },
    {
      mistake: 'The token as an API key',
      send: 'GET /v1/user',
      headers: { authorization: null, 'x-api-key': '{token}' },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'A bearer token is required in the Authorization header: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'The token in the query',
      send: 'GET /v1/user?access_token={token}',
      headers: { authorization: null },
      answer: {
        status: 401,
        code: 'unauthorized',
        says: 'A bearer token is required in the Authorization header: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'The agent id for the token',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer {agent_id}' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'This is the agent id, which is no token: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token that was cut short',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer agt_q3mYk' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'The token is incomplete or garbled: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token of another service',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer sk-q3mYk' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'The credential is not a token of this gateway, which begins with agt_: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token of another gateway',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer {unknown_token}' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'The token is unknown, expired or revoked: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token that has expired',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer {expired_token}' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'The token is unknown, expired or revoked: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token that was revoked',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer {revoked_token}' },
      answer: {
        status: 401,
        code: 'invalid_token',
        says: 'The token is unknown, expired or revoked: obtain one with `auth_token` (POST /v1/auth/token)',
      },
    },
    {
      mistake: 'A token without the scope of the operation',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5' },
      headers: { authorization: 'Bearer {reading_token}' },
      answer: {
        status: 403,
        code: 'insufficient_scope',
        says: 'The token lacks the scope earn, which this operation needs: use a token that has it',
      },
    },
    {
      mistake: 'Revoking every token with a token that only reads',
      send: 'DELETE /v1/auth/token?all=true',
      headers: { authorization: 'Bearer {reading_token}' },
      answer: {
        status: 403,
        code: 'insufficient_scope',
        says: 'Revoking all tokens requires the scope manage: use a token that has it, or leave `all` out',
      },
    },
    {
      mistake: 'A suspended account',
      send: 'GET /v1/user',
      headers: { authorization: 'Bearer {suspended_token}' },
      answer: {
        status: 403,
        code: 'suspended',
        says: 'The account is suspended; ask the operator of this gateway',
      },
    },
  ],
}
