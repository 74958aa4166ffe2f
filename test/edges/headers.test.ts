import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults } from '#kernel/contract/fault.ts'
import { gauge } from '#kernel/metrics.ts'
import { eventually } from '../harness/gateway.ts'
import { parseMetrics, problemsOf } from '../harness/prometheus.ts'
import { createHttpApp, type HttpApp, noLimits, rawExchange, sendRequest, tokens } from './http-app.ts'

let app: HttpApp
before(async () => {
  app = await createHttpApp()
})
after(() => app.close())

test('every answer has an id, the caller’s own where it is valid, and the security headers', async () => {
  for (const route of [
    'GET /v1/probe',
    'GET /nothing',
    'DELETE /v1/probe',
    'GET /health',
    'POST /v1/pay',
    'OPTIONS /v1/pay',
  ]) {
    const { headers } = await sendRequest(app.url, route)
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/, route)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.match(headers.get('strict-transport-security') ?? '', /max-age=/)
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/)
    assert.equal(headers.get('cache-control'), 'no-store')
  }
  const own = await sendRequest(app.url, 'GET /nothing', { headers: { 'x-request-id': 'my-request_1' } })
  assert.equal(own.headers.get('x-request-id'), 'my-request_1')
  assert.equal(own.body.request_id, 'my-request_1')
  for (const bad of ['short', 'x'.repeat(65), 'has space in', '<script>']) {
    const { headers } = await sendRequest(app.url, 'GET /nothing', { headers: { 'x-request-id': bad } })
    assert.notEqual(headers.get('x-request-id'), bad)
  }
})

test('an allowed origin may read answers, another may not, and cookies never count', async () => {
  const from = (origin: string, route = 'GET /v1/probe') =>
    sendRequest(app.url, route, { headers: { origin } })
  const { headers } = await from('https://app.example')
  assert.equal(headers.get('access-control-allow-origin'), 'https://app.example')
  const exposed = headers.get('access-control-expose-headers')?.toLowerCase().split(', ')
  for (const name of ['idempotent-replayed', 'idempotency-key', 'x-request-id', 'retry-after'])
    assert.ok(exposed?.includes(name), name)
  assert.match(headers.get('vary') ?? '', /Origin/)
  assert.equal(headers.get('access-control-allow-credentials'), null)
  for (const origin of ['https://evil.example', 'null', 'https://app.example.evil.example']) {
    assert.equal((await from(origin)).headers.get('access-control-allow-origin'), null)
  }
  const refused = await sendRequest(app.url, 'GET /v1/probe', {
    headers: { origin: 'https://app.example', authorization: undefined },
  })
  assert.equal(refused.status, 401)
  assert.equal(refused.headers.get('access-control-allow-origin'), 'https://app.example')
  for (const path of ['/openapi.json', '/error-catalog.json', '/.well-known/oauth-protected-resource']) {
    const open = await from('https://evil.example', `GET ${path}`)
    assert.equal(open.headers.get('access-control-allow-origin'), '*')
  }
})

test('a preflight is answered without a credential', async () => {
  const ask = (origin: string, route = 'OPTIONS /v1/pay') =>
    sendRequest(app.url, route, {
      headers: {
        authorization: undefined,
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, idempotency-key',
      },
    })
  const allowed = await ask('https://app.example')
  assert.equal(allowed.status, 204)
  assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://app.example')
  assert.match(allowed.headers.get('access-control-allow-methods') ?? '', /POST/)
  const headers = allowed.headers.get('access-control-allow-headers')?.toLowerCase().split(', ')
  // Those of the SDK.
  for (const name of ['authorization', 'content-type', 'idempotency-key', 'last-event-id', 'x-retry-count'])
    assert.ok(headers?.includes(name), name)
  assert.ok(Number(allowed.headers.get('access-control-max-age')) > 0)
  const refused = await ask('https://evil.example')
  assert.equal(refused.headers.get('access-control-allow-methods'), null)
  assert.equal((await ask('https://app.example', 'OPTIONS /nothing')).status, 404)
})

test('health answers by its own body, and 503 where the store is down', async (t) => {
  const down = await createHttpApp({ health: async () => ({ body: { status: 'down' }, down: true }) })
  t.after(() => down.close())
  const well = await sendRequest(app.url, 'GET /health', { headers: { authorization: undefined } })
  assert.deepEqual([well.status, well.body], [200, { status: 'ok' }])
  const ill = await sendRequest(down.url, 'GET /health')
  assert.deepEqual([ill.status, ill.body], [503, { status: 'down' }])
  assert.ok(Number(ill.headers.get('retry-after')) >= 1)
})

test('discovery documents are public, cached and validated by their tag', async () => {
  for (const path of [
    '/openapi.json',
    '/error-catalog.json',
    '/.well-known/oauth-protected-resource',
    '/.well-known/api-catalog',
  ]) {
    const { status, headers } = await sendRequest(app.url, `GET ${path}`, {
      headers: { authorization: undefined },
    })
    assert.equal(status, 200, path)
    assert.equal(headers.get('cache-control'), 'public, max-age=3600')
    const again = await sendRequest(app.url, `GET ${path}`, {
      headers: { 'if-none-match': headers.get('etag') ?? '' },
    })
    assert.equal(again.status, 304)
  }
  const { body } = await sendRequest(app.url, 'GET /.well-known/oauth-protected-resource')
  assert.equal(body.resource, app.url)
  const head = await sendRequest(app.url, 'HEAD /.well-known/api-catalog')
  assert.equal(head.headers.get('link'), `<${app.url}/.well-known/api-catalog>; rel="api-catalog"`)
  assert.match(head.headers.get('content-type') ?? '', /^application\/linkset\+json; ?profile=/)
})

test('the error catalogue lists every code of the kernel', async () => {
  const { body } = await sendRequest(app.url, 'GET /error-catalog.json')
  const codes = body.codes as { code: string; status: number }[]
  assert.deepEqual(
    codes.map(({ code, status }) => [code, status]),
    Object.entries(faults).map(([code, { status }]) => [code, status]),
  )
})

test('the reference is served from the package and calls no other server', async () => {
  const short = await sendRequest(app.url, 'GET /docs?a=b', { headers: { authorization: undefined } })
  assert.deepEqual([short.status, short.headers.get('location')], [301, '/docs/'])
  const page = await sendRequest(app.url, 'GET /docs/', { headers: { authorization: undefined } })
  assert.equal(page.status, 200)
  assert.match(page.text, /"withDefaultFonts": ?false/)
  assert.doesNotMatch(page.text, /https?:\/\//)
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /script-src 'self'/)
  assert.doesNotMatch(policy, /https?:|\*/)
  const [, script] = /src="([^"]+\.js)"/.exec(page.text) ?? []
  const code = await sendRequest(app.url, `GET ${new URL(script ?? '', `${app.url}/docs/`).pathname}`)
  assert.equal(code.status, 200)
  assert.match(code.headers.get('content-type') ?? '', /javascript/)
  assert.ok(code.text.length > 1_000_000)
})

test('documents, their reference and wrong paths count as reads of the address, and are sent compressed', async (t) => {
  const limited = await createHttpApp({ limits: { ...noLimits, read: { points: 4, windowSeconds: 60 } } })
  t.after(() => limited.close())
  const paths = ['/openapi.json', '/docs/js/scalar.js', '/nothing', '/.well-known/api-catalog']
  for (const path of paths) assert.notEqual((await sendRequest(limited.url, `GET ${path}`)).status, 429, path)
  for (const path of paths) {
    const { status, body } = await sendRequest(limited.url, `GET ${path}`)
    assert.deepEqual([status, body.budget, body.owner], [429, 'read', 'address'], path)
  }
  assert.equal((await sendRequest(limited.url, 'GET /health')).status, 200)
  const sizeOf = async (path: string, encoding: string) => {
    const raw = await rawExchange(
      app.url,
      `GET ${path} HTTP/1.1\r\nhost: x\r\naccept-encoding: ${encoding}\r\nconnection: close\r\n\r\n`,
    )
    const length = Number(/content-length: (\d+)/.exec(raw)?.[1])
    return { length, isGzip: /content-encoding: gzip/.test(raw) }
  }
  for (const path of ['/openapi.json', '/docs/js/scalar.js']) {
    const plain = await sizeOf(path, 'identity')
    const small = await sizeOf(path, 'br, gzip')
    assert.deepEqual([plain.isGzip, small.isGzip], [false, true])
    assert.ok(small.length < plain.length / 2, `${path}: ${small.length} of ${plain.length}`)
  }
})

test('the first metrics contain no delay that was not measured', async () => {
  const { text } = await sendRequest(app.url, 'GET /metrics')
  const lags = text.split('\n').filter((line) => line.startsWith('nodejs_eventloop_lag'))
  assert.ok(lags.length > 0)
  for (const line of lags) assert.ok(Number(line.split(' ')[1]) < 1_000, line)
})

test('metrics of the process have the names that Prometheus clients for Node have in common', async () => {
  const { families, value } = await eventually(async () => {
    const scrape = parseMetrics((await sendRequest(app.url, 'GET /metrics')).text)
    return scrape.families.has('nodejs_eventloop_lag_p99_seconds') ? scrape : undefined
  }, 'the delay of the event loop was measured')
  const lags = ['', 'min_', 'max_', 'mean_', 'stddev_', 'p50_', 'p90_', 'p99_']
  const names = lags.map((part) => `nodejs_eventloop_lag_${part}seconds`)
  for (const part of ['user_', 'system_', '']) names.push(`process_cpu_${part}seconds_total`)
  for (const part of ['total', 'used', 'available']) names.push(`nodejs_heap_space_size_${part}_bytes`)
  for (const part of ['heap_size_total', 'heap_size_used', 'external_memory'])
    names.push(`nodejs_${part}_bytes`)
  for (const part of ['gc_duration_seconds', 'active_resources', 'version_info']) names.push(`nodejs_${part}`)
  for (const part of ['resident_memory_bytes', 'start_time_seconds']) names.push(`process_${part}`)
  if (process.platform === 'linux')
    for (const part of ['virtual_memory_bytes', 'heap_bytes', 'open_fds', 'max_fds'])
      names.push(`process_${part}`)
  const found = [...families.keys()].filter((name) => /^(?:process|nodejs)_/.test(name))
  assert.deepEqual(found.sort(), names.sort())
  const startMs = (value('process_start_time_seconds') ?? 0) * 1_000
  assert.ok(startMs > Date.now() - 3_600_000 && startMs <= Date.now())
  assert.ok((value('process_cpu_seconds_total') ?? 0) > 0.1)
})

test('metrics name operations and not their arguments, and are for direct loopback callers only', async () => {
  await sendRequest(app.url, 'GET /v1/probe/some-secret-id')
  await sendRequest(app.url, 'GET /wp-admin/some-secret-path')
  const scraped = () => sendRequest(app.url, 'GET /metrics', { headers: { authorization: undefined } })
  const countIn = (text: string, operation: string, status_class: string) =>
    parseMetrics(text).value('portico_http_request_duration_seconds_count', { operation, status_class }) ?? 0
  const { status, headers, text } = await eventually(async () => {
    const answer = await scraped()
    return countIn(answer.text, 'probe_get', '2xx') * countIn(answer.text, 'unknown', '4xx') > 0
      ? answer
      : undefined
  }, 'both requests are counted')
  assert.equal(status, 200)
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const scrape = parseMetrics(text)
  assert.deepEqual(problemsOf(scrape), [])
  assert.ok((scrape.value('portico_http_faults_total', { code: 'not_found' }) ?? 0) >= 1)
  assert.doesNotMatch(text, /some-secret/)
  assert.equal(scrape.value('portico_http_requests_in_flight'), 1)
  assert.ok((scrape.value('process_resident_memory_bytes') ?? 0) > 0)
  for (const proxied of [{ 'x-forwarded-for': '1.2.3.4' }, { forwarded: 'for=1.2.3.4' }])
    assert.equal((await sendRequest(app.url, 'GET /metrics', { headers: proxied })).status, 404)
})

test('a caller who may not read metrics pays for the answer as for a wrong path', async (t) => {
  const limited = await createHttpApp({ limits: { ...noLimits, read: { points: 1, windowSeconds: 60 } } })
  t.after(() => limited.close())
  const statusOf = async (headers: Record<string, string>) =>
    (await sendRequest(limited.url, 'GET /metrics', { headers })).status
  const proxied = { 'x-forwarded-for': '1.2.3.4' }
  assert.deepEqual([await statusOf(proxied), await statusOf(proxied)], [404, 429])
  assert.equal(await statusOf({}), 200)
})

test('waits are measured apart from plain requests', async (t) => {
  const measured = await createHttpApp()
  t.after(() => measured.close())
  const client = new AbortController()
  const waiting = fetch(`${measured.url}/v1/pay?wait=true`, {
    method: 'POST',
    headers: { authorization: tokens.all, 'content-type': 'application/json' },
    body: '{"amount_usdc": "1"}',
    signal: client.signal,
  })
  while (measured.seen.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await sendRequest(measured.url, 'POST /v1/pay', { body: { amount_usdc: '2' } })
  client.abort()
  await assert.rejects(waiting)
  const counts = async () => {
    const { value } = parseMetrics((await sendRequest(measured.url, 'GET /metrics')).text)
    const count = (mode: string, status_class: string) =>
      value(`portico_http_${mode}_duration_seconds_count`, { operation: 'probe_pay', status_class })
    // An abandoned wait is no success.
    return [count('wait', '4xx'), count('request', '2xx')]
  }
  await eventually(async () => ((await counts()).includes(undefined) ? undefined : true), 'both have ended')
  assert.deepEqual(await counts(), [1, 1])
})

test('sources are read once a second, and one that fails or hangs takes no other with it', async (t) => {
  let depth = 2
  let nowMs = Date.now()
  const sourced = await createHttpApp({
    clock: { now: () => new Date(nowMs) },
    metrics: {
      queue: () => [gauge('queue_depth', 'Tasks that wait', [{ labels: { kind: 'a"b' }, value: ++depth }])],
      failing: () => Promise.reject(new Error('away')),
      hanging: () => new Promise(() => undefined),
    },
  })
  t.after(() => sourced.close())
  for (const [afterMs, expected] of [
    [0, 3],
    [999, 3],
    [1, 4],
  ] as const) {
    nowMs += afterMs
    const scrape = parseMetrics((await sendRequest(sourced.url, 'GET /metrics')).text)
    assert.equal(scrape.value('queue_depth', { kind: 'a\\"b' }), expected)
    const up = (source: string) => scrape.value('portico_metrics_source_up', { source })
    assert.deepEqual(['http', 'queue', 'failing', 'hanging'].map(up), [1, 1, 0, 0])
  }
})

test('each request logs one line without secrets', async () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const secrets = 'token=TTT&x-signature=SSS&client_secret=CCC&%74oken=EEE&status=open'
  const sent = { headers: { traceparent, 'x-backend-key': 'KKK', 'x-request-id': 'log-test-1' } }
  await sendRequest(app.url, `GET /v1/probe?${secrets}`, sent)
  const mine = () => app.lines.filter(({ facts }) => facts.request_id === 'log-test-1')
  while (mine().length === 0) await new Promise((resolve) => setImmediate(resolve))
  const [line, ...others] = mine()
  assert.deepEqual(others, [])
  const { ms, address, ...facts } = line?.facts ?? {}
  assert.equal(typeof ms, 'number')
  assert.match(String(address), /127\.0\.0\.1/)
  assert.deepEqual(facts, {
    request_id: 'log-test-1',
    method: 'GET',
    route: '/v1/probe',
    url: '/v1/probe?token=[redacted]&x-signature=[redacted]&client_secret=[redacted]&%74oken=[redacted]&status=open',
    status: 422,
    agent_id: 'agt_1',
    trace_id: 'a'.repeat(32),
  })
  assert.doesNotMatch(JSON.stringify(app.lines), /TTT|SSS|CCC|EEE|KKK|agt_all/)
})

test('an address is taken from a proxy only where the proxy is listed', async (t) => {
  const behind = await createHttpApp({ trustProxy: ['127.0.0.1/32', '::1'] })
  t.after(() => behind.close())
  const headers = { 'x-forwarded-for': '203.0.113.9', 'x-request-id': 'proxy-test' }
  for (const [httpApp, address] of [
    [behind, '203.0.113.9'],
    [app, '127.0.0.1'],
  ] as const) {
    await sendRequest(httpApp.url, 'GET /v1/probe', { headers })
    const line = () => httpApp.lines.find(({ facts }) => facts.request_id === 'proxy-test')
    while (!line()) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(line()?.facts.address, address)
  }
})

test('points are counted per class and principal, and the rejection says when to retry', async (t) => {
  const limit = { points: 3, windowSeconds: 60 }
  const limited = await createHttpApp({ limits: { ...noLimits, read: limit, auth: limit } })
  t.after(() => limited.close())
  for (let left = 2; left >= 0; left--) {
    const { status, headers } = await sendRequest(limited.url, 'GET /v1/probe')
    assert.equal(status, 200)
    assert.equal(headers.get('ratelimit-policy'), '"read";q=3;w=60')
    assert.match(headers.get('ratelimit') ?? '', new RegExp(`^"read";r=${left};t=\\d+$`))
  }
  const refused = await sendRequest(limited.url, 'GET /v1/probe')
  assert.equal(refused.status, 429)
  assert.equal(refused.body.code, 'rate_limited')
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 60)
  assert.match(refused.headers.get('ratelimit') ?? '', /^"read";r=0;t=\d+$/)
  assert.equal(refused.headers.get('ratelimit-policy'), '"read";q=3;w=60')
  const other = await sendRequest(limited.url, 'GET /v1/probe', { headers: { authorization: tokens.reader } })
  assert.equal(other.status, 200)
  assert.equal((await sendRequest(limited.url, 'POST /v1/pay', { body: { amount_usdc: 5 } })).status, 200)
  assert.equal((await sendRequest(limited.url, 'POST /v1/pay/t1/cancel')).status, 200)
  const sign = (authorization?: string) =>
    sendRequest(limited.url, 'POST /v1/sign', { body: { agent_id: 'a' }, headers: { authorization } })
  for (let i = 0; i < 3; i++) assert.equal((await sign()).status, 200)
  assert.equal((await sign(tokens.all)).status, 429)
})

test('under a lasting overload reads and money operations are rejected, exits and health never', async (t) => {
  let delayMs = 900
  const busy = await createHttpApp({ load: { delayMsMax: 250, everyMs: 5, sample: () => delayMs } })
  t.after(() => busy.close())
  const pay = () => sendRequest(busy.url, 'POST /v1/pay', { body: { amount_usdc: 5 } })
  while ((await pay()).status === 200);
  const shed = await sendRequest(busy.url, 'GET /v1/probe')
  assert.deepEqual([shed.status, shed.body.code, shed.body.outcome], [503, 'overloaded', 'not_executed'])
  assert.equal(shed.headers.get('retry-after'), '1')
  assert.equal((await sendRequest(busy.url, 'POST /v1/pay/t1/cancel')).status, 200)
  assert.equal((await sendRequest(busy.url, 'GET /health')).status, 200)
  delayMs = 3
  while ((await pay()).status === 503);
  assert.equal((await sendRequest(busy.url, 'GET /v1/probe')).status, 200)
})
