/** What the generators that clients use make of the document: it compiles, and it trades. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type ForeignPackages, foreignPackages } from '../harness/foreign-packages.ts'
import { freshGateway, type Gateway } from '../harness/gateway.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const sources = fileURLToPath(new URL('./clients', import.meta.url))

/** Each with its defaults: the document, and where the code goes. */
const generators = {
  'openapi-fetch': ['openapi-typescript', 'openapi.json', '-o', 'openapi-typescript/schema.ts'],
  'hey-api': ['@hey-api/openapi-ts', '-i', 'openapi.json', '-o', 'hey-api'],
  orval: ['orval', '--input', 'openapi.json', '--output', 'orval/client.ts'],
  oazapfts: ['oazapfts', 'openapi.json', 'oazapfts/client.ts'],
} as const
/** Generators that the test installs, in a folder of their own. */
const installedGenerators = {
  'swagger-typescript-api': [
    'generate',
    '-p',
    'openapi.json',
    '-o',
    'swagger-typescript-api',
    '-n',
    'client.ts',
  ],
  'openapi-zod-client': ['openapi.json', '-o', 'openapi-zod-client/client.ts'],
} as const
const clients = Object.keys(generators)
const installedClients = Object.keys(installedGenerators)

let gateway: Gateway
let folder: string
let packages: ForeignPackages | string

before(async () => {
  packages = await foreignPackages('openapi')
  folder = mkdtempSync(join(tmpdir(), 'portico-clients-'))
  gateway = await freshGateway()
  for (const name of readdirSync(sources))
    cpSync(join(sources, name), join(folder, name.replace(/\.txt$/, '')))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const document = await (await fetch(`${gateway.url}/openapi.json`)).text()
  writeFileSync(join(folder, 'openapi.json'), document)
  mkdirSync(join(folder, 'oazapfts'))
  if (typeof packages === 'string') return
  for (const place of installedClients.flatMap((name) => [name, `out/${name}`])) {
    mkdirSync(join(folder, place), { recursive: true })
    symlinkSync(packages.folder, join(folder, place, 'node_modules'))
  }
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
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
const compile = async (names: readonly string[]): Promise<void> => {
  const files = names.map((name) => `${name}.ts`)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  await runPackage('typescript-native', ['-p', '.', '--pretty', 'false'])
}

/** The first program of a package. */
function programOf(name: string): string {
  const base = join(root, 'node_modules', name)
  const { bin } = JSON.parse(readFileSync(join(base, 'package.json'), 'utf8')) as {
    bin: string | Record<string, string>
  }
  return join(base, typeof bin === 'string' ? bin : Object.values(bin)[0]!)
}
/** Started by the Node of this process. */
async function runProgram(program: string, args: readonly string[]): Promise<void> {
  await run(process.execPath, [program, ...args], { cwd: folder, maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: Error & { stdout: string }) => assert.fail(`${program}: ${error.message}\n${error.stdout}`),
  )
}
const runPackage = (name: string, args: readonly string[]) => runProgram(programOf(name), args)

test('openapi-typescript, hey-api, orval and oazapfts generate clients that compile under strict rules', async () => {
  for (const [generator, ...args] of Object.values(generators)) await runPackage(generator, args)
  await compile(clients)
})

test('swagger-typescript-api and openapi-zod-client do, too', async (context) => {
  if (typeof packages === 'string') return context.skip(packages)
  for (const [name, args] of Object.entries(installedGenerators))
    await runProgram(packages.program(name), args)
  await compile(installedClients)
})

for (const name of [...clients, ...installedClients])
  test(`${name}: signs up, earns, trades and reads a 422 by its types`, async (context: TestContext) => {
    if (typeof packages === 'string' && installedClients.includes(name)) return context.skip(packages)
    const { stdout } = await run(process.execPath, [join(folder, 'out', `${name}.js`), gateway.url])
    assert.deepEqual(JSON.parse(stdout), {
      deposited: '5',
      task: 'completed',
      opened: '0.001',
      wrong: { code: 'validation', retryable: false, field: 'amount_usdc' },
    })
  })
