import type { MistakeSection } from './mistake.ts'

export const keys: MistakeSection = {
  title: 'Idempotency keys',
  mistakes: [
    {
      mistake: 'One key for two amounts',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '6' },
      headers: { 'idempotency-key': 'k-amounts' },
      before: [
        {
          send: 'POST /v1/earn/deposit',
          body: { amount_usdc: '5' },
          headers: { 'idempotency-key': 'k-amounts' },
        },
      ],
      answer: {
        status: 409,
        code: 'idempotency_conflict',
        says: 'This idempotency key was used for another request: repeat that request unchanged, or use a new key',
      },
    },
    {
      mistake: 'One key for two operations',
      send: 'POST /v1/perp/fund',
      body: { amount_usd: '10' },
      headers: { 'idempotency-key': 'k-operations' },
      before: [
        {
          send: 'POST /v1/earn/deposit',
          body: { amount_usdc: '5' },
          headers: { 'idempotency-key': 'k-operations' },
        },
      ],
      answer: {
        status: 409,
        code: 'idempotency_conflict',
        says: 'This idempotency key was used for another request: repeat that request unchanged, or use a new key',
      },
    },
    {
      mistake: 'A key with spaces',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5' },
      headers: { 'idempotency-key': 'my first deposit' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'header.Idempotency-Key',
        says: 'Input should be 1 to 255 visible ASCII characters without spaces',
      },
    },
    {
      mistake: 'A key that is too long',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5' },
      headers: { 'idempotency-key': '{long_key}' },
      shown: 'POST /v1/earn/deposit with a key of 256 characters',
      answer: {
        status: 422,
        code: 'validation',
        at: 'header.Idempotency-Key',
        says: 'Input should be 1 to 255 visible ASCII characters without spaces',
      },
    },
    {
      mistake: 'Two keys',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5', idempotency_key: 'k-2' },
      headers: { 'idempotency-key': 'k-1' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.idempotency_key',
        says: 'The key differs from the Idempotency-Key header; send one of them',
      },
    },
    {
      mistake: 'The key in the query',
      send: 'POST /v1/earn/deposit?idempotency_key=k-1',
      body: { amount_usdc: '5' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.idempotency_key',
        says: 'Extra inputs are not permitted here: send `idempotency_key` in the body',
      },
    },
    {
      mistake: 'A number for a key',
      send: 'POST /v1/earn/deposit',
      body: { amount_usdc: '5', idempotency_key: 7 },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.idempotency_key',
        says: 'Input should be 1 to 255 visible ASCII characters without spaces',
      },
    },
  ],
}
