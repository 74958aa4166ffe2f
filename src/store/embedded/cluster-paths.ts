import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { StoreRefusal } from '#store/refusal.ts'

export type Account = { uid: number; gid: number }

export type ClusterPaths = {
  dataDir: string
  /** Owned by the server's account with mode 0700; everything below lives in it, but for a socket with a long path. */
  home: string
  data: string
  log: string
  socketDir: string
  /** The account that the server runs as, when it is not our own. */
  account: Account | undefined
}

type Marker = { home: string; system_identifier?: string }

export const socketPort = 5432
const socketPathBytesMax = 100
const nobody = { uid: 65534, gid: 65534 }

/** PostgreSQL refuses to run as root, so root lends it an account that owns nothing else. */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (process.platform === 'linux') return nobody
  throw new StoreRefusal(
    'PostgreSQL refuses to run as root: start as an ordinary user, or set DATABASE_URL to a running server.',
  )
}

/**
 * Finds or makes the folder of the cluster. `postgres.json` in the data folder says where it is, because the
 * server's account often cannot pass the folders above (a home folder of root has mode 0700, and the data folder
 * itself keeps secrets from other accounts). Then the cluster lives under /var/lib and only the note lives here.
 * The note also proves that a cluster once existed: without it, a vanished folder would be answered by an empty
 * database, and every balance and every task in flight would be forgotten without a word.
 */
export function prepareClusterPaths(wantedDir: string, account: Account | undefined): ClusterPaths {
  const dataDir = ownDataDir(wantedDir, account)
  const marker = readMarker(dataDir) ?? claimMarker(dataDir, account)
  const home = isAbsolute(marker.home) ? marker.home : join(dataDir, marker.home)
  if (account && !isReachable(dirname(home), account)) {
    throw new StoreRefusal(
      `The database in ${home} cannot be reached by the account ${account.uid} that runs it: let others pass ` +
        'the folders above it (chmod o+x), or start as the user who owns them.',
    )
  }
  ensurePrivate(home, account)
  if (home === marker.home) writeOwnerNote(home, dataDir)
  const socketDir = socketFolder(home)
  ensurePrivate(socketDir, account)
  return { dataDir, home, data: join(home, 'data'), log: join(home, 'server.log'), socketDir, account }
}

/** Compares the cluster with the note, and completes the note after the cluster was made. */
export function confirmIdentity(paths: ClusterPaths, systemIdentifier: string | undefined): void {
  const marker = readMarker(paths.dataDir)
  if (!marker)
    throw new StoreRefusal(`${markerPath(paths.dataDir)} vanished while the database was starting.`)
  const known = marker.system_identifier
  if (known === systemIdentifier) return
  if (known === undefined) {
    writeMarker(paths.dataDir, {
      ...marker,
      ...(systemIdentifier && { system_identifier: systemIdentifier }),
    })
  } else if (systemIdentifier === undefined) {
    throw new StoreRefusal(
      `The database that ${markerPath(paths.dataDir)} speaks of is gone from ${paths.data}: restore it, or delete ` +
        'that file to begin with an empty one.',
    )
  } else {
    throw new StoreRefusal(
      `${paths.data} holds another database than the one that ${markerPath(paths.dataDir)} speaks of: restore the ` +
        'right one, or delete that file to accept this one.',
    )
  }
}

/** After a restore: the note speaks of the cluster that is there now. */
export function adoptIdentity(paths: ClusterPaths, systemIdentifier: string): void {
  const marker = readMarker(paths.dataDir)
  if (!marker) throw new StoreRefusal(`${markerPath(paths.dataDir)} vanished during the restore.`)
  writeMarker(paths.dataDir, { ...marker, system_identifier: systemIdentifier })
}

/** A folder for the server's account alone; refuses one that somebody else could have prepared. */
export function ensurePrivate(path: string, account: Account | undefined): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    if (errorCode(cause) !== 'EEXIST')
      throw new StoreRefusal(`${path} cannot be created: ${errorMessage(cause)}`, { cause })
  }
  if (process.platform === 'win32') return
  const own = process.getuid?.()
  const { uid, mode } = lstatSync(path)
  const expected = account?.uid ?? own
  if (!lstatSync(path).isDirectory() || (uid !== expected && uid !== own) || (mode & 0o077) !== 0) {
    throw new StoreRefusal(
      `${path} must be a folder, no link, with mode 0700 and owned by the account ${expected}, and it is not: ` +
        'start as the user who made it, or move it away.',
    )
  }
  // Also when the folder was there already: another process may have made it and not yet given it away.
  if (account && uid !== account.uid) chownTo(path, account)
}

function chownTo(path: string, account: Account): void {
  try {
    lchownSync(path, account.uid, account.gid)
  } catch (cause) {
    throw new StoreRefusal(
      `PostgreSQL refuses to run as root, and ${path} cannot be given to another account (${errorMessage(cause)}): start ` +
        'as an ordinary user, or set DATABASE_URL to a running server.',
      { cause },
    )
  }
}

/** Whether the account may pass every folder down to this one, judged by the mode bits. */
export function isReachable(path: string, account: Account): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder)
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (dirname(folder) === folder) return true
  }
}

/** A rename is durable only once the folder that holds the name is. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether a process with this id exists; one that belongs to somebody else counts, and one that was killed. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** A killed process keeps its id until its parent takes note of its end, which in a container may be never. */
export function isAlive(pid: number): boolean {
  if (!processExists(pid) || process.platform !== 'linux') return processExists(pid)
  try {
    return !/^.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

export const errorCode = (error: unknown) => (error as { code?: string } | undefined)?.code

export const errorMessage = (error: unknown) => (error instanceof Error ? error.message : String(error))

function ownDataDir(wantedDir: string, account: Account | undefined): string {
  const path = resolve(wantedDir)
  try {
    // Others may pass, not list, when that is how the lent account reaches its own folder inside.
    mkdirSync(path, { recursive: true, mode: account ? 0o711 : 0o700 })
    return realpathSync(path)
  } catch (cause) {
    throw new StoreRefusal(`The data folder ${path} cannot be used: ${errorMessage(cause)}`, { cause })
  }
}

const markerPath = (dataDir: string) => join(dataDir, 'postgres.json')

function readMarker(dataDir: string): Marker | undefined {
  let content: string
  try {
    content = readFileSync(markerPath(dataDir), 'utf8')
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return undefined
    throw new StoreRefusal(`${markerPath(dataDir)} cannot be read: ${errorMessage(cause)}`, { cause })
  }
  try {
    const { home, system_identifier } = JSON.parse(content) as Partial<Marker>
    if (typeof home === 'string' && home !== '')
      return { home, ...(system_identifier && { system_identifier }) }
  } catch {}
  throw new StoreRefusal(`${markerPath(dataDir)} is damaged: it should name the folder of the database.`)
}

/** Of several processes that start at once, the one whose link succeeds decides the place. */
function claimMarker(dataDir: string, account: Account | undefined): Marker {
  const inside = !account || isReachable(dataDir, account) || isNonEmpty(join(dataDir, 'postgres'))
  const marker = { home: inside ? 'postgres' : pickExternalHome(dataDir) }
  const draft = draftMarker(dataDir, marker)
  try {
    linkSync(draft, markerPath(dataDir))
    syncFolder(dataDir)
    return marker
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    return readMarker(dataDir) ?? marker
  } finally {
    rmSync(draft)
  }
}

function writeMarker(dataDir: string, marker: Marker): void {
  renameSync(draftMarker(dataDir, marker), markerPath(dataDir))
  syncFolder(dataDir)
}

function draftMarker(dataDir: string, marker: Marker): string {
  const draft = `${markerPath(dataDir)}.${process.pid}-${randomBytes(4).toString('hex')}`
  writeFileSync(draft, `${JSON.stringify(marker, undefined, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true })
  return draft
}

/**
 * A name that nobody can foresee, so a deleted data folder never meets its old database again under new keys.
 * /var/lib is preferred to /var/tmp: only root writes there, and nothing sweeps old files out of it.
 */
function pickExternalHome(dataDir: string): string {
  const name = `${hash(dataDir, 12)}-${randomBytes(4).toString('hex')}`
  try {
    const base = '/var/lib/portico'
    mkdirSync(base, { recursive: true, mode: 0o755 })
    const { uid, mode } = lstatSync(base)
    if (lstatSync(base).isDirectory() && uid === 0 && (mode & 0o022) === 0 && isReachable(base, nobody)) {
      return join(base, name)
    }
  } catch {}
  return join('/var/tmp', `portico-pg-${name}`)
}

/** Names the data folder, for a person who finds this folder after the data folder was deleted. */
function writeOwnerNote(home: string, dataDir: string): void {
  try {
    writeFileSync(join(home, 'belongs-to'), `${dataDir}\n`, { flag: 'wx' })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** The system refuses longer socket paths, and PostgreSQL would split one at a comma. */
function socketFolder(home: string): string {
  const folder = join(home, 'socket')
  const lengthBytes = Buffer.byteLength(`${folder}/.s.PGSQL.${socketPort}`)
  if (lengthBytes <= socketPathBytesMax && /^[\w./+-]+$/.test(folder)) return folder
  return process.platform === 'win32' ? folder : `/tmp/portico-pg-${hash(home, 20)}`
}

const hash = (value: string, length: number) =>
  createHash('sha256').update(value).digest('hex').slice(0, length)

function isNonEmpty(path: string): boolean {
  try {
    return readdirSync(path).length > 0
  } catch {
    return false
  }
}
