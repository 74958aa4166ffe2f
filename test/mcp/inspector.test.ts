/** The command line of the official inspector on both paths that it speaks; the test installs its packages. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { foreignPackages } from '../harness/foreign-packages.ts'
import { play } from './foreign-journey.ts'
import { openPair } from './instances.ts'

type Listed = { tools: { name: string }[] }
type Called = { content: { text: string }[] }

test('the inspector lists tools, reads, swaps, waits and repeats on every path, two instances behind one address', async (context) => {
  const packages = await foreignPackages('mcp')
  if (typeof packages === 'string') return context.skip(packages)
  const inspector = packages.program('@modelcontextprotocol/inspector')
  await using pair = await openPair()
  const home = mkdtempSync(join(tmpdir(), 'mcp-inspector-'))
  const { authorization } = await pair.user()
  const run = async <Reply>(path: string, ...options: string[]): Promise<Reply> => {
    const given = ['--cli', pair.url + path, '--header', `Authorization: ${authorization}`, ...options]
    const { stdout } = await promisify(execFile)(process.execPath, [inspector, ...given], {
      env: { ...process.env, HOME: home },
      maxBuffer: 64 * 1024 * 1024,
    }).catch((error: Error & { code?: number; stdout: string }) => {
      // It prints a tool's refusal like an answer, and then exits with another code.
      if (error.stdout.includes('isError')) return error
      throw error
    })
    return JSON.parse(stdout) as Reply
  }
  const names = pair.instances[0]!.features.operations.map(({ name }) => name)
  for (const path of ['/mcp', '/mcp/sse']) {
    const { tools } = await run<Listed>(`${path}?sections=all`, '--method', 'tools/list')
    assert.ok(tools.every(({ name }) => name === 'tasks_wait' || names.includes(name)))
    assert.ok(tools.length > 40, String(tools.length))
    const listed = await run<Listed>(path, '--method', 'tools/list')
    await play(
      `inspector-${path.length}`,
      listed.tools.map(({ name }) => name),
      async (name, input) => {
        const given = Object.entries(input).flatMap(([field, value]) => [
          '--tool-arg',
          `${field}=${String(value)}`,
        ])
        const reply = await run<Called>(path, '--method', 'tools/call', '--tool-name', name, ...given)
        return reply.content[0]?.text ?? ''
      },
    )
  }
  rmSync(home, { recursive: true, force: true })
})
