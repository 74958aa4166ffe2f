/**
 * The command line of the official inspector on both paths that it speaks. Its 112 packages are no dependency, and their
 * installation takes a minute: the test runs where a command of CONTRIBUTING.md has installed them in the folder below.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openPair } from './instances.ts'

const folder = fileURLToPath(new URL('../../node_modules/.cache/mcp-inspector/', import.meta.url))
const inspector = join(folder, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const skip = existsSync(inspector)
  ? false
  : `not installed: npm install --ignore-scripts --prefix ${folder} @modelcontextprotocol/inspector@2.12.0`

type Listed = { tools: { name: string }[] }
type Called = { structuredContent?: { task_id?: string; holdings?: unknown }; isError?: boolean }

test('the inspector lists and calls tools on every path, two instances behind one address', {
  skip,
}, async () => {
  await using pair = await openPair()
  const { authorization } = await pair.user()
  const home = mkdtempSync(join(tmpdir(), 'mcp-inspector-'))
  const run = async <Reply>(path: string, ...options: string[]): Promise<Reply> => {
    const given = ['--cli', pair.url + path, '--header', `Authorization: ${authorization}`, ...options]
    const { stdout } = await promisify(execFile)(process.execPath, [inspector, ...given], {
      env: { ...process.env, HOME: home },
      maxBuffer: 64 * 1024 * 1024,
    })
    return JSON.parse(stdout) as Reply
  }
  const names = pair.instances[0]!.features.operations.map(({ name }) => name)
  for (const path of ['/mcp?sections=all', '/mcp/sse?sections=all']) {
    const { tools } = await run<Listed>(path, '--method', 'tools/list')
    assert.ok(tools.every(({ name }) => name === 'tasks_wait' || names.includes(name)))
    assert.ok(tools.length > 40, String(tools.length))
    const call = (name: string, ...args: string[]) =>
      run<Called>(path, '--method', 'tools/call', '--tool-name', name, ...args)
    assert.ok((await call('wallets_holdings')).structuredContent?.holdings)
    const key = `idempotency_key=inspector-${path.length}`
    const deposit = await call('earn_enable', '--tool-arg', `amount_usdc=${20 + path.length}`, key)
    assert.ok(deposit.structuredContent?.task_id, JSON.stringify(deposit))
  }
  rmSync(home, { recursive: true, force: true })
})
