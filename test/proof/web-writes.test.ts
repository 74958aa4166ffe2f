/** What a request to OAuth and to MCP leaves behind: rows of the database, calls of upstreams, memory. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openGuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { newAgent } from '../harness/gateway.ts'
import { noUpstreams } from '../harness/instance.ts'
import { processWorld } from '../harness/process-world.ts'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, password } from '../oauth/oauth-app.ts'
import { authorizeUrl, redirectUri, register, signUpUser, tokenRequest, verifier } from '../oauth/session.ts'
import { retainedBytes } from './support/retained-memory.ts'
import { dearWebRequests } from './support/web-requests.ts'
import { totalOf, type WrittenRows, writtenRows } from './support/written-rows.ts'

/** A request whose sender is unknown writes no more, whatever it says. */
const strangerRowsMax = 1
const retainedBytesMax = 4 * 1024

let app: OAuthApp
let written: WrittenRows
let authorization: string
let upstreamCalls = 0
let strangerCalls = 0

before(async () => {
  const { control: _control, polymarket: _polymarket, ...urls } = await processWorld()
  const evm = { ...noUpstreams.evm, ...urls.evm }
  const guarded = openGuardedFetch({
    lookup: (_name, _options, callback) => callback(new Error('no such name'), []),
  })
  app = await createOAuthApp({
    // No task runs, so that its rows and calls are not taken for those of a request.
    config: { RUNNER_SLOTS: 0 },
    urls: { ...noUpstreams, ...urls, evm, coinbase: urls.prices, relay: urls.solver },
    overrides: {
      wrapNet: (net) => ({
        fetch(request) {
          upstreamCalls++
          return net.fetch(request)
        },
      }),
      strangers: {
        ...guarded,
        fetch(url, init) {
          strangerCalls++
          return guarded.fetch(url, init)
        },
      },
    },
  })
  written = await writtenRows(app.database.pool)
  authorization = `Bearer ${(await newAgent(app.base)).token}`
  // The first request of all makes the keys of the authorization server.
  await get('/oauth/jwks')
})
after(() => app?.[Symbol.asyncDispose]())

type Cost = { rows: number; byTable: Readonly<Record<string, number>>; upstreams: number; strangers: number }

async function costOf<T>(run: () => Promise<T>): Promise<{ result: T; cost: Cost }> {
  const before = { upstreams: upstreamCalls, strangers: strangerCalls }
  const { result, rows: byTable } = await written.during(run)
  const cost = {
    byTable,
    rows: totalOf(byTable),
    upstreams: upstreamCalls - before.upstreams,
    strangers: strangerCalls - before.strangers,
  }
  return { result, cost }
}

test('no request of a stranger to OAuth or MCP writes more than a row or calls an upstream', async () => {
  let dearest = { name: '', rows: 0 }
  const all = dearWebRequests(authorization)
  for (const { name, path, init } of all) {
    const { result: status, cost } = await costOf(async () => {
      const reply = await fetch(app.base + path, init)
      await reply.text()
      return reply.status
    })
    const shown = `${name}: ${status} ${JSON.stringify(cost)}`
    assert.ok(status < 500, shown)
    assert.deepEqual([cost.upstreams, cost.strangers], [0, 0], shown)
    assert.ok(cost.rows <= strangerRowsMax, shown)
    if (cost.rows > dearest.rows) dearest = { name, rows: cost.rows }
  }
  console.log(`web writes: ${all.length} requests; at most ${dearest.rows} rows: ${dearest.name}`)
})

test('a client whose id is an address that gives no document costs one call of a stranger', async () => {
  const url = authorizeUrl(app, 'https://client.example/metadata.json')
  const { result: page, cost } = await costOf(() => createBrowser().open(url))
  assert.equal(page.status, 400)
  assert.deepEqual([cost.rows, cost.upstreams, cost.strangers], [0, 0, 1], JSON.stringify(cost))
})

/** Balances of each chain, and the account at each venue. */
const accountReadsMax = 16

/** Takes the steps in their order, each within its number of rows and of calls of upstreams, which is none by default. */
async function take(
  steps: readonly (readonly [
    name: string,
    rowsMax: number,
    run: () => Promise<unknown>,
    upstreamsMax?: number,
  ])[],
) {
  const found: string[] = []
  for (const [name, rowsMax, run, upstreamsMax = 0] of steps) {
    const { cost } = await costOf(run)
    const shown = `${name}: ${JSON.stringify(cost)}`
    assert.ok(cost.rows <= rowsMax, `${shown}; at most ${rowsMax} rows`)
    assert.ok(cost.upstreams <= upstreamsMax, `${shown}; at most ${upstreamsMax} calls`)
    assert.equal(cost.strangers, 0, shown)
    found.push(`${name} ${cost.rows}`)
  }
  console.log(`web writes: ${found.join(', ')}`)
}

const ok = async (reply: Promise<Response>): Promise<string> => {
  const { status, ...rest } = await reply.then(async (each) => ({
    status: each.status,
    text: await each.text(),
  }))
  assert.equal(status, 200, rest.text)
  return rest.text
}
const get = (path: string, headers: Record<string, string> = {}) => ok(fetch(app.base + path, { headers }))

test('each step of a sign-in writes a bounded number of rows, and none but the account page calls upstreams', async () => {
  const browser = createBrowser()
  const email = 'writes@example.com'
  let clientId = ''
  let page: Page
  let tokens: Awaited<ReturnType<typeof tokenRequest>>
  const bearer = () => ({ authorization: `Bearer ${tokens.access_token}` })
  const refreshForm = () => ({ client_id: clientId, refresh_token: tokens.refresh_token })
  await take([
    ['metadata', 0, () => get('/.well-known/oauth-authorization-server')],
    ['resource metadata', 0, () => get('/.well-known/oauth-protected-resource')],
    ['keys', 0, () => get('/oauth/jwks')],
    ['register', 1, async () => (clientId = (await register(app)).client_id)],
    ['authorize', 1, async () => (page = await browser.open(authorizeUrl(app, clientId)))],
    ['sign-up page', 0, async () => (page = await browser.open(`${page.url}?view=sign-up`))],
    // The code, and a budget each of the mailbox, of its day, of the address, and of both.
    ['code by email', 5, async () => (page = await browser.submit(page, 'sign-up', { email, password }))],
    [
      'wrong code',
      2,
      async () => assert.match((await browser.submit(page, 'code', { email, code: '0' })).html, /alert/),
    ],
    [
      'sign-up',
      4,
      async () => (page = await browser.submit(page, 'code', { email, code: app.codeFor(email) })),
    ],
    // The consent makes the account: the user, two wallets, the first credits and the grant of the faucet.
    ['consent', 18, async () => (page = await browser.submit(page, 'allow', { manage: 'yes' }))],
    [
      'code for tokens',
      2,
      async () =>
        (tokens = await tokenRequest(app, {
          grant_type: 'authorization_code',
          client_id: clientId,
          code: new URL(page.url).searchParams.get('code') ?? '',
          redirect_uri: redirectUri,
          code_verifier: verifier,
        })),
    ],
    ['first call', 3, () => signUpUser(app, bearer().authorization)],
    ['userinfo', 0, () => get('/oauth/userinfo', bearer())],
    ['read', 0, () => get('/v1/user', bearer())],
    [
      'refresh',
      2,
      async () => (tokens = await tokenRequest(app, { grant_type: 'refresh_token', ...refreshForm() })),
    ],
    // The page shows the person's money, which it reads anew.
    ['account', 3, () => browser.open(`${app.base}/oauth/account`), accountReadsMax],
    ['account once more', 0, () => browser.open(`${app.base}/oauth/account`), accountReadsMax],
    ['approvals', 2, () => browser.open(`${app.base}/oauth/approvals`)],
    ['another sign-in', 1, async () => (page = await createBrowser().open(authorizeUrl(app, clientId)))],
    [
      'revoke',
      1,
      () =>
        ok(
          fetch(`${app.base}/oauth/revoke`, {
            method: 'POST',
            body: new URLSearchParams({ client_id: clientId, token: tokens.refresh_token }),
          }),
        ),
    ],
  ])
})

const rpc = (method: string, params: object = {}) =>
  ok(
    fetch(`${app.base}/mcp`, {
      method: 'POST',
      headers: {
        authorization,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    }),
  )
const tool = (name: string, given: object = {}) => rpc('tools/call', { name, arguments: given })

test('each request to MCP writes a bounded number of rows and calls no upstream', async () => {
  const leaving = new AbortController()
  let messages = ''
  await take([
    ['server card', 0, () => get('/.well-known/mcp/server-card.json')],
    [
      'initialize',
      0,
      () =>
        rpc('initialize', {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'test', version: '1.0.0' },
        }),
    ],
    ['tools/list', 0, () => rpc('tools/list')],
    ['prompts/list', 0, () => rpc('prompts/list')],
    ['resources/list', 0, () => rpc('resources/list')],
    ['resources/read', 0, () => rpc('resources/read', { uri: 'portico://llms.txt' })],
    ['a read', 0, () => tool('tasks_list')],
    ['a read that finds nothing', 0, () => tool('tasks_get', { task_id: 'x' })],
    ['an unknown tool', 0, () => tool('no_such_tool')],
    ['a wrong input', 0, () => tool('policy_tighten', { per_day_usd: 'x' })],
    // The policy, the event and its counter, and a key of its own, which an act leaves that was called without one.
    ['an act', 4, () => tool('policy_tighten', { per_day_usd: '100' })],
    [
      'a session of 2024',
      1,
      async () => {
        const { signal } = leaving
        const reply = await fetch(`${app.base}/mcp/sse`, { headers: { authorization }, signal })
        const { value } = await reply.body!.getReader().read()
        messages = new TextDecoder().decode(value)
      },
    ],
  ])
  leaving.abort()
  assert.match(messages, /^event: endpoint\ndata: \/mcp\/messages/)
})

test('requests to OAuth and MCP retain no memory', async () => {
  const all = dearWebRequests(authorization)
  const retained = await retainedBytes(async () => {
    for (const { path, init } of all) await (await fetch(app.base + path, init)).text()
  }, 4)
  console.log(
    `web memory: ${(retained / all.length).toFixed(0)} bytes retained of each of ${all.length} requests`,
  )
  assert.ok(retained / all.length < retainedBytesMax, `${retained} bytes retained of ${all.length} requests`)
})
