/** The metrics of a running gateway, and that the dashboard and the alert rules of `ops` read only existing ones. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { metricsOfExpression, parseMetrics, problemsOf, type Scrape } from '../harness/prometheus.ts'
import { eventsUntil } from '../harness/stream.ts'
import { createFundedPerson, type Person } from './users.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

type Rule = {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}
type Rules = { groups: { name: string; rules: Rule[] }[] }
type Panel = { type: string; title: string; targets?: { expr: string }[] }
type Dashboard = { panels: Panel[]; templating: { list: { type: string; definition?: string }[] } }

const rules = (parse(read('ops/prometheus/alerts.yml')) as Rules).groups.flatMap((group) => group.rules)
const dashboard = JSON.parse(read('ops/grafana/portico.json')) as Dashboard

/** Added by Prometheus itself for each target. */
const ofPrometheus = new Set(['up'])

describe('the metrics of a running gateway', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let person: Person
  let scrape: Scrape
  const scraped = async () => parseMetrics(await (await fetch(`${gateway.url}/metrics`)).text())

  before(async () => {
    gateway = await freshGateway({ HYPERLIQUID_WEIGHT_PER_MINUTE: '1200', MAINTENANCE_MS: '1000' })
    person = await createFundedPerson(gateway.url)
    const { body } = await person.deposit('25')
    assert.equal(body.outcome, 'executed', JSON.stringify(body))
    const headers = { authorization: `Bearer ${person.token}` }
    await eventsUntil(`${gateway.url}/v1/notifications/stream?after=0`, headers, () => true)
    await fetch(`${gateway.url}/v1/nothing`)
    // The balances of sponsors are in the scrape after the one that requests them, the audit within seconds.
    scrape = await eventually(
      async () => {
        const found = await scraped()
        const isComplete =
          found.families.get('portico_sponsor_balance_coins')?.samples.length &&
          found.families.has('portico_ledger_disagreements') &&
          found.families.get('portico_http_stream_duration_seconds')?.samples.length
        return isComplete ? found : undefined
      },
      'every part is measured',
      30_000,
    )
  })
  after(async () => gateway[Symbol.asyncDispose]())

  test('follow the conventions of Prometheus', () => {
    assert.deepEqual(problemsOf(scrape), [])
    for (const name of scrape.families.keys()) assert.match(name, /^(?:portico|process|nodejs)_/)
    for (const { name, samples } of scrape.families.values())
      assert.ok(samples.length <= 2_000, `${name} has ${samples.length} series`)
  })

  test('count the deposit, and nothing of its user', () => {
    const deposit = { kind: 'earn_deposit' }
    assert.equal(scrape.value('portico_tasks_accepted_total', deposit), 1)
    const ended = { ...deposit, status: 'completed', outcome: 'executed' }
    assert.equal(scrape.value('portico_tasks_ended_total', ended), 1)
    const operation = 'earn_deposit'
    assert.equal(scrape.value('portico_http_wait_duration_seconds_count', { operation }), 1)
    assert.equal(scrape.value('portico_http_stream_duration_seconds_count'), 1)
    assert.equal(scrape.value('portico_event_streams_open'), 0)
    assert.equal(scrape.value('portico_tasks_in_review'), 0)
    assert.equal(scrape.value('portico_approvals_waiting'), 0)
    assert.equal(scrape.value('portico_ledger_disagreements'), 0)
    assert.equal(scrape.value('portico_key_encryption_keys_unusable'), 0)
    assert.ok((scrape.value('portico_upstream_requests_total', { upstream: 'base', result: 'ok' }) ?? 0) > 0)
    const values = [...scrape.families.values()].flatMap(({ samples }) =>
      samples.flatMap(({ labels }) => Object.values(labels)),
    )
    for (const secret of [person.agentId, person.evm.toLowerCase(), person.solana])
      assert.ok(!values.some((value) => value.toLowerCase().includes(secret.toLowerCase())), secret)
  })

  test('name the release and list the sponsors of each chain', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    assert.equal(scrape.value('portico_build_info', { version, environment: 'local' }), 1)
    const balances = scrape.families.get('portico_sponsor_balance_coins')?.samples ?? []
    assert.deepEqual(
      new Set(balances.map(({ labels }) => labels.chain_id)),
      new Set(['1', '8453', '42161', '137', '7565164']),
    )
    for (const { value } of balances) assert.ok(value > 0)
    assert.equal(scrape.value('portico_venue_request_weight_limit'), 1_200)
  })

  test('are shown to direct callers of this machine only', async () => {
    const forwarded = await fetch(`${gateway.url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.9' } })
    assert.equal(forwarded.status, 404)
  })

  test('a scrape sends no upstream request while the balances are known', async () => {
    const before = await scraped()
    const sent = (found: Scrape) =>
      (found.families.get('portico_upstream_requests_total')?.samples ?? [])
        .filter(({ labels }) => labels.upstream === 'polygon')
        .reduce((sum, { value }) => sum + value, 0)
    const took = performance.now()
    const scrapes = 50
    for (let n = 0; n < scrapes; n++) await scraped()
    const seconds = (performance.now() - took) / 1_000
    // The health probe requests the head of each chain every few seconds.
    assert.ok(sent(await scraped()) - sent(before) <= 1 + seconds, `${seconds} s`)
  })

  test('every part could be read', () => {
    const up = scrape.families.get('portico_metrics_source_up')?.samples ?? []
    assert.ok(up.length >= 10)
    for (const { labels, value } of up) assert.equal(value, 1, labels.source)
  })

  /** Names of series, which for a histogram are those of its parts. */
  const assertMeasured = (expression: string, where: string) => {
    const names = metricsOfExpression(expression)
    assert.ok(names.length > 0, where)
    for (const name of names) {
      const family =
        scrape.families.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? scrape.families.get(name)
      const isMeasured = family?.samples.some((sample) => sample.name === name) || family?.name === name
      assert.ok(isMeasured || ofPrometheus.has(name), `${where} reads ${name}`)
    }
  }

  test('are all that the alert rules read', () => {
    assert.ok(rules.length >= 15)
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
    for (const { alert, expr, labels, annotations } of rules) {
      assert.match(alert, /^Portico[A-Z]\w+$/)
      assert.ok(['critical', 'warning'].includes(labels.severity), alert)
      assert.ok(annotations.summary.length > 20 && annotations.description.length > 40, alert)
      assertMeasured(expr, alert)
    }
  })

  test('are all that the dashboard reads', () => {
    const panels = dashboard.panels.filter(({ type }) => type !== 'row')
    assert.ok(panels.length >= 20)
    for (const { title, targets = [] } of panels) {
      assert.ok(targets.length > 0, title)
      for (const { expr } of targets) assertMeasured(expr, title)
    }
    const [, named = ''] =
      /^label_values\((\w+),/.exec(
        dashboard.templating.list.find(({ type }) => type === 'query')?.definition ?? '',
      ) ?? []
    assertMeasured(named, 'the list of instances')
  })

  test('the operations guide describes every metric, and no other', () => {
    const described = new Set(read('docs/operations.md').match(/\bportico_[a-z_]+/g))
    const measured = [...scrape.families.keys()].filter((name) => name.startsWith('portico_'))
    for (const name of measured) assert.ok(described.has(name), `${name} is not described`)
    for (const name of described) assert.ok(scrape.families.has(name), `${name} does not exist`)
  })

  test('an unknown metric is detected', () => {
    assert.throws(
      () => assertMeasured('rate(portico_invented_total[5m])', 'a rule'),
      /portico_invented_total/,
    )
    assert.throws(() => assertMeasured('portico_http_wait_duration_seconds_total', 'a rule'))
  })
})
