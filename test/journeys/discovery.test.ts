import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway, http } from '../harness/gateway.ts'
import { createFundedPerson } from './users.ts'
import { polygon, type World, worldOf } from './world.ts'

type Operation = {
  operationId: string
  tags: string[]
  security?: object[]
  responses: Record<string, object>
}
type OpenApi = {
  openapi: string
  info: { version: string; description: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> }
}
type Health = {
  status: string
  version: string
  checks: Record<'store' | 'runner', { status: string }> & { upstreams: Record<string, { status: string }> }
}
type Catalogue = { codes: { code: string; status: number; retryable: boolean; when: string }[] }

const origin = 'https://app.example'

describe('the gateway describes itself', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({ CORS_ORIGINS: origin }, { ownWorld: 'a chain stops' })
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const get = <B>(path: string, headers: Record<string, string> = {}) =>
    http<B>(gateway.url + path, { headers })
  const operationsOf = ({ paths }: OpenApi) =>
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        ...operation,
      })),
    )

  test('capabilities list exactly the operations of OpenAPI, and both list the routes', async () => {
    const capabilities = (
      await get<Record<string, { endpoints?: string[]; transfer_out?: boolean }>>('/capabilities')
    ).body
    const openapi = (await get<OpenApi>('/openapi.json')).body
    assert.match(openapi.openapi, /^3\.1/)
    assert.equal(openapi.info.version, '1.0.0')
    assert.match(openapi.info.description, /^\*\*Release \d+\.\d+\.\d+, in a local world:\*\* /)
    const operations = operationsOf(openapi)
    const { protocols, ...sections } = capabilities
    assert.deepEqual(protocols, ['http', 'sse', 'mcp'])
    const listed = Object.values(sections).flatMap(({ endpoints }) => endpoints ?? [])
    const known = new Set(operations.map(({ operationId }) => operationId))
    assert.deepEqual(
      listed.filter((name) => !known.has(name)),
      [],
    )
    for (const [section, { endpoints = [] }] of Object.entries(sections)) {
      const tagOf = (id: string) => operations.find(({ operationId }) => operationId === id)?.tags[0]
      const tags = new Set(endpoints.map(tagOf))
      const ofThoseTags = operations
        .filter(({ tags: [tag] }) => tags.has(tag))
        .map(({ operationId }) => operationId)
      assert.deepEqual([...endpoints].sort(), ofThoseTags.sort(), section)
    }
    assert.equal(sections.wallets?.transfer_out, true)
    assert.ok(JSON.stringify(openapi.paths).includes('/v1/wallets/transfer'))

    for (const { path, method, security } of operations) {
      const reply = await http(gateway.url + path.replace(/\{\w+\}/g, 'x'), { method, headers: {} })
      if (security && security.length > 0) assert.equal(reply.status, 401, `${method} ${path}`)
      else assert.notEqual(reply.status, 404, `${method} ${path}`)
      assert.notEqual(reply.status, 405, `${method} ${path}`)
    }
  })

  test('the chain table, the wallets and the capabilities name the same chains', async () => {
    const person = await createFundedPerson(gateway.url)
    const { chains } = (
      await person.call<{
        chains: { id?: string; chain_id?: string; status: string; supported_operations: string[] }[]
      }>('GET /v1/chains')
    ).body
    const ids = chains.map((each) => String(each.chain_id ?? each.id)).sort()
    const { ids: published } = (await get<{ chains: { ids: string[] } }>('/capabilities')).body.chains
    const { wallets } = (
      await person.call<{ wallets: { supported_chain_ids: string[] }[] }>('GET /v1/wallets')
    ).body
    assert.deepEqual(ids, [...published].sort())
    for (const { supported_operations: served } of chains) assert.deepEqual(served, ['swap', 'bridge'])
    assert.deepEqual(wallets.flatMap(({ supported_chain_ids }) => supported_chain_ids).sort(), ids)
    for (const { status } of chains) assert.ok(['ok', 'degraded', 'down'].includes(status))
  })

  test('health is ok soon after the start, an unreachable chain degrades it under 200, and it recovers', async () => {
    const health = async () => {
      const { status, body } = await get<Health>('/health')
      assert.equal(status, 200)
      return body
    }
    const until = (wanted: string) =>
      eventually(
        async () => ((await health()).status === wanted ? true : undefined),
        `health is ${wanted}`,
        25_000,
      )
    await until('ok')
    const well = await health()
    assert.deepEqual([well.checks.store.status, well.checks.runner.status], ['ok', 'ok'])
    assert.equal(well.checks.upstreams.hyperliquid?.status, 'ok')
    assert.doesNotMatch(JSON.stringify(well), /127\.0\.0\.1|localhost|postgres/)
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.equal(well.version, version)
    await world.chain(polygon, 'stop')
    try {
      await until('degraded')
      const { upstreams } = (await health()).checks
      assert.notEqual(upstreams.polygon?.status, 'ok')
      assert.equal(upstreams.base?.status, 'ok')
    } finally {
      await world.chain(polygon, 'start')
    }
    await until('ok')
  })

  test('the discovery documents name only what this gateway serves', async () => {
    const { body: resource } = await get<object>('/.well-known/oauth-protected-resource')
    const { body: catalogue } = await get('/.well-known/api-catalog')
    const named = new Set(JSON.stringify([resource, catalogue]).match(/https?:[^"]+/g))
    named.delete(gateway.url)
    // The anchor of a link set identifies an API and need not answer.
    named.delete(`${gateway.url}/`)
    // So does that of the tools, which answers only with a token.
    named.delete(`${gateway.url}/mcp`)
    assert.ok(named.size >= 4)
    for (const address of named) assert.equal((await fetch(address)).status, 200, address)
    const metadata = await get('/.well-known/oauth-authorization-server')
    assert.equal('authorization_servers' in resource, metadata.status === 200)
  })

  test('the docs page loads everything from this server and may connect to no other', async () => {
    const page = await fetch(`${gateway.url}/docs`)
    assert.equal(page.status, 200)
    const html = await page.text()
    const policy = new Map(
      (page.headers.get('content-security-policy') ?? '')
        .split(';')
        .map((rule) => rule.trim().split(' '))
        .map(([name = '', ...sources]) => [name, sources]),
    )
    assert.deepEqual(policy.get('default-src'), ["'none'"])
    // Only scripts that are named by their hash run in the page itself.
    const isOwn = (name: string, source: string) =>
      ["'none'", "'self'", 'data:'].includes(source) ||
      (name === 'script-src' ? source.startsWith("'sha256-") : source === "'unsafe-inline'")
    for (const [name, sources] of policy)
      for (const source of sources) assert.ok(isOwn(name, source), `${name} ${source}`)
    const tags = html.match(/<(?:script|link|img|iframe|style)\b[^>]*>/g) ?? []
    const loaded = tags.flatMap((tag) => /\b(?:src|href)=["']([^"']+)["']/.exec(tag)?.[1] ?? [])
    assert.ok(loaded.length > 0, html.slice(0, 500))
    for (const address of loaded) {
      const url = new URL(address, page.url)
      assert.equal(url.origin, gateway.url, address)
      const part = await fetch(url)
      assert.equal(part.status, 200, address)
      assert.ok((await part.arrayBuffer()).byteLength > 0)
    }
    assert.doesNotMatch(html, /cdn\.|jsdelivr|unpkg|fonts\.(?:googleapis|scalar)/)
  })

  test('a browser of an allowed origin may preflight, and one of another origin gets no permission', async () => {
    const preflight = (from: string) =>
      fetch(`${gateway.url}/v1/earn/deposit`, {
        method: 'OPTIONS',
        headers: {
          origin: from,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type,idempotency-key',
        },
      })
    const allowed = await preflight(origin)
    assert.equal(allowed.status, 204)
    assert.equal(allowed.headers.get('access-control-allow-origin'), origin)
    assert.match(allowed.headers.get('access-control-allow-methods') ?? '', /\bPOST\b/)
    const named = (allowed.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(', ')
    for (const header of ['authorization', 'content-type', 'idempotency-key', 'last-event-id'])
      assert.ok(named.includes(header), header)
    const other = await preflight('https://elsewhere.example')
    assert.equal(other.headers.get('access-control-allow-origin'), null)
    const real = await get('/v1/earn', { origin })
    assert.equal(real.headers.get('access-control-allow-origin'), origin)
    assert.match(real.headers.get('access-control-expose-headers') ?? '', /Idempotent-Replayed/)
  })

  test('every answer has the security headers and a request id, errors too', async () => {
    for (const path of ['/health', '/capabilities', '/v1/user', '/nowhere', '/openapi.json', '/docs']) {
      const { headers } = await get(path)
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
      assert.equal(headers.get('x-frame-options'), 'DENY', path)
      assert.equal(headers.get('referrer-policy'), 'no-referrer', path)
      assert.ok(headers.get('content-security-policy'), path)
      assert.match(headers.get('x-request-id') ?? '', /^[\w-]{8,64}$/, path)
      assert.equal(headers.get('x-powered-by'), null, path)
    }
  })

  test('the error catalogue is one table, and the errors of the gateway are rows of it', async () => {
    const { codes } = (await get<Catalogue>('/error-catalog.json')).body
    const rows = new Map(codes.map((row) => [row.code, row]))
    assert.equal(rows.size, codes.length)
    for (const { status, when } of codes) assert.ok(status >= 400 && status < 600 && when.length > 0)
    const provoked = [
      await get<Record<string, unknown>>('/nowhere'),
      await get<Record<string, unknown>>('/v1/user'),
      await get<Record<string, unknown>>('/v1/user', { authorization: `Bearer agt_${'0'.repeat(43)}` }),
      await http<Record<string, unknown>>(`${gateway.url}/v1/earn`, { method: 'POST', body: {} }),
      await http<Record<string, unknown>>(`${gateway.url}/v1/auth/register`, {
        method: 'POST',
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      }),
      await http<Record<string, unknown>>(`${gateway.url}/v1/auth/register`, {
        method: 'POST',
        body: 'x'.repeat(300_000),
      }),
    ]
    const outcomes = provoked.map(({ status, body }) => [status, body.code, body.retryable])
    assert.deepEqual(
      outcomes.map(([status]) => status),
      [404, 401, 401, 405, 415, 413],
    )
    for (const [status, code, retryable] of outcomes) {
      const row = rows.get(String(code))
      assert.deepEqual([row?.status, row?.retryable], [status, retryable], String(code))
    }
    assert.match(provoked[3]?.headers.get('allow') ?? '', /GET/)
  })
})
