/**
 * Programs of others that are too large for `npm ci` of everybody: a test that runs them installs them first, with the
 * versions and checksums of a lockfile in `test/foreign-packages`, below the folder of caches that `npm ci` clears.
 */
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

export type ForeignPackages = {
  /** Where the packages are, below `node_modules`. */
  folder: string
  require<Module>(name: string): Module
  /** The first program of a package, or the named one. */
  program(name: string, bin?: string): string
}

async function install(source: string, target: string): Promise<void> {
  // Two runs may install at the same time, and one that is killed leaves no half of a folder.
  const fresh = `${target}.${randomUUID()}`
  mkdirSync(fresh, { recursive: true })
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(source, name), join(fresh, name))
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  try {
    await run('npm', ['install', '--ignore-scripts', '--omit=optional', ...quiet], { cwd: fresh })
    if (!existsSync(target)) renameSync(fresh, target)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Resolves with a sentence where the packages cannot be installed, as on a machine without a registry. */
export async function foreignPackages(set: 'mcp' | 'openapi'): Promise<ForeignPackages | string> {
  const source = join(root, 'test/foreign-packages', set)
  const lock = readFileSync(join(source, 'package-lock.json'))
  const version = createHash('sha256').update(lock).digest('hex').slice(0, 12)
  const target = join(root, 'node_modules/.cache/foreign-packages', `${set}-${version}`)
  if (!existsSync(target))
    try {
      await install(source, target)
    } catch (error) {
      return `the packages of test/foreign-packages/${set} cannot be installed: ${String(error)}`
    }
  const folder = join(target, 'node_modules')
  const require = createRequire(join(target, 'package.json'))
  return {
    folder,
    require: (name) => require(name),
    program(name, bin) {
      const manifest = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')) as {
        bin: string | Record<string, string>
      }
      const bins = typeof manifest.bin === 'string' ? { [name]: manifest.bin } : manifest.bin
      return join(folder, name, bin === undefined ? Object.values(bins)[0]! : bins[bin]!)
    },
  }
}
