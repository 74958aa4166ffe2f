import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metricsOfExpression, parseMetrics, problemsOf } from './prometheus.ts'

const described = (name: string, type: string, ...samples: string[]) =>
  [`# HELP ${name} Help`, `# TYPE ${name} ${type}`, ...samples, ''].join('\n')

test('a valid answer is parsed, and no rule is broken', () => {
  const histogram = ['_bucket{le="1"} 1', '_bucket{le="+Inf"} 2', '_sum 3', '_count 2'].map(
    (end) => `call_seconds${end}`,
  )
  const text =
    described(
      'requests_total',
      'counter',
      'requests_total{result="a\\"b"} 2',
      'requests_total{result="c"} 1',
    ) + described('call_seconds', 'histogram', ...histogram)
  const scrape = parseMetrics(text)
  assert.deepEqual(problemsOf(scrape), [])
  assert.equal(scrape.value('requests_total', { result: 'c' }), 1)
  assert.equal(scrape.value('call_seconds_count'), 2)
  assert.equal(scrape.value('absent'), undefined)
})

test('each broken rule is detected', () => {
  const broken: [string, RegExp][] = [
    [described('requests', 'counter', 'requests 1'), /should have "_total"/],
    [described('requests_total', 'gauge', 'requests_total 1'), /should not have "_total"/],
    [described('wait_milliseconds', 'gauge', 'wait_milliseconds 1'), /use base unit "seconds"/],
    [described('wait_ms', 'gauge', 'wait_ms 1'), /abbreviated units/],
    [described('queue_gauge', 'gauge', 'queue_gauge 1'), /include its type/],
    [described('queueDepth', 'gauge', 'queueDepth 1'), /snake_case/],
    [described('queue_count', 'gauge', 'queue_count 1'), /only histograms/],
    [described('queue', 'gauge', 'queue{le="1"} 1'), /"le"/],
    ['# TYPE queue gauge\nqueue 1\n', /no help text/],
    ['# HELP queue Help\nqueue 1\n', /no type/],
    [
      described(
        'call_seconds',
        'histogram',
        'call_seconds_bucket{le="1"} 1',
        'call_seconds_sum 1',
        'call_seconds_count 1',
      ),
      /incomplete/,
    ],
  ]
  for (const [text, problem] of broken) assert.match(problemsOf(parseMetrics(text)).join(), problem)
})

test('an answer that no scraper accepts is rejected', () => {
  const refused: [string, RegExp][] = [
    [described('a', 'gauge', 'a 1', 'a 2'), /a series twice/],
    [described('a', 'gauge', 'a{x="1",y="2"} 1', 'a{y="2",x="1"} 2'), /a series twice/],
    [described('a', 'gauge', 'a 1') + described('a', 'gauge', 'a{x="1"} 1'), /twice/],
    [`${described('a', 'gauge', 'a 1')}${described('b', 'gauge', 'b 1')}a{x="1"} 1\n`, /outside its family/],
    [described('a', 'gauge', 'a{x=1} 1'), /not a list of labels/],
    [described('a', 'gauge', 'a one'), /not a sample/],
    ['a 1', /the last line/],
  ]
  for (const [text, why] of refused) assert.throws(() => parseMetrics(text), why)
})

test('an expression is searched for metrics, not for functions, labels and keywords', () => {
  const expression = `sum by (operation) (rate(requests_total{status="5xx", le!="a_b"}[5m])) / on (instance) group_left (x)
    histogram_quantile(0.99, sum by (le) (call_seconds_bucket)) > bool 0.05 and time() - at_seconds offset 5m > 1e3 unless absent(up)`
  assert.deepEqual(metricsOfExpression(expression).sort(), [
    'at_seconds',
    'call_seconds_bucket',
    'requests_total',
    'up',
  ])
})
