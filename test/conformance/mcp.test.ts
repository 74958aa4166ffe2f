/** The conformance suites of the protocol against the door, both the released one and the coming one. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { scopes } from '#kernel/contract/caller.ts'
import { createHttpApp, type HttpApp } from '../edges/http-app.ts'
import { testDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { addFixtures } from './mcp/fixtures.ts'
import { taskOperations } from './mcp/task-fixtures.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const released = 'node_modules/@modelcontextprotocol/conformance/dist/index.js'
const coming = 'node_modules/mcp-conformance-next/dist/index.js'

let app: HttpApp
let folder: string
const parts = new AsyncDisposableStack()

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))
  const database = parts.use(await testDatabase())
  const core = parts.use(await openTestCore({ databaseUrl: database.url }))
  const operations = taskOperations(core)
  const runtime = core.taskEngine.createRuntime(operations, [])
  runtime.start()
  app = await createHttpApp({
    operations,
    execute: runtime.invoke,
    extendMcp: addFixtures,
    // The suites send no credential.
    authenticate: async () => ({
      userId: '0198a000-0000-7000-8000-000000000001',
      agentId: 'agt_1',
      scheme: 'keypair',
      scopes: new Set(scopes),
    }),
  })
})
after(async () => {
  await app.close()
  await parts.disposeAsync()
  rmSync(folder, { recursive: true, force: true })
})

/** Under the name localhost, which the check of foreign hosts needs. */
const address = () => `http://localhost:${new URL(app.url).port}/mcp`

async function run(suite: string, ...options: string[]): Promise<{ code: number | null; output: string }> {
  const given = [join(root, suite), 'server', '--url', address(), ...options]
  const child = spawn(process.execPath, given, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, output }
}

const expected = (file: string) => ['--expected-failures', join(root, 'test/conformance/mcp', file)]

for (const [title, suite, options] of [
  ['the released suite', released, ['--suite', 'active', ...expected('expected-failures.yml')]],
  [
    'what 2025-11-25 requires',
    coming,
    ['--requirements', '2025-11-25', ...expected('expected-failures.yml')],
  ],
  ['what 2026-07-28 requires', coming, ['--requirements', '2026-07-28']],
] as const)
  test(`${title} passes`, async () => {
    const { code, output } = await run(suite, ...options)
    assert.equal(code, 0, output.slice(-6_000))
  })

// The suite runs extensions one by one: no revision requires them.
for (const scenario of [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
])
  test(`the tasks extension passes ${scenario}`, async () => {
    const { code, output } = await run(coming, '--scenario', scenario)
    assert.equal(code, 0, output.slice(-6_000))
    assert.doesNotMatch(output, /FAILURE/)
  })
