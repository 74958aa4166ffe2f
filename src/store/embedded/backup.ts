import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { StoreRefusal } from '#store/operator-error.ts'
import { systemIdentifier } from './cluster.ts'
import { errorCode, prepareClusterPaths, serverAccount, syncFolder } from './cluster-paths.ts'

/**
 * A physical copy of a running cluster, like that of pg_basebackup: the files in their current state, and every
 * WAL record that makes them consistent. The package's binaries include neither pg_basebackup nor pg_dump.
 */

export type BackupFile = { path: string; bytes: number; sha256: string }
export type Manifest = {
  format: 1
  system_identifier: string
  server_version: string
  started_at: string
  ended_at: string
  start_lsn: string
  stop_lsn: string
  folders: string[]
  files: BackupFile[]
}
export const manifestName = 'manifest.json'
export const copyName = 'data'

export type BackupOptions = {
  dataDir: string
  url: string
  target: string
  progress?: (line: string) => void
}
export type Backup = { files: number; bytes: number; stopLsn: string }

/** Folders whose content is excluded; the folders themselves must exist at startup. */
const excludedContent = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])
const excludedNames =
  /^(postmaster\.(pid|opts)|backup_label(\.old)?|tablespace_map(\.old)?|pgsql_tmp.*|pg_internal\.init.*|current_logfiles(\.tmp)?)$/
/** The control file is copied last, because the checkpoint that it names must not be older than the other files. */
const controlFile = 'global/pg_control'
const segmentName = /^[0-9A-F]{24}$/
const chunkBytes = 1024 * 1024

type BackupStart = { client: pg.Client; start: string; segment: string; version: string }
type BackupEnd = { stop: string; segment: string; label: string; tablespaces: string }

export async function backupCluster({
  dataDir,
  url,
  target,
  progress = () => {},
}: BackupOptions): Promise<Backup> {
  const paths = prepareClusterPaths(dataDir, serverAccount())
  const draft = claimTarget(target)
  const startedAt = new Date()
  const client = new pg.Client({ connectionString: url, application_name: 'portico admin backup' })
  client.on('error', () => {})
  try {
    await client.connect()
    const started = await beginBackup(client)
    progress('Copying the files of the database')
    const copy = join(draft, copyName)
    mkdirSync(copy, { mode: 0o700 })
    const { folders, files } = copyFiles(paths.data, copy)
    const stopped = await endBackup(client)
    files.push(...copyLog(paths.data, copy, started.segment, stopped.segment))
    files.push(writeText(copy, 'backup_label', stopped.label))
    if (stopped.tablespaces.trim() !== '') files.push(writeText(copy, 'tablespace_map', stopped.tablespaces))
    const manifest: Manifest = {
      format: 1,
      system_identifier: systemIdentifier(paths),
      server_version: started.version,
      started_at: startedAt.toISOString(),
      ended_at: new Date().toISOString(),
      start_lsn: started.start,
      stop_lsn: stopped.stop,
      folders,
      files,
    }
    writeText(draft, manifestName, `${JSON.stringify(manifest, undefined, 1)}\n`)
    syncFolder(draft)
    renameSync(draft, target)
    syncFolder(dirname(target))
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    return { files: files.length, bytes, stopLsn: stopped.stop }
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw error
  } finally {
    // An unfinished backup and its slot end with the session.
    await client.end().catch(() => {})
  }
}

function claimTarget(target: string): string {
  const draft = `${target}.partial-${randomBytes(4).toString('hex')}`
  try {
    if (lstatSync(target, { throwIfNoEntry: false }))
      throw new StoreRefusal(`${target} already exists. Give a folder that does not exist.`)
    mkdirSync(draft, { mode: 0o700 })
    return draft
  } catch (cause) {
    if (cause instanceof StoreRefusal) throw cause
    throw new StoreRefusal(`${target} cannot be created: ${(cause as Error).message}`, { cause })
  }
}

/** The replication slot prevents the WAL from being recycled before it is copied. */
async function beginBackup(client: pg.Client): Promise<BackupStart> {
  await client.query('set statement_timeout = 0')
  const slot = `portico_backup_${randomBytes(6).toString('hex')}`
  await client.query('select pg_create_physical_replication_slot($1, true, true)', [slot])
  const { rows } = await client.query<{ start: string; segment: string; version: string }>(
    `select lsn::text as start, pg_walfile_name(lsn) as segment, current_setting('server_version') as version
     from pg_backup_start('portico admin backup', true) as lsn`,
  )
  return { client, ...rows[0]! }
}

async function endBackup(client: pg.Client): Promise<BackupEnd> {
  const { rows } = await client.query<BackupEnd>(
    `select lsn::text as stop, pg_walfile_name(lsn) as segment, labelfile as label, spcmapfile as tablespaces
     from pg_backup_stop(false)`,
  )
  return rows[0]!
}

function copyFiles(from: string, to: string): { folders: string[]; files: BackupFile[] } {
  const folders: string[] = []
  const files: BackupFile[] = []
  const walk = (folder: string) => {
    for (const entry of readdirSync(join(from, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (excludedNames.test(entry.name) || path === controlFile) continue
      if (entry.isSymbolicLink())
        throw new StoreRefusal(
          `${join(from, path)} is a link: tablespaces outside the data folder are not supported.`,
        )
      if (entry.isDirectory()) {
        folders.push(path)
        mkdirSync(join(to, path), { mode: 0o700 })
        if (!excludedContent.has(path)) walk(path)
      } else if (entry.isFile()) {
        const file = copyFile(from, to, path)
        if (file) files.push(file)
      }
    }
  }
  walk('')
  for (const path of ['pg_wal/archive_status', 'pg_wal/summaries']) {
    folders.push(path)
    mkdirSync(join(to, path), { recursive: true, mode: 0o700 })
  }
  files.push(copyFile(from, to, controlFile)!)
  return { folders, files }
}

function copyLog(from: string, to: string, first: string, last: string): BackupFile[] {
  const names = readdirSync(join(from, 'pg_wal')).filter(
    (name) => name.endsWith('.history') || (segmentName.test(name) && name >= first && name <= last),
  )
  if (!names.includes(first) || !names.includes(last))
    throw new Error(`The WAL from ${first} to ${last} is incomplete`)
  return names.sort().map((name) => copyFile(from, to, `pg_wal/${name}`)!)
}

/** Copies a file; returns undefined if the file was deleted meanwhile, since the WAL contains the deletion. */
export function copyFile(from: string, to: string, path: string): BackupFile | undefined {
  let source: number
  try {
    source = openSync(join(from, path), 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const target = openSync(join(to, path), 'wx', 0o600)
    try {
      const digest = createHash('sha256')
      const chunk = Buffer.alloc(chunkBytes)
      let bytes = 0
      for (let read = readSync(source, chunk); read > 0; read = readSync(source, chunk)) {
        const part = chunk.subarray(0, read)
        for (let at = 0; at < read; ) at += writeSync(target, part, at)
        digest.update(part)
        bytes += read
      }
      fsyncSync(target)
      return { path, bytes, sha256: digest.digest('hex') }
    } finally {
      closeSync(target)
    }
  } finally {
    closeSync(source)
  }
}

function writeText(folder: string, path: string, text: string): BackupFile {
  writeFileSync(join(folder, path), text, { mode: 0o600, flag: 'wx', flush: true })
  const sha256 = createHash('sha256').update(text).digest('hex')
  return { path, bytes: Buffer.byteLength(text), sha256 }
}
