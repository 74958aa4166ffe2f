import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHistogram, gauge } from '#kernel/metrics.ts'
import { metricsText } from './metrics-text.ts'

test('help and labels are escaped as the format demands', () => {
  const metric = gauge('queue_depth', 'A "depth" \\ of\nqueues', [{ labels: { kind: 'a"b\\\n' }, value: 3 }])
  assert.equal(
    metricsText([metric]),
    '# HELP queue_depth A "depth" \\\\ of\\nqueues\n# TYPE queue_depth gauge\nqueue_depth{kind="a\\"b\\\\\\n"} 3\n',
  )
})

test('a histogram ends with the bucket of all, its sum and its count', () => {
  const durations = createHistogram('d_seconds', 'Durations', [0.5])
  durations.series({ operation: 'pay' })(2)
  assert.equal(
    metricsText([durations.read()]),
    [
      '# HELP d_seconds Durations',
      '# TYPE d_seconds histogram',
      'd_seconds_bucket{operation="pay",le="0.5"} 0',
      'd_seconds_bucket{operation="pay",le="+Inf"} 1',
      'd_seconds_sum{operation="pay"} 2',
      'd_seconds_count{operation="pay"} 1',
      '',
    ].join('\n'),
  )
})
