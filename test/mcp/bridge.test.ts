/** `portico mcp`: clients that start a command reach the gateway by the stored key, which renews what it needs. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { runCli } from '#edges/cli/cli.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { facade, type McpClient, type ProgressReport } from './clients.ts'

const cli = fileURLToPath(new URL('../../src/edges/cli/main.ts', import.meta.url))

let gateway: Awaited<ReturnType<typeof freshGateway>>
let home: string
before(async () => {
  gateway = await freshGateway()
  home = mkdtempSync(join(tmpdir(), 'mcp-bridge-'))
  assert.equal((await portico(['init', '--base-url', gateway.url])).code, 0)
  await eventually(async () => {
    const { out } = await portico(['tasks', 'list', '--json'])
    const { items } = JSON.parse(out) as { items: { status: string }[] }
    return items[0]?.status === 'completed' || undefined
  }, 'the first money')
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  rmSync(home, { recursive: true, force: true })
})

async function portico(words: string[], env: Record<string, string> = {}, lines: string[] = []) {
  let [out, err] = ['', '']
  const input = new PassThrough()
  input.end(lines.map((line) => `${line}\n`).join(''))
  const code = await runCli(words, {
    env,
    home,
    input,
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    isInteractive: false,
    openBrowser: () => {},
    signal: AbortSignal.timeout(60_000),
  })
  return { code, out, err, answers: out.split('\n').filter(Boolean) }
}

const info = { name: 'test', version: '1.0.0' }
const command = (...options: string[]) => ({
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', cli, 'mcp', ...options],
  env: { HOME: home, PATH: process.env.PATH ?? '' },
})
async function modern(...options: string[]): Promise<McpClient> {
  const client = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StdioClientTransport(command(...options)))
  return facade('2026-07-28', client)
}
async function former(...options: string[]): Promise<McpClient> {
  const client = new FormerClient(info)
  await client.connect(new FormerTransport(command(...options)) as never)
  return facade('2025', client)
}

test('clients of both lines list, read, deposit with progress, and read a resource over standard input', async () => {
  for (const [at, open] of [modern, former].entries()) {
    await using client = await open()
    const names = (await client.listTools()).map(({ name }) => name)
    assert.ok(names.length <= 30 && names.includes('earn_deposit') && names.includes('call_operation'))
    const reports: ProgressReport[] = []
    const input = { amount_usdc: String(20 + at), wait: true, idempotency_key: `bridge-${at}` }
    const deposit = await client.call('earn_deposit', input, (report) => reports.push(report))
    assert.equal(deposit.structuredContent?.outcome, 'executed', JSON.stringify(deposit))
    assert.ok(reports.length >= 1)
    assert.ok('holdings' in JSON.parse(await client.read('portico://holdings')))
  }
})

test('a token that was revoked is replaced, and the client notices nothing', async () => {
  await using client = await modern()
  const wallets = async () => (await client.call('wallets_list')).structuredContent
  const first = await wallets()
  assert.equal((await portico(['auth', 'revoke', '--all'])).code, 0)
  assert.deepEqual(await wallets(), first)
})

test('the options choose the tools, and an unknown section is named', async () => {
  await using client = await former('--sections', 'earn', '--mode', 'read')
  assert.deepEqual(
    (await client.listTools()).map(({ name }) => name),
    ['earn_info', 'earn_vault', 'earn_positions'],
  )
  const { answers } = await portico(['mcp', '--sections', 'nothing'], {}, [
    '{"jsonrpc":"2.0","id":7,"method":"tools/list"}',
  ])
  const { id, error } = JSON.parse(answers[0]!) as {
    id: number
    error: { data: { status: number; detail: object } }
  }
  assert.deepEqual([id, error.data.status], [7, 422])
  assert.match(JSON.stringify(error.data.detail), /sections.*default, all/)
})

test('a line that is no message is answered, and notifications are not', async () => {
  const { code, answers } = await portico(['mcp'], {}, [
    'nothing',
    '[]',
    '',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    '{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"nothing"}}',
  ])
  assert.equal(code, 0)
  const errors = answers.map((line) => JSON.parse(line) as { id: unknown; error: { code: number } })
  assert.deepEqual(
    errors.map(({ id, error }) => [id, error.code]),
    [
      [null, -32_700],
      [null, -32_700],
      ['last', -32_602],
    ],
  )
})

test('a gateway that does not answer is an error of the call, and says how to repeat it', async () => {
  const key = Buffer.alloc(32, 7).toString('base64')
  const env = {
    SERVICE_AGENT_ID: `agt_${'0'.repeat(26)}`,
    SERVICE_SECRET_KEY: key,
    PORTICO_URL: 'http://127.0.0.1:9',
  }
  const { answers } = await portico(['mcp'], env, ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}'])
  const { id, error } = JSON.parse(answers[0]!) as { id: number; error: { message: string } }
  assert.equal(id, 1)
  assert.match(error.message, /gave no answer.*idempotency_key/)
})

test('without credentials the command says how to get some', async () => {
  const { code, err, out } = await portico(['mcp'], { PORTICO_URL: 'http://127.0.0.1:9' })
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /portico init.*portico login/)
})

test('a request that its client cancels ends, and its answer does not come', async () => {
  const { answers } = await portico(['mcp'], {}, [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notifications_stream","arguments":{"seconds":60,"max_items":100}}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    '{"jsonrpc":"2.0","id":2,"method":"ping"}',
  ])
  assert.deepEqual(
    answers.map((line) => (JSON.parse(line) as { id: number }).id),
    [2],
  )
})
