/** What the generators that clients use make of the document: it compiles, and it trades. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freshGateway, type Gateway } from '../harness/gateway.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const sources = fileURLToPath(new URL('./clients', import.meta.url))

/** Each with its defaults: the document, and where the code goes. */
const generators = {
  'openapi-fetch': ['openapi-typescript', 'openapi.json', '-o', 'openapi-typescript/schema.ts'],
  'hey-api': ['@hey-api/openapi-ts', '-i', 'openapi.json', '-o', 'hey-api'],
  orval: ['orval', '--input', 'openapi.json', '--output', 'orval/client.ts'],
} as const
const clients = Object.keys(generators) as (keyof typeof generators)[]

let gateway: Gateway
let folder: string

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico-clients-'))
  gateway = await freshGateway()
  for (const name of readdirSync(sources))
    cpSync(join(sources, name), join(folder, name.replace(/\.txt$/, '')))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const document = await (await fetch(`${gateway.url}/openapi.json`)).text()
  writeFileSync(join(folder, 'openapi.json'), document)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
})
after(async () => {
  await gateway[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Strict, and as CommonJS, since generated files import each other without an extension. */
const compilerOptions = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: ['node'],
  module: 'commonjs',
  moduleResolution: 'bundler',
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  outDir: 'out',
}
const files = clients.map((name) => `${name}.ts`)

/** The program of a package, started by the Node of this process. */
async function runPackage(name: string, args: readonly string[]): Promise<string> {
  const base = join(root, 'node_modules', name)
  const { bin } = JSON.parse(readFileSync(join(base, 'package.json'), 'utf8')) as {
    bin: string | Record<string, string>
  }
  const file = typeof bin === 'string' ? bin : Object.values(bin)[0]!
  const done = await run(process.execPath, [join(base, file), ...args], { cwd: folder }).catch(
    (error: Error & { stdout: string }) => assert.fail(`${name}: ${error.message}\n${error.stdout}`),
  )
  return done.stdout
}

test('openapi-typescript, hey-api and orval generate clients that compile under strict rules', async () => {
  for (const [generator, ...args] of Object.values(generators)) await runPackage(generator, args)
  await runPackage('typescript-native', ['-p', '.', '--pretty', 'false'])
})

for (const name of clients)
  test(`${name}: signs up, earns, trades and reads a 422 by its types`, async () => {
    const { stdout } = await run(process.execPath, [join(folder, 'out', `${name}.js`), gateway.url])
    assert.deepEqual(JSON.parse(stdout), {
      deposited: '5',
      task: 'completed',
      opened: '0.001',
      wrong: { code: 'validation', retryable: false, field: 'amount_usdc' },
    })
  })
