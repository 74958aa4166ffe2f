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
import { StoreRefusal } from '#store/operator-error.ts'

export type Account = { uid: number; gid: number }

export type ClusterPaths = {
  dataDir: string
  /**
   * The folder of the server's account, with mode 0700. It contains all paths below, except a socket folder whose path
   * would be too long.
   */
  home: string
  data: string
  log: string
  socketDir: string
  /** The account that runs the server, if it is not that of this process. */
  account: Account | undefined
}

type Marker = { home: string; system_identifier?: string }

export const socketPort = 5432
const socketPathBytesMax = 100
const nobody = { uid: 65534, gid: 65534 }

/** PostgreSQL does not run as root, so under root the server runs as an unprivileged account. */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (process.platform === 'linux') return nobody
  throw new StoreRefusal(
    'PostgreSQL does not run as root. Start as an ordinary user, or set DATABASE_URL to a running server.',
  )
}

/**
 * Finds or creates the folder of the cluster. `postgres.json` in the data folder records its path: if the
 * server's account cannot traverse the parent folders (root's home has mode 0700), the cluster is under
 * /var/lib, and only this marker is in the data folder. The marker also proves that a cluster existed: without
 * it, an empty database would silently replace a deleted folder, and every balance and every running task would
 * be lost.
 */
export function prepareClusterPaths(wantedDir: string, account: Account | undefined): ClusterPaths {
  const dataDir = ownDataDir(wantedDir, account)
  const marker = readMarker(dataDir) ?? claimMarker(dataDir, account)
  const home = isAbsolute(marker.home) ? marker.home : join(dataDir, marker.home)
  if (account && !isReachable(dirname(home), account)) {
    throw new StoreRefusal(
      `The database in ${home} cannot be reached by the account ${account.uid} that runs it. Let others traverse ` +
        'the folders above it (chmod o+x), or start as the user who owns them.',
    )
  }
  ensurePrivate(home, account)
  if (home === marker.home) writeOwnerNote(home, dataDir)
  const socketDir = socketFolder(home)
  ensurePrivate(socketDir, account)
  return { dataDir, home, data: join(home, 'data'), log: join(home, 'server.log'), socketDir, account }
}

/** Compares the cluster with the marker, and completes the marker after the cluster was created. */
export function confirmIdentity(paths: ClusterPaths, systemIdentifier: string | undefined): void {
  const marker = readMarker(paths.dataDir)
  if (!marker)
    throw new StoreRefusal(
      `${markerPath(paths.dataDir)} was deleted while the database was starting. Start again.`,
    )
  const known = marker.system_identifier
  if (known === systemIdentifier) return
  if (known === undefined) {
    writeMarker(paths.dataDir, {
      ...marker,
      ...(systemIdentifier && { system_identifier: systemIdentifier }),
    })
  } else if (systemIdentifier === undefined) {
    throw new StoreRefusal(
      `The database that ${markerPath(paths.dataDir)} names is missing from ${paths.data}. Restore it, or delete ` +
        'that file to start with an empty one.',
    )
  } else {
    throw new StoreRefusal(
      `${paths.data} holds a database other than the one that ${markerPath(paths.dataDir)} names. Restore the ` +
        'right one, or delete that file to accept this one.',
    )
  }
}

export function adoptIdentity(paths: ClusterPaths, systemIdentifier: string): void {
  const marker = readMarker(paths.dataDir)
  if (!marker) throw new StoreRefusal(`${markerPath(paths.dataDir)} was deleted during the restore.`)
  writeMarker(paths.dataDir, { ...marker, system_identifier: systemIdentifier })
}

/** Creates a folder that only the server's account can use; refuses one that another account could have prepared. */
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
      `${path} must be a folder, not a link, with mode 0700 and owned by the account ${expected}. ` +
        'Start as the user who created it, or move it away.',
    )
  }
  // An existing folder is changed too: another process may have created it without changing its owner yet.
  if (account && uid !== account.uid) chownTo(path, account)
}

function chownTo(path: string, account: Account): void {
  try {
    lchownSync(path, account.uid, account.gid)
  } catch (cause) {
    throw new StoreRefusal(
      `PostgreSQL does not run as root, and the owner of ${path} cannot be changed (${errorMessage(cause)}): start ` +
        'as an ordinary user, or set DATABASE_URL to a running server.',
      { cause },
    )
  }
}

export function isReachable(path: string, account: Account): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder)
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (dirname(folder) === folder) return true
  }
}

/** A rename is durable only after an fsync of the folder that contains the name. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether a process with this id exists; processes of other users and killed ones count too. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** A killed process keeps its id until its parent reaps it, which may never happen in a container. */
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
    // Others may traverse, but not list, if the server's account needs to reach its folder inside.
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
  throw new StoreRefusal(
    `${markerPath(dataDir)} is damaged: it must name the folder of the database. Restore it from a backup.`,
  )
}

/** Creates the marker; if several processes start at once, the one whose link succeeds determines the path. */
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
 * The name of the folder is unpredictable, so that after the data folder is deleted its old database is never
 * opened with new keys. /var/lib is preferred to /var/tmp: only root writes there, and no cleanup deletes old
 * files.
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

/** Names the data folder for an operator who finds this folder after the data folder was deleted. */
function writeOwnerNote(home: string, dataDir: string): void {
  try {
    writeFileSync(join(home, 'belongs-to'), `${dataDir}\n`, { flag: 'wx' })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** The system limits the length of socket paths, and PostgreSQL would split a path at a comma. */
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
