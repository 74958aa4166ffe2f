/** An MCP client that knows the address alone: its person signs up and consents in a browser, then it moves money. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { type Browser, chromium, type Page } from 'playwright-core'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { codeIn } from '../journeys/signed-in.ts'
import { password } from './oauth-app.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const redirectUrl = 'http://127.0.0.1:9/callback'
const email = 'mcp@example.com'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let browser: Browser
before(async () => {
  if (skip) return
  gateway = await freshGateway()
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await gateway?.[Symbol.asyncDispose]()
})

/** What a client stores of its registration and its tokens; `visit` is the browser of its person. */
function storeOf(visit: (url: URL) => Promise<void>): OAuthClientProvider {
  const stored: {
    client?: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>
    tokens?: Awaited<ReturnType<OAuthClientProvider['tokens']>>
    verifier?: string
    discovery?: Parameters<NonNullable<OAuthClientProvider['saveDiscoveryState']>>[0]
  } = {}
  return {
    redirectUrl,
    clientMetadata: {
      client_name: 'Momentum Bot',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: 'openid offline_access earn',
    },
    clientInformation: () => stored.client,
    saveClientInformation: (client) => {
      stored.client = client
    },
    tokens: () => stored.tokens,
    saveTokens: (tokens) => {
      stored.tokens = tokens
    },
    codeVerifier: () => stored.verifier!,
    saveCodeVerifier: (verifier) => {
      stored.verifier = verifier
    },
    discoveryState: () => stored.discovery,
    saveDiscoveryState: (found) => {
      stored.discovery = found
    },
    redirectToAuthorization: visit,
  }
}

async function signUpAndConsent(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  const code = await eventually(async () => codeIn(gateway.lines, email), 'the code is printed')
  await page.getByLabel('Code').fill(code)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
  await page.locator('input[name=earn]').check()
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.waitForURL(`${redirectUrl}?**`)
}

test('a person signs up and consents in a browser, and the MCP client deposits and reads the result', {
  skip,
}, async () => {
  await using context = await browser.newContext()
  const page = await context.newPage()
  await page.route(`${new URL(redirectUrl).origin}/**`, (route) => route.fulfill({ body: 'connected' }))
  const authProvider = storeOf(async (url) => void (await page.goto(url.href)))
  const transport = () =>
    new StreamableHTTPClientTransport(new URL('/mcp?sections=default', gateway.url), { authProvider })
  const client = () => new Client({ name: 'Momentum Bot', version: '1.0.0' })

  const refused = transport()
  await assert.rejects(client().connect(refused), UnauthorizedError)
  await signUpAndConsent(page)
  await refused.finishAuth(new URL(page.url()).searchParams)

  const connected = client()
  await connected.connect(transport())
  const call = async (name: string, input: Record<string, unknown> = {}) => {
    const { structuredContent, isError, content } = await connected.callTool({ name, arguments: input })
    assert.equal(isError ?? false, false, `${name}: ${JSON.stringify(content)}`)
    return structuredContent as Record<string, unknown>
  }
  try {
    const names = (await connected.listTools()).tools.map(({ name }) => name)
    assert.deepEqual(
      ['earn_deposit', 'wallets_holdings', 'perp_open', 'policy_tighten'].map((each) => names.includes(each)),
      [true, true, false, false],
      'the tools of the scopes that the person allowed',
    )
    await eventually(
      async () => {
        const { items } = (await call('tasks_list')) as { items: { kind: string; status: string }[] }
        return (
          items.some(({ kind, status }) => kind === 'faucet_grant' && status === 'completed') || undefined
        )
      },
      'the wallet has its first funds',
      30_000,
    )
    const deposit = await call('earn_deposit', { amount_usdc: '5', idempotency_key: 'first-deposit' })
    const task = await call('tasks_wait', { task_id: deposit.task_id, timeout: 60 })
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
    const { amount_usdc_decimal, tx_hash } = task.result as Record<string, string>
    assert.equal(amount_usdc_decimal, '5')
    assert.match(tx_hash!, /^0x[0-9a-f]{64}$/)
    const { positions } = (await call('earn_positions')) as { positions: unknown[] }
    assert.equal(positions.length, 1)
  } finally {
    await connected.close()
  }
})
