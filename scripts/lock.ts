/**
 * npm leaves out of package-lock.json the platform packages (another system or processor) that it could not
 * resolve, and then `npm ci` refuses the file with `Missing: ... from lock file`. This enters them, so that one
 * lockfile serves every platform. With --check it changes nothing and fails when something is missing.
 */
import { readFileSync, writeFileSync } from 'node:fs'

type Entry = {
  version?: string
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

type Lock = { packages: Record<string, Entry> }

/** How package names spell a system; the first that fits counts. */
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

const first = (table: typeof systems, name: string) => table.find(([spelling]) => spelling.test(name))?.[1]

const platformEntry = (name: string, version: string, parent: Entry): Entry => {
  const os = first(systems, name)
  const cpu = first(processors, name)
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
const places = (path: string, name: string): string[] => {
  const found = [`node_modules/${name}`]
  for (let at = path; at; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/'))))
    found.push(`${at}/node_modules/${name}`)
  return found
}

/** Enters what is missing and says what it was. */
export const complete = (lock: Lock): string[] => {
  const added: string[] = []
  for (const [path, entry] of Object.entries(lock.packages))
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (places(path, name).some((place) => lock.packages[place])) continue
      lock.packages[`node_modules/${name}`] = platformEntry(name, version, entry)
      added.push(name)
    }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
  return added
}

if (import.meta.main) {
  const path = `${import.meta.dirname}/../package-lock.json`
  const lock: Lock = JSON.parse(readFileSync(path, 'utf8'))
  const missing = complete(lock)
  if (!process.argv.includes('--check')) {
    writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
    console.log(`${missing.length} platform packages added`)
  } else if (missing.length > 0) {
    console.error(`package-lock.json lacks ${missing.join(', ')}; run: node scripts/lock.ts`)
    process.exitCode = 1
  }
}
