import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCounter, createHistogram } from './metrics.ts'

test('a counter keeps one series per set of labels', () => {
  const requests = createCounter('requests_total', 'Requests')
  for (const result of ['ok', 'timeout', 'ok']) requests.add({ upstream: 'base', result })
  assert.deepEqual(requests.read().samples, [
    { labels: { upstream: 'base', result: 'ok' }, value: 2 },
    { labels: { upstream: 'base', result: 'timeout' }, value: 1 },
  ])
})

test('buckets of a histogram are cumulative, and include their bound', () => {
  const durations = createHistogram('duration_seconds', 'Durations', [0.1, 1])
  const observe = durations.series({ operation: 'earn_deposit' })
  for (const seconds of [0.05, 0.1, 0.5, 7]) observe(seconds)
  durations.series({ operation: 'user_get' })(2)
  assert.deepEqual(durations.read().samples, [
    {
      labels: { operation: 'earn_deposit' },
      buckets: [
        { bound: 0.1, count: 2 },
        { bound: 1, count: 3 },
      ],
      count: 4,
      sum: 7.65,
    },
    {
      labels: { operation: 'user_get' },
      buckets: [
        { bound: 0.1, count: 0 },
        { bound: 1, count: 0 },
      ],
      count: 1,
      sum: 2,
    },
  ])
})
