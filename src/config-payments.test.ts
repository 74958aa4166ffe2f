import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemsOfPayments } from './config-payments.ts'

const sold = {
  ENVIRONMENT: 'production' as const,
  STRIPE_URL: 'https://payments.example',
  STRIPE_API_KEY: 'rk_live_1',
  STRIPE_WEBHOOK_SECRETS: ['whsec_1'],
  STRIPE_PLANS: [{}],
}

test('production sends the key of payments over https alone', () => {
  assert.deepEqual(problemsOfPayments(sold), [])
  const problems = problemsOfPayments({ ...sold, STRIPE_URL: 'http://payments.example' })
  assert.deepEqual(problems, ['STRIPE_URL: production requires https, because the key is sent to it'])
})
